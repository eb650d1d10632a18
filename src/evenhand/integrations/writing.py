"""Imported runs as run folders of our own, or as experiments of a scoring service."""

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evenhand import settings
from evenhand.client.service import ServiceClient
from evenhand.core.ids import new_id
from evenhand.core.jsontext import canonical
from evenhand.core.outcome import Scored, Tally
from evenhand.core.secret import Secret
from evenhand.core.timestamps import format_instant, now
from evenhand.integrations.comparable import as_run, scorer_names
from evenhand.integrations.port import ImportedRun, ImportedSample
from evenhand.results.writing import JsonlFile, write_json

BATCH = 500
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def write_runs(runs: Sequence[ImportedRun], folder: Path) -> list[Path]:
    """One run folder per run and scorer: FOLDER/VARIANT/SCORER. Problems have the same numbers in all of them, and
    a benchmark's name holds no variant, so that `evenhand compare FOLDER/A FOLDER/B` compares two variants."""
    order: dict[str, int] = {}
    for run in runs:
        for sample in run.samples:
            order.setdefault(sample.item, len(order))
    written: list[Path] = []
    for run in runs:
        place = _fresh(folder, run.variant or run.name, [path.parent for path in written])
        for scorer in scorer_names(run):
            name = f"{run.name} · {scorer}"
            target = _fresh(place, scorer, written)
            target.mkdir(parents=True)
            made = as_run(run, scorer, order, str(target), name)
            assert made.bundle is not None
            tally = Tally()
            with JsonlFile(target / "results.jsonl") as file:
                for one in made.samples:
                    file.write(one)
                    setattr(tally, one.status, getattr(tally, one.status) + 1)
            bundle = replace(
                made.bundle,
                run_id=new_id(),
                schema_version=1,
                created_at=format_instant(now()),
                benchmark=replace(made.bundle.benchmark, tally=tally),
            )
            write_json(target / f"eval-{bundle.run_id[:8]}.json", bundle)
            written.append(target)
    return written


def _fresh(folder: Path, name: str, taken: Sequence[Path]) -> Path:
    plain = _UNSAFE.sub("-", name).strip("-.")[:80] or "run"
    path, number = folder / plain, 2
    while path in taken:
        path, number = folder / f"{plain}-{number}", number + 1
    return path


def send_runs(
    runs: Sequence[ImportedRun], target: str, token: str | None, project: str
) -> list[dict[str, Any]]:
    """Each run as an experiment: samples with an answer as runs, with every score within 0 and 1."""
    key = Secret(token) if token else settings.load().token
    with ServiceClient(target, key) as client:
        return [_send(client, run, project) for run in runs]


def _send(client: ServiceClient, run: ImportedRun, project: str) -> dict[str, Any]:
    items: dict[str, dict[str, Any]] = {}
    for sample in run.samples:
        items.setdefault(
            sample.item,
            {
                "input": sample.item if sample.input is None else sample.input,
                "expected_output": sample.expected,
                "metadata": {"source_id": sample.item},
            },
        )
    digest = sha256(canonical(list(items.values()))).hexdigest()[:12]
    name = f"{run.name} {digest}"
    found = client.find_dataset(project, name)
    if found is None or found["item_count"] != len(items):
        found = client.create_dataset(project, name, items.values(), description=f"imported from {run.tool}")
    ids = {item["metadata"]["source_id"]: item["id"] for item in client.dataset_items(found["id"])}
    label = " · ".join(word for word in (run.name, run.variant, run.tool) if word)
    metadata = {"tool": run.tool, "treatment": run.treatment}
    experiment = client.create_experiment(project, label, found["id"], metadata)
    rows = [_row(sample, ids[sample.item]) for sample in run.samples if sample.output is not None]
    for start in range(0, len(rows), BATCH):
        client.submit_runs(experiment["id"], rows[start : start + BATCH])
    client.complete_experiment(experiment["id"])
    return {
        "experiment_id": experiment["id"],
        "dataset_id": found["id"],
        "runs": len(rows),
        "without_answer": len(run.samples) - len(rows),
    }


def _row(sample: ImportedSample, item: str) -> dict[str, Any]:
    scores = []
    for name, outcome in sample.outcomes.items():
        if isinstance(outcome, Scored) and not isinstance(outcome.value, str) and 0 <= outcome.value <= 1:
            score: dict[str, Any] = {"scorer_name": name, "value": outcome.value}
            reason = outcome.details.get("reason") or outcome.details.get("explanation")
            if isinstance(reason, str) and reason:
                score["rationale"] = reason
            scores.append(score)
    return {"dataset_item_id": item, "output": sample.output, "repeat": sample.repeat, "scores": scores}
