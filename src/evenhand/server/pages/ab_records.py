"""Two experiments as the arms of an A/B comparison: their runs as records of `evenhand.ab`.

`evenhand ab record` writes what was measured into a run's output. Of other runs success is a score, and duration, cost
and tokens are those of the run's trace.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from evenhand.core.objects.datasets import DatasetItem
from evenhand.core.objects.experiments import Experiment, Run
from evenhand.core.objects.traces import TraceRow
from evenhand.server.pages.values import one_line
from evenhand.store.connection import Connection
from evenhand.store.datasets import read_items
from evenhand.store.runs import RunFilter, list_runs
from evenhand.store.traces import traces_by_id

if TYPE_CHECKING:
    from evenhand.ab.report import AbReport

MOST_RUNS = 5_000
"""Runs of one experiment that a page reads; `evenhand ab analyze` takes any number."""
PAGE = 200
SUCCESS = "success"
"""The scorer under which `evenhand ab record` keeps success."""
SOLVED = 1.0
"""A run with at least this score solved its task."""
KEPT_REPORTS = 16
_AMOUNTS = (
    "duration_seconds", "total_cost_usd", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "step_count", "tool_call_count", "acceptance_cmd_count",
)  # fmt: skip


class Arms(Struct, frozen=True, kw_only=True):
    """The records of two experiments, and what could not become one."""

    treatment: str
    control: str
    records: list[dict[str, Any]]
    scorers: Sequence[str]
    """Scorers that can say what success is."""
    scorer: str
    """The one that says it here."""
    unscored: int
    """Runs without a number of that scorer: whether they solved their task is not known."""
    undated: int
    """Runs without a known duration."""
    cut: bool
    """Whether an experiment has more runs than a page reads."""


def read_arms(
    connection: Connection, control: Experiment, treatment: Experiment, scorer: str, project_id: str
) -> Arms:
    """The runs of both experiments as records."""
    runs = {one.id: _runs(connection, one, project_id) for one in (control, treatment)}
    both = [run for found in runs.values() for run in found]
    scorers = _numeric(both)
    chosen = scorer if scorer in scorers else SUCCESS if SUCCESS in scorers else next(iter(scorers), "")
    items = read_items(connection, list({run.dataset_item_id for run in both}), scope=project_id)
    traces = traces_by_id(
        connection, [run.trace_id for run in both if run.trace_id is not None], project_id=project_id
    )
    names = (treatment.name, control.name)
    if names[0] == names[1]:
        names = (f"{names[0]} (candidate)", f"{names[1]} (base)")
    records, unscored, undated = [], 0, 0
    for experiment, arm in ((treatment, names[0]), (control, names[1])):
        for run in runs[experiment.id]:
            success = _success(run, chosen)
            amounts = _amounts(run, traces)
            unscored += success is None
            undated += success is not None and amounts["duration_seconds"] is None
            if success is not None and amounts["duration_seconds"] is not None:
                task = _task(items.get(run.dataset_item_id), run.dataset_item_id)
                records.append(
                    {
                        "task_id": task,
                        "arm": arm[:500],
                        "repeat": run.repeat + 1,
                        "success": success,
                        **amounts,
                    }
                )
    return Arms(
        treatment=names[0][:500],
        control=names[1][:500],
        records=records,
        scorers=scorers,
        scorer=chosen,
        unscored=unscored,
        undated=undated,
        cut=any(len(found) >= MOST_RUNS for found in runs.values()),
    )


def _runs(connection: Connection, experiment: Experiment, project_id: str) -> list[Run]:
    found: list[Run] = []
    while len(found) < MOST_RUNS:
        rows = list_runs(
            connection,
            experiment.id,
            scope=project_id,
            wanted=RunFilter(),
            after=(found[-1].id,) if found else None,
            limit=PAGE,
        )
        if not rows:
            break
        found += [run for run, _ in rows]
    return found[:MOST_RUNS]


def _numeric(runs: Sequence[Run]) -> list[str]:
    return sorted(
        {score.scorer_name for run in runs for score in run.scores if not isinstance(score.value, str)}
    )


def _success(run: Run, scorer: str) -> bool | None:
    newest = next((one for one in reversed(run.scores) if one.scorer_name == scorer), None)
    if newest is None or isinstance(newest.value, str):
        return None
    return newest.value >= SOLVED


def _amounts(run: Run, traces: Mapping[str, TraceRow]) -> dict[str, float | None]:
    """What the run took: from its output, where `evenhand ab record` wrote it, otherwise from its trace."""
    found: dict[str, float | None] = dict.fromkeys(_AMOUNTS)
    output = msgspec.json.decode(bytes(run.output))
    if isinstance(output, dict) and isinstance(output.get("duration_seconds"), int | float):
        for name in _AMOUNTS:
            value = output.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                found[name] = float(value)
        return found
    trace = traces.get(run.trace_id or "")
    if trace is not None and trace.duration_ms is not None:
        found["duration_seconds"] = trace.duration_ms / 1000
        if trace.cost_usd is not None and not trace.cost_unknown_calls:
            found["total_cost_usd"] = trace.cost_usd
        if trace.tokens:
            # A trace knows the sum without those of caches, and the report shows nothing but sums.
            found["input_tokens"], found["output_tokens"] = float(trace.tokens), 0.0
    return found


def _task(item: DatasetItem | None, item_id: str) -> str:
    """The task's name, unique by the end of the item's id where it is made from the question."""
    if item is None:
        return item_id
    metadata = msgspec.json.decode(bytes(item.metadata)) if item.metadata is not None else None
    if isinstance(metadata, dict) and isinstance(metadata.get("task_id"), str) and metadata["task_id"]:
        return str(metadata["task_id"])[:500]
    return f"{one_line(item.input, 80)} ({item_id[-6:]})"


class Reports:
    """Reports of the arms that were last looked at: an analysis takes longer than a page should."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, AbReport] = OrderedDict()

    def of(self, arms: Arms) -> "AbReport":
        """The report of the arms; `InputError` where two runs are one repeat of one task."""
        key = hashlib.blake2b(
            msgspec.json.encode([arms.treatment, arms.control, arms.records]), digest_size=16
        ).digest()
        found = self._kept.get(key)
        if found is None:
            from evenhand.ab.analysis import analyze  # numpy: not needed to start

            found = analyze(arms.records, arms.treatment, arms.control)
            self._kept[key] = found
            while len(self._kept) > KEPT_REPORTS:
                self._kept.popitem(last=False)
        return found


def why_not(arms: Arms) -> str:
    """Why there is no report of two experiments; empty where there is one."""
    if not arms.scorers:
        return (
            "No run of these experiments has a score that is a number, so nothing says which ones succeeded."
        )
    if not arms.records:
        return (
            "No run of these experiments has a known duration: an A/B report also compares time, cost and tokens. "
            "Record runs with `evenhand ab record`, or link them to their traces."
        )
    return ""
