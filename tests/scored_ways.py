"""One sample, one scorer, every way to score it: library, command line, inline, posted, in a batch and by a rule."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from evenhand.cli.score import command as score_command
from evenhand.core.ids import new_id
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.scoring.apply import score_sample
from evenhand.scoring.registry import get_scorer, wire_name
from evenhand.scoring.types import ScorerInput
from tests.ab_suites import wait_for
from tests.service_harness import Client, span

Seen = tuple[str, float | str]
"""`scored` and a value, `unscored` and a reason, `failed` and an error."""


class Sample(NamedTuple):
    """What is scored: an output, what was expected, and the item's metadata."""

    output: Any
    expected: Any = None
    metadata: dict[str, Any] | None = None

    @property
    def fits_a_span(self) -> bool:
        """Whether a span can carry the metadata, which is flat there."""
        return all(not isinstance(value, dict | list) for value in (self.metadata or {}).values())


def seen(outcome: Outcome) -> Seen:
    match outcome:
        case Scored(value=value):
            return "scored", value
        case Unscored(reason=reason):
            return "unscored", reason
        case Failed(error=error):
            return "failed", error


def not_scored(answer: dict[str, Any]) -> Seen:
    """What an answer without a score says."""
    if "error" in answer:
        assert answer["error"] == answer["reason"]
        assert answer["message"]
        return "failed", answer["error"]
    return "unscored", answer["reason"]


def by_library(name: str, options: dict[str, Any], samples: Iterable[Sample]) -> list[Seen]:
    scorer = get_scorer(name).configure(**options)
    return [
        seen(
            score_sample(
                scorer,
                ScorerInput(response=one.output, target=one.expected, metadata=one.metadata or {}),
            )
        )
        for one in samples
    ]


def by_command(name: str, options: dict[str, Any], samples: Iterable[Sample], folder: Path) -> list[Seen]:
    file = folder / "samples.jsonl"
    rows = (
        {"response": one.output, "target": one.expected, "metadata": one.metadata or {}} for one in samples
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    typed = ",".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in options.items())
    spec = f"{name}:{typed}" if typed else name
    done = CliRunner().invoke(
        score_command, [str(file), "--scorer", spec, "-o", str(folder / "scores.jsonl")]
    )
    assert (folder / "scores.jsonl").exists(), done.output  # a scorer that scored nothing is no success
    lines = [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]
    found: list[Seen] = []
    for line in lines:
        [one] = line["scores"].values()
        found.append(
            (one["status"], one[{"scored": "value", "unscored": "reason", "failed": "error"}[one["status"]]])
        )
    return found


def job_end(client: Client, job_id: str) -> Seen:
    """What a job came to."""
    job: dict[str, Any] = {}

    def ended() -> bool:
        nonlocal job
        job = client.get(f"/v1/jobs/{job_id}").body
        return job["status"] in ("completed", "failed")

    wait_for(ended, 120)
    if job["status"] == "completed":
        scores = client.pages("/v1/scores", target_id=job["target_id"], target_type=job["target_type"])
        [value] = [score["value"] for score in scores if score["id"] == job["score_id"]]
        assert job["outcome"] == "scored"
        return "scored", value
    return job["outcome"], job["error"]


