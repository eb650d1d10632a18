"""A run that is still going on can be looked at: a real process, killed half-way."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.ab_suites import wait_for
from tests.evaluation.runs import evenhand

from evenhand.evaluation.growing import is_growing, read_growing
from evenhand.testing.mock_model import MockModel

BENCH = """
from evenhand import benchmark, scorer, numeric_match

@benchmark(name="sums", dataset=lambda: [{"n": i, "target": str(2 * i)} for i in range(300)], prompt="Twice {n}?")
@scorer
def sums(sample):
    return numeric_match(sample)
"""


def command(bench: Path, folder: Path, url: str) -> list[str]:
    return ["eval", "run", "--bench", str(bench), "--model-url", url, "--model-id", "m", "-o", str(folder)]


def test_an_unfinished_run_is_compared_as_far_as_it_has_come(tmp_path: Path) -> None:
    bench = tmp_path / "sums.py"
    bench.write_text(BENCH)
    with (
        MockModel(lambda call: str(2 * int(call.prompt.split()[-1][:-1]))) as right,
        MockModel("none of these is a number", latency=0.05) as wrong,
    ):
        assert evenhand(*command(bench, tmp_path / "base", right.url)).returncode == 0
        growing = tmp_path / "growing"
        process = subprocess.Popen(
            [sys.executable, "-m", "evenhand", *command(bench, growing, wrong.url), "--concurrency", "4"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        journal = growing / ".run" / "journal.jsonl"
        wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 100, 120)
        wrong.latency = 600.0  # the run stays unfinished for as long as looking takes
        looked = evenhand("compare", tmp_path / "base", growing, "--sequential", "--format", "json")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert looked.returncode == 0, looked.stderr
    found = json.loads(looked.stdout)["comparisons"][0]
    assert found["verdict"]["name"] == "BLOCK"
    assert 10 <= found["problems"] < 300
    before = journal.read_bytes()
    assert is_growing(growing)
    assert 10 <= len(read_growing(growing).samples) < 300
    assert journal.read_bytes() == before, "looking changes nothing"
