"""A finished run as dataset, experiment, runs and scores of the scoring service."""

from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

from msgspec import UNSET

from evenhand.client.service import ServiceClient
from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.core.outcome import Scored
from evenhand.results.bundle import Bundle
from evenhand.results.reading import read_bundle, read_samples
from evenhand.results.records import SampleResult

BATCH = 500
"""Runs per call."""


class Recorded(dict[str, Any]):
    """What was sent: ids and counts, for people and for JSON."""


def record_run(folder: Path, client: ServiceClient, project: str) -> Recorded:
    """Send the run in `folder`. Sending the same results again changes nothing."""
    bundle = _bundle(folder)
    content = sha256((folder / "results.jsonl").read_bytes()).hexdigest()
    dataset_id, items = _dataset(folder, client, project, bundle)
    model = bundle.config.get("model", {}).get("id", "")
    experiment = client.create_experiment(
        project,
        f"{bundle.benchmark.name} · {model} · {bundle.run_id[-8:]}",
        dataset_id,
        _metadata(bundle),
        key=f"{content[:40]}-experiment",
    )
    sent = left_out = 0
    for number, batch in enumerate(_batches(folder, items, _scorer_name(bundle))):
        runs = [run for run in batch if run is not None]
        left_out += len(batch) - len(runs)
        if runs:
            client.submit_runs(experiment["id"], runs, key=f"{content[:40]}-runs-{number}")
            sent += len(runs)
    client.complete_experiment(experiment["id"], key=f"{content[:40]}-complete")
    return Recorded(experiment_id=experiment["id"], dataset_id=dataset_id, runs=sent, without_answer=left_out)


def _bundle(folder: Path) -> Bundle:
    found = sorted(folder.glob("eval-*.json"))
    if not found:
        raise InputError("there is no finished run here", path=folder)
    return read_bundle(found[-1])


def _dataset(folder: Path, client: ServiceClient, project: str, bundle: Bundle) -> tuple[str, dict[int, str]]:
    """The dataset of the run's problems, made unless it is there, and its items by problem."""
    problems = list(_items(folder))
    digest = sha256(jsontext.canonical(problems)).hexdigest()[:12]
    name = f"{bundle.benchmark.name} {digest}"
    found = client.find_dataset(project, name)
    if found is None or found["item_count"] != len(problems):
        found = client.create_dataset(
            project, name, problems, description=str(bundle.config.get("dataset") or "")
        )
    items = {item["metadata"]["problem_idx"]: item["id"] for item in client.dataset_items(found["id"])}
    return found["id"], items


def _items(folder: Path) -> Iterator[dict[str, Any]]:
    """The problems, from the trajectories: each once, as it was asked."""
    last = None
    samples = read_samples(folder / "results.jsonl")
    with (folder / "trajectories.jsonl").open("rb") as file:
        for line, sample in zip_longest(file, samples):
            if line is None or sample is None:
                raise InputError("results.jsonl and trajectories.jsonl differ in length", path=folder)
            if sample.problem_idx == last:
                continue
            last = sample.problem_idx
            asked = jsontext.decode(line)["messages"]
            metadata: dict[str, Any] = {"problem_idx": sample.problem_idx}
            if sample.category is not None:
                metadata["category"] = sample.category
            yield {
                "input": _input(sample, asked),
                "expected_output": sample.expected_answer,
                "metadata": metadata,
            }


def _input(sample: SampleResult, asked: list[dict[str, Any]]) -> Any:
    """What a task was given; else what the model was sent."""
    if sample.input is not UNSET:
        return sample.input
    return asked[0]["content"] if len(asked) == 1 else {"messages": asked}


def _batches(folder: Path, items: dict[int, str], scorer: str) -> Iterator[list[dict[str, Any] | None]]:
    batch: list[dict[str, Any] | None] = []
    for sample in read_samples(folder / "results.jsonl"):
        batch.append(_run(sample, items[sample.problem_idx], scorer))
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _run(sample: SampleResult, item: str, scorer: str) -> dict[str, Any] | None:
    if sample.model_response is None:
        return None  # the service keeps outputs; a call that failed has none
    run: dict[str, Any] = {"dataset_item_id": item, "output": sample.model_response, "repeat": sample.repeat}
    if sample.outcomes:
        run["scores"] = [
            {"scorer_name": name, "value": one.value}
            for name, one in sample.outcomes.items()
            if isinstance(one, Scored) and not isinstance(one.value, str) and 0.0 <= one.value <= 1.0
        ]
        if not run["scores"]:
            del run["scores"]
    elif sample.reward is not None and 0.0 <= sample.reward <= 1.0:
        score: dict[str, Any] = {"scorer_name": scorer, "value": sample.reward}
        reason = sample.scoring_details.get("reasoning")
        if isinstance(reason, str) and reason:
            score["rationale"] = reason
        run["scores"] = [score]
    return run


def _scorer_name(bundle: Bundle) -> str:
    return str(bundle.config.get("scorer", {}).get("name") or bundle.benchmark.name)


def _metadata(bundle: Bundle) -> dict[str, Any]:
    tally = bundle.benchmark.tally
    return {
        "run_id": bundle.run_id,
        "benchmark": bundle.benchmark.name,
        "model": bundle.config.get("model", {}).get("id"),
        "hashes": bundle.hashes,
        "scorer": _scorer_name(bundle),
        "repeats": bundle.benchmark.repeats,
        "failed": tally.failed if tally else None,
        "unscored": tally.unscored if tally else None,
    }
