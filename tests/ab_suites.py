"""Suites for tests: agents are one-line shell programs, so that a trial takes milliseconds."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "ab" / "suite.json"
TIMES = ("duration_seconds", "started_at_utc", "ended_at_utc")
QUICK = 'echo \'{"input_tokens": 10, "output_tokens": 2, "total_cost_usd": 0.5}\' > {usage_file}'


def suite(**fields: Any) -> dict[str, Any]:
    """A suite of one task and two arms; `fields` replace its parts."""
    return {
        "name": "small",
        "repeats": 1,
        "tasks": [{"id": "t", "prompt": "do it", "acceptance_command": "true", "timeout_seconds": 200}],
        "arms": [
            {"name": "with_x", "agent_command": QUICK},
            {"name": "without_x", "agent_command": QUICK},
        ],
        "kill_grace_seconds": 0.2,
        **fields,
    }


def one_arm(agent: Any, **task: Any) -> dict[str, Any]:
    """A suite of one task and one arm."""
    made = {"id": "t", "prompt": "do it", "timeout_seconds": 200, **task}
    return suite(tasks=[made], arms=[{"name": "a", "agent_command": agent}])


def write_suite(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "suite.json"
    path.write_text(json.dumps(content))
    return path


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_times(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one.items() if name not in TIMES} for one in rows]


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def with_variable(name: str, value: str) -> list[int]:
    """The live processes with this variable in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and f"{name}={value}".encode() in Path(
                "/proc", entry, "environ"
            ).read_bytes().split(b"\0"):
                found.append(int(entry))
        except OSError:
            continue
    return [pid for pid in found if alive(pid)]


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Until the condition holds; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
