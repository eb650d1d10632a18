"""A killed `evaluate` with a folder goes on where it was: no finished call is made again."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenhand import Result

ROWS = 300
PROGRAM = """
import os, sys, time
from evenhand import evaluate

def task(text):
    # one line per call, whole or not at all
    file = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (text + "\\n").encode())
    os.close(file)
    time.sleep(0.01)
    return text

def also(output, expected):
    return output == expected

data = [{"input": str(n), "expected": str(n if n % 7 else -1)} for n in range(ROWS)]
evaluate(data, task, ["exact_match", also], folder=sys.argv[1], resume=True, concurrency=4, progress=False)
""".replace("ROWS", str(ROWS))


def finished(folder: Path) -> set[str]:
    """The calls whose answers are in the journal: whole lines only."""
    try:
        lines = (folder / ".run" / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return set()
    steps = [json.loads(line) for line in lines]
    return {str(step["key"]) for step in steps if step["step"] == "generated"}


def calls(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def killed_run(tmp_path: Path, kills: int) -> None:
    folder, log, program = tmp_path / "run", tmp_path / "calls.txt", tmp_path / "program.py"
    program.write_text(PROGRAM)
    rng = random.Random(kills)
    done_kills = 0
    while True:
        before, called = finished(folder), len(calls(log))
        process = subprocess.Popen([sys.executable, str(program), str(folder), str(log)])
        # Killed when so many answers more are there; the last run may end.
        wanted = (
            len(before) + rng.randint(1, max(1, (ROWS - len(before)) // 6))
            if done_kills < kills
            else ROWS + 1
        )
        deadline = time.monotonic() + 300
        while process.poll() is None and len(finished(folder)) < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        if process.poll() is None:
            os.kill(process.pid, 9)
            done_kills += 1
        status = process.wait()
        again = before & set(calls(log)[called:])
        assert not again, f"finished before and called again: {sorted(again)[:5]}"
        if status == 0:
            break
    assert done_kills == kills
    found = Result.load(folder)
    assert found.ledger["exact_match"].scored == found.ledger["also"].scored == ROWS
    assert [row.output for row in found.rows] == [str(n) for n in range(ROWS)]
    assert found.mean("exact_match") == sum(n % 7 != 0 for n in range(ROWS)) / ROWS
    # a kill costs at most the calls in flight
    assert len(calls(log)) <= ROWS + kills * 4


def test_three_kills(tmp_path: Path) -> None:
    killed_run(tmp_path, 3)


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    killed_run(tmp_path, 20)
