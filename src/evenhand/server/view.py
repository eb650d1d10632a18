"""Runs on disk as the service shows runs: stored in a temporary database and served, read-only, on loopback."""

import secrets
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct

from evenhand.core.errors import InputError
from evenhand.core.jsontext import canonical, encode_text
from evenhand.core.outcome import Outcome, Scored
from evenhand.core.secret import Secret
from evenhand.core.terminal import printable
from evenhand.integrations.comparable import is_foreign
from evenhand.integrations.port import ImportedRun, ImportedSample
from evenhand.integrations.registry import read_foreign
from evenhand.results.reading import RunResults, read_run, run_folders
from evenhand.results.records import SampleResult
from evenhand.server.config import ServerConfig
from evenhand.server.http.auth import LOGIN_LINK, Access
from evenhand.server.serve import serve_database
from evenhand.store.connection import Connection
from evenhand.store.database import open_database
from evenhand.store.datasets import ItemText, add_items, create_dataset, list_items
from evenhand.store.experiments import complete_experiment, create_experiment
from evenhand.store.projects import create_project
from evenhand.store.runs import NewRun, add_runs
from evenhand.store.scores import Measurement

PROJECT = "view"
BATCH = 1_000
_QUESTIONS = ("question", "prompt", "problem", "input", "query")


class Shown(Struct, frozen=True, kw_only=True):
    """What became of one run."""

    name: str
    runs: int
    """Samples with an answer."""
    without_answer: int
    """Samples without one: an experiment has no place for them."""
    without_score: int
    """Answers that some scorer gave no number from 0 to 1 and no label."""


def read_runs(path: Path) -> list[ImportedRun]:
    """The runs at a path: a run's folder, a folder of such folders, or a result file of another tool."""
    if is_foreign(str(path)):
        return read_foreign(path)
    found = [_own(read_run(folder), name) for name, folder in sorted(run_folders(path).items())]
    if not found:
        raise InputError("no runs in this folder: a run has a file results.jsonl", path=path)
    return found


def _own(run: RunResults, name: str) -> ImportedRun:
    return ImportedRun(tool="evenhand", name=name, samples=[_own_sample(row) for row in run.samples])


def _own_sample(row: SampleResult) -> ImportedSample:
    asked = row.input if row.input is not UNSET else None
    for key in _QUESTIONS:
        asked = row.metadata.get(key) if asked is None else asked
    outcomes: dict[str, Outcome] = dict(row.outcomes)
    if not outcomes and row.reward is not None:
        outcomes = {"reward": Scored(value=row.reward, details=row.scoring_details)}
    return ImportedSample(
        item=str(row.problem_idx),
        repeat=row.repeat,
        input=asked if asked is not None else f"problem {row.problem_idx}",
        output=row.model_response,
        expected=row.expected_answer,
        outcomes=outcomes,
        metadata={"category": row.category} if row.category is not None else {},
    )


def store_runs(connection: Connection, sources: Sequence[tuple[str, ImportedRun]]) -> list[Shown]:
    """Each run as an experiment, under the name of where it came from; runs over the same items share a dataset."""
    create_project(connection, project_id=PROJECT, name="Runs on disk")
    datasets: dict[str, tuple[str, dict[str, str]]] = {}
    return [_store(connection, label, run, datasets) for label, run in sources]


def _store(
    connection: Connection, label: str, run: ImportedRun, datasets: dict[str, tuple[str, dict[str, str]]]
) -> Shown:
    first: dict[str, ImportedSample] = {}
    for sample in run.samples:
        first.setdefault(sample.item, sample)
    digest = sha256(canonical([[item, one.input, one.expected] for item, one in first.items()])).hexdigest()
    if digest not in datasets:
        datasets[digest] = _dataset(connection, f"{run.name} {digest[:8]}", first)
    dataset_id, ids = datasets[digest]
    experiment = create_experiment(
        connection,
        project_id=PROJECT,
        name=label[:250],
        dataset_id=dataset_id,
        metadata=encode_text({"tool": run.tool, "treatment": run.treatment}),
        auto_complete=False,
    )
    rows = [
        NewRun(
            dataset_item_id=ids[sample.item],
            repeat=sample.repeat,
            output=encode_text(sample.output),
            trace_id=None,
            scores=[(one.scorer_name, one) for one in _measurements(sample)],
        )
        for sample in run.samples
        if sample.output is not None
    ]
    for start in range(0, len(rows), BATCH):
        add_runs(connection, experiment.id, rows[start : start + BATCH], scope=PROJECT)
    complete_experiment(connection, experiment.id, scope=PROJECT)
    return Shown(
        name=label,
        runs=len(rows),
        without_answer=len(run.samples) - len(rows),
        without_score=sum(
            len(_measurements(one)) < max(1, len(one.outcomes))
            for one in run.samples
            if one.output is not None
        ),
    )


def _dataset(
    connection: Connection, name: str, items: dict[str, ImportedSample]
) -> tuple[str, dict[str, str]]:
    made = create_dataset(connection, project_id=PROJECT, name=name[:250], description=None)
    texts = [
        ItemText(
            input=encode_text(item if one.input is None else one.input),
            expected_output=None if one.expected is None else encode_text(one.expected),
            metadata=encode_text({**_flat(one.metadata), "source_id": item}),
        )
        for item, one in items.items()
    ]
    add_items(connection, made.id, texts, scope=PROJECT)
    listed = list_items(connection, made.id, scope=PROJECT, after=None, limit=len(texts))
    return made.id, {item: stored.id for item, stored in zip(items, listed, strict=True)}


def _flat(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if isinstance(value, str | int | float | bool)}


def _measurements(sample: ImportedSample) -> list[Measurement]:
    found = []
    for name, outcome in sample.outcomes.items():
        if not isinstance(outcome, Scored):
            continue
        value = outcome.value
        if value != "" if isinstance(value, str) else 0 <= value <= 1:
            reason = outcome.details.get("reason") or outcome.details.get("explanation")
            found.append(
                Measurement(
                    scorer_name=name,
                    value=value if isinstance(value, str) else float(value),
                    rationale=reason if isinstance(reason, str) else None,
                )
            )
    return found


def view(paths: Iterable[Path], *, port: int, announce: Callable[[str], None]) -> None:
    """Show the runs at `paths` until a signal stops it. Nothing can be changed, and nothing is left behind."""
    sources = [
        (
            f"{path.name or path.resolve().name} · {run.name}" + (f" · {run.variant}" if run.variant else ""),
            run,
        )
        for path in paths
        for run in read_runs(path)
    ]
    with tempfile.TemporaryDirectory(prefix="evenhand-view-") as folder:
        config = ServerConfig(
            database=f"sqlite:///{folder}/view.db",
            port=port,
            admin_token=Secret(secrets.token_urlsafe(32)),  # nobody is told: there is only the link
        )
        database = open_database(config.database)
        for shown in database.write_now(partial(store_runs, sources=sources)):
            left = [f"{shown.without_answer:,} without an answer left out"] if shown.without_answer else []
            left += [f"{shown.without_score:,} without a score"] if shown.without_score else []
            announce(f"{printable(shown.name)}: {shown.runs:,} answers{''.join(f', {one}' for one in left)}")
        reader = Access(token_id=LOGIN_LINK, role="read", scope=PROJECT)
        serve_database(config, database, reader, f"/projects/{PROJECT}/dashboard", announce)
