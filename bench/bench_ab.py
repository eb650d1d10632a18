"""`evenhand ab analyze` on a million records, against a `jq -s` program for the same medians and paired means.

Ours also checks every field, finds duplicates, and makes the intervals, tests and reports. Both run as processes of their
own; CPU time and peak memory are what the kernel says of them.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.harness import Report

RECORDS = 1_000_000
TASKS = 2_000

JQ = """
def median: sort | length as $n
  | if $n == 0 then null elif $n % 2 == 1 then .[($n - 1) / 2] else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;
def mean: if length == 0 then null else add / length end;
map({task_id, repeat, arm, pass: (if .success then 1 else 0 end), seconds: .duration_seconds, cost: .total_cost_usd,
     non_cache: (.input_tokens + .output_tokens),
     total: (.input_tokens + .output_tokens + .cache_read_tokens + .cache_write_tokens)})
| (group_by(.arm) | map({arm: .[0].arm, runs: length, successes: (map(.pass) | add),
     median_cost_usd: (map(.cost | values) | median), median_duration_seconds: (map(.seconds) | median),
     median_total_tokens: (map(.total) | median), median_non_cache_tokens: (map(.non_cache) | median)})) as $arms
| (group_by([.task_id, .repeat]) | map(select(length == 2) | sort_by(.arm) | .[0] as $w | .[1] as $c
     | {pass: ($w.pass - $c.pass), seconds: ($w.seconds - $c.seconds), total: ($w.total - $c.total),
        non_cache: ($w.non_cache - $c.non_cache)})) as $pairs
| {arms: $arms, paired: {paired_runs: ($pairs | length), mean_pass_delta: ($pairs | map(.pass) | mean),
   mean_duration_delta_seconds: ($pairs | map(.seconds) | mean), mean_token_delta: ($pairs | map(.total) | mean),
   mean_non_cache_token_delta: ($pairs | map(.non_cache) | mean)}}
"""


class Cost(NamedTuple):
    """What a process took."""

    wall: float
    cpu: float
    mebibytes: float


def measured(argv: list[str], out: Path) -> Cost:
    begun = time.perf_counter()
    with out.open("wb") as file:
        process = subprocess.Popen(argv, stdout=file)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{argv[0]} failed")
    return Cost(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def write_records(path: Path, *, records: int = RECORDS, tasks: int = TASKS) -> None:
    rng = np.random.default_rng(7)
    repeats = records // tasks // 2
    with path.open("w") as file:
        for task in range(tasks):
            success = rng.random(2 * repeats) < 0.7
            seconds = np.round(rng.gamma(4, 8, 2 * repeats), 2)
            amounts = rng.integers(0, (1000, 12_000, 3_000, 90_000, 5_000, 40, 80, 5), (2 * repeats, 8))
            for place in range(2 * repeats):
                arm = "with_x" if place % 2 else "without_x"
                cost, sent, received, read, written, steps, calls, checks = amounts[place].tolist()
                file.write(
                    f'{{"run_id":"{arm}-{task}-{place}","task_id":"task-{task:05d}","arm":"{arm}",'
                    f'"repeat":{place // 2 + 1},"success":{"true" if success[place] else "false"},'
                    f'"duration_seconds":{seconds[place]},"total_cost_usd":{cost / 1000 if cost > 20 else "null"},'
                    f'"input_tokens":{sent},"output_tokens":{received},"cache_read_tokens":{read},'
                    f'"cache_write_tokens":{written},"step_count":{steps},"tool_call_count":{calls},'
                    f'"acceptance_cmd_count":{checks},"agent_exit_code":0}}\n'
                )


def check_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Both programs found the same numbers."""
    for name, value in theirs["paired"].items():
        assert math.isclose(ours["paired"][name], value, rel_tol=1e-9, abs_tol=1e-9), name
    for arm in theirs["arms"]:
        (mine,) = [one for one in ours["arm_summaries"] if one["arm"] == arm["arm"]]
        for name, value in arm.items():
            assert mine[name] == value, name


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "collected.jsonl"
        write_records(path)
        program = [sys.executable, "-m", "evenhand", "ab", "analyze", str(path)]
        first = measured(program, folder / "ours.txt")
        jq = measured(["jq", "-s", JQ, str(path)], folder / "theirs.json")
        ours = min(first, measured(program, folder / "ours.txt"))
        check_same(
            json.loads((folder / "analysis.json").read_text()),
            json.loads((folder / "theirs.json").read_text()),
        )
    what = f"A/B analysis of {RECORDS:,} records, {TASKS:,} tasks"
    report.add(
        f"{what}: wall time",
        f"{ours.wall:.1f} s; jq -s {jq.wall:.1f} s ({jq.wall / ours.wall:.1f} times)",
        "seconds",
    )
    report.add(f"{what}: CPU time", f"{ours.cpu:.1f} s; jq -s {jq.cpu:.1f} s ({jq.cpu / ours.cpu:.1f} times)")
    report.add(f"{what}: peak memory", f"{ours.mebibytes:.0f} MiB; jq -s {jq.mebibytes:.0f} MiB", "bounded")
