"""Interleaved best-of-several timing: the machine is noisy, so candidates take turns and the best round counts."""

import gc
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar


@dataclass
class Report:
    """What one bench file found: rows for the table in docs/performance.md."""

    name: str
    rows: list[tuple[str, str, str]] = field(default_factory=list)
    command: str = ""
    """What repeats it; `make bench ONLY=name` when empty."""

    def add(self, what: str, figure: str, target: str = "") -> None:
        self.rows.append((what, figure, target))
        print(f"  {what}: {figure}" + (f"   (target {target})" if target else ""), flush=True)


Name = TypeVar("Name", bound=Hashable)


def best_times(candidates: Mapping[Name, Callable[[], object]], *, rounds: int = 5) -> dict[Name, float]:
    """The best wall time in seconds of each candidate over `rounds` interleaved rounds."""
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, run in candidates.items():
            gc.collect()
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