class Runs:
    """The samples as items of a dataset, each with one run."""

    def __init__(self, client: Client, samples: Iterable[Sample]) -> None:
        self.client = client
        self.samples = list(samples)
        items = [
            {
                "input": "q",
                **({} if one.expected is None else {"expected_output": one.expected}),
                **({} if one.metadata is None else {"metadata": one.metadata}),
            }
            for one in self.samples
        ]
        self.dataset, self.items = client.dataset(items)
        experiment = client.experiment(self.dataset)
        self.run_ids = client.runs(
            experiment,
            [
                {"dataset_item_id": item, "output": one.output}
                for item, one in zip(self.items, self.samples, strict=True)
            ],
        )

    def inline(self, name: str, options: dict[str, Any]) -> list[Seen]:
        score = {"scorer_name": name, **({"config": options} if options else {})}
        runs = [
            {"dataset_item_id": item, "output": one.output, "scores": [score]}
            for item, one in zip(self.items, self.samples, strict=True)
        ]
        experiment = self.client.experiment(self.dataset)
        answer = self.client.made(f"/v1/experiments/{experiment}/runs", {"runs": runs})
        found: dict[int, Seen] = {one["index"]: not_scored(one) for one in answer.get("skipped", [])}
        for job in answer.get("jobs", []):
            found[job["index"]] = job_end(self.client, job["job_id"])
        listed = {
            run["id"]: run for run in self.client.pages(f"/v1/experiments/{experiment}/runs", limit=200)
        }
        for index, run_id in enumerate(answer["run_ids"]):
            scores = listed[run_id]["scores"]
            assert [one["scorer_name"] for one in scores] == [name] * (
                found.get(index, ("scored",))[0] == "scored"
            )
            found.setdefault(index, ("scored", scores[0]["value"] if scores else "nothing"))
        return [found[index] for index in range(len(runs))]

    def posted(self, name: str, options: dict[str, Any]) -> list[Seen]:
        found: list[Seen] = []
        for run_id in self.run_ids:
            body = {"target_id": run_id, "target_type": "run", "scorer_name": name, "config": options}
            reply = self.client.post("/v1/scores?wait=60", body)
            assert reply.status in (200, 201), reply.raw
            found.append(("scored", reply.body["value"]) if reply.status == 201 else not_scored(reply.body))
        return found

    def batch(self, name: str, options: dict[str, Any]) -> list[Seen]:
        one = {"target_type": "run", "scorer_name": name, "config": options}
        answer = self.client.made(
            "/v1/scores/batch", {"scores": [{**one, "target_id": run_id} for run_id in self.run_ids]}
        )
        found: dict[int, Seen] = {skip["index"]: not_scored(skip) for skip in answer["skipped"]}
        for job in answer["jobs"]:
            found[job["index"]] = job_end(self.client, job["job_id"])
        for index, (run_id, score_id) in enumerate(zip(self.run_ids, answer["score_ids"], strict=True)):
            if score_id is not None:
                scores = self.client.pages("/v1/scores", target_id=run_id, limit=200)
                [value] = [score["value"] for score in scores if score["id"] == score_id]
                found[index] = ("scored", value)
        return [found[index] for index in range(len(self.run_ids))]


def _for_span(options: dict[str, Any], one: Sample) -> dict[str, Any]:
    """A span has no item: what is expected stands in the configuration."""
    return options if one.expected is None else {**options, "expected_output": one.expected}


def on_spans(client: Client, name: str, options: dict[str, Any], samples: list[Sample]) -> list[Seen]:
    """Inline on spans."""
    spans = [
        span(
            output=one.output,
            metadata=one.metadata or {},
            scores=[{"scorer_name": name, "config": _for_span(options, one)}],
        )
        for one in samples
    ]
    reply = client.spans(*spans)
    assert reply.status == 201, reply.raw
    found: dict[int, Seen] = {one["index"]: not_scored(one) for one in reply.body.get("skipped", [])}
    for job in reply.body.get("jobs", []):
        found[job["index"]] = job_end(client, job["job_id"])
    for index, one in enumerate(spans):
        if index not in found:
            [score] = client.get("/v1/scores", target_id=one["id"], target_type="span").body["items"]
            found[index] = ("scored", score["value"])
    return [found[index] for index in range(len(spans))]


def by_rule(client: Client, name: str, options: dict[str, Any], samples: list[Sample]) -> list[Seen]:
    """One rule for each sample: what is expected stands in the rule's configuration."""
    names = [f"span-{new_id()}" for _ in samples]
    for label, one in zip(names, samples, strict=True):
        body = {"project_id": client.project, "name": label, "filter": {"name": label}, "scorer_name": name}
        client.made("/v1/rules", {**body, "config": _for_span(options, one)})
    spans = [
        span(name=label, output=one.output, metadata=one.metadata or {})
        for label, one in zip(names, samples, strict=True)
    ]
    reply = client.spans(*spans)
    assert reply.status == 201, reply.raw
    jobs = {job["target_id"]: job["job_id"] for job in client.pages("/v1/jobs", project_id=client.project)}
    return [job_end(client, jobs[one["id"]]) for one in spans]


def every_way(
    client: Client, name: str, options: dict[str, Any], samples: list[Sample], folder: Path
) -> dict[str, list[Seen]]:
    """What each way comes to, in the order of the samples; ways over spans only for samples that fit one."""
    runs, wire, flat = Runs(client, samples), wire_name(name), [one for one in samples if one.fits_a_span]
    library = by_library(name, options, samples)
    return {
        "library": library,
        "command": by_command(name, options, samples, folder),
        "inline": runs.inline(wire, options),
        "posted": runs.posted(wire, options),
        "batch": runs.batch(wire, options),
        "library on spans": [
            outcome for outcome, one in zip(library, samples, strict=True) if one.fits_a_span
        ],
        "inline on spans": on_spans(client, wire, options, flat),
        "rule": by_rule(client, wire, options, flat),
    }
