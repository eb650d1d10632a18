"""A lease is held by one at a time, also while others remove its file."""

import threading
from pathlib import Path

from evenhand.core.errors import RunActive
from evenhand.evaluation.lease import Lease


def test_a_lease_whose_file_is_removed_is_still_held_by_one_at_a_time(tmp_path: Path) -> None:
    inside = threading.Lock()
    taken: list[int] = []
    together: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            try:
                with Lease(tmp_path / "lock", refusal="it is taken", remove=True):
                    if inside.acquire(blocking=False):
                        taken.append(number)
                        inside.release()
                    else:
                        together.append(number)
            except RunActive:
                continue

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken
    assert together == []
    assert not (tmp_path / "lock").exists()
