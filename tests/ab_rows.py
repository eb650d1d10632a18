"""Run records for tests: rows as plain mappings, and the worked example whose numbers are checked by hand."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def row(task: str = "t", arm: str = "with_tool", repeat: Any = 1, **fields: Any) -> Row:
    """A valid record; `fields` replace its values."""
    return {
        "task_id": task,
        "arm": arm,
        "repeat": repeat,
        "success": True,
        "duration_seconds": 1.0,
        "total_cost_usd": 0.5,
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        **fields,
    }


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


# task, repeat, success, seconds, cost, input, output, cache read, cache write
_WITH = [
    ("t1", 1, True, 10, 0.10, 100, 50, 1000, 10),
    ("t1", 2, True, 12, 0.12, 110, 50, 900, 0),
    ("t1", 3, False, 14, 0.14, 120, 60, 800, 0),
    ("t1", 4, True, 16, 0.16, 130, 60, 700, 0),
    ("t1", 5, False, 500, 9.00, 9999, 9999, 0, 0),  # exit code 86: the infrastructure failed
    ("t2", 1, True, 20, None, 200, 100, 0, 0),  # the cost is not known
    ("t2", 2, True, 22, 0.22, 210, 100, 0, 0),
    ("t2", 3, False, 24, 0.24, 220, 110, 0, 0),
    ("t2", 4, True, 26, 0.26, 230, 110, 0, 0),
    ("t2", 5, True, 28, 0.28, 240, 120, 0, 0),  # the control has no fifth repeat
]
_WITHOUT = [
    ("t1", 1, False, 11, 0, 120, 60, 0, 0),
    ("t1", 2, True, 12, 0, 100, 60, 0, 0),
    ("t1", 3, False, 13, 0, 130, 70, 0, 0),
    ("t1", 4, True, 20, 0, 140, 60, 0, 0),
    ("t1", 5, True, 18, 0, 150, 60, 0, 0),
    ("t2", 1, False, 25, 0, 210, 110, 0, 0),
    ("t2", 2, True, 24, 0, 200, 90, 0, 0),
    ("t2", 3, True, 22, 0, 230, 120, 0, 0),
    ("t2", 4, False, 30, 0, 240, 130, 0, 0),
]


def worked_example() -> list[Row]:
    """Two tasks, five repeats, one missing pair, one infrastructure failure, one null cost, one arm for nothing."""
    rows = []
    for arm, runs in (("with_tool", _WITH), ("without_tool", _WITHOUT)):
        for task, repeat, success, seconds, cost, sent, received, read, written in runs:
            rows.append(
                row(
                    task,
                    arm,
                    repeat,
                    success=success,
                    duration_seconds=seconds,
                    total_cost_usd=cost,
                    input_tokens=sent,
                    output_tokens=received,
                    cache_read_tokens=read,
                    cache_write_tokens=written,
                    agent_exit_code=86 if seconds == 500 else 0,
                )
            )
    return rows
