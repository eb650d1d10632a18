"""How the cost of a piece of work grows with its size, whatever the machine and whatever else it does."""

import time
from collections.abc import Callable


def cost(work: Callable[[], object]) -> float:
    """Processor seconds of this process, the least of three: time that others take does not count."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def grows_no_faster_than_linearly(work: Callable[[int], object], size: int) -> bool:
    """Eight times the size costs about 8 times as much, and 64 times if the cost is quadratic; the line is 32."""
    return cost(lambda: work(size)) < 32 * cost(lambda: work(size // 8)) + 0.5
