"""Runs of experiments, with inline scores."""

import asyncio
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Raw, Struct, field

from evenhand.core.errors import Refusal
from evenhand.core.objects.experiments import Run, RunsAccepted
from evenhand.server.answers import Answer, Page, json_answer
from evenhand.server.call import Call
from evenhand.server.fields import Name, json_text
from evenhand.server.measuring import (
    JUDGE,
    InlineScore,
    Wanted,
    malformed_score,
    measure,
    read_score,
    unhurried,
)
from evenhand.server.paging import Paging, page_of
from evenhand.server.routes import Route
from evenhand.server.scoring_jobs import JobRunner, judge_jobs
from evenhand.store import runs as store
from evenhand.store.connection import Connection
from evenhand.store.datasets import expected_outputs
from evenhand.store.jobs import add_jobs
from evenhand.store.runs import NewRun, RunFilter
from evenhand.store.scores import Measurement
from evenhand.store.targets import Material, Target

LISTING = "runs"
MAX_BATCH = 10_000


class RunCreate(Struct, frozen=True, kw_only=True):
    """A run to be stored."""

    dataset_item_id: Name
    """The item that was run; it must be in the experiment's dataset."""
    output: Raw = field(default_factory=Raw)
    """Any JSON but null; required."""
    trace_id: Name | None = None
    """The trace of how it came about."""
    repeat: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    """Which repetition of the item; 0 when absent."""
    scores: Annotated[list[InlineScore], Meta(max_length=1_000)] | None = None
    """Its scores."""


class RunBatch(Struct, frozen=True, kw_only=True):
    """Runs: all are stored, or none."""

    runs: Annotated[list[RunCreate], Meta(min_length=1, max_length=MAX_BATCH)]
    """Each item at most once per repeat."""


class RunQuery(Paging, frozen=True, kw_only=True):
    """Which runs are listed, and how."""

    scorer_name: str | None = None
    """Only runs that this scorer has scored."""
    min_value: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Only runs whose newest number by `scorer_name` is at least this."""
    max_value: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Only runs whose newest number by `scorer_name` is at most this."""
    sort: Literal["created_at", "value", "-value"] = "created_at"
    """By age, or by the newest number of `scorer_name`, least or greatest first."""


class _Given(NamedTuple):
    """A run that was read, with its scores in the order they came."""

    item_id: str
    repeat: int
    output: str
    trace_id: str | None
    scores: list[Measurement | Wanted]
    judged: list[Wanted]


async def create(call: Call, body: RunBatch) -> Answer:
    experiment_id = call.params["experiment_id"]
    given = await unhurried(
        (score for run in body.runs for score in run.scores or ()),
        lambda: [_read_run(call.service.jobs, index, run) for index, run in enumerate(body.runs)],
    )
    judged = [run.judged for run in given]
    runs = await _with_rules(call, given)

    def work(connection: Connection) -> RunsAccepted:
        accepted, targets = store.add_runs(connection, experiment_id, runs, scope=call.scope)
        add_jobs(connection, judge_jobs(zip(targets, judged, strict=True)))
        return accepted

    answer = await call.write(work)
    if any(judged):
        call.service.jobs.wake()
    return answer


def _read_run(jobs: JobRunner, index: int, given: RunCreate) -> _Given:
    scores: list[Measurement | Wanted] = []
    judged: list[Wanted] = []
    try:
        output = json_text(given.output, "output")
        if output is None:
            raise Refusal("INVALID_REQUEST", "'output' is required and cannot be null.", {"field": "output"})
        for score in map(read_score, given.scores or ()):
            if isinstance(score, Wanted) and score.scorer_name == JUDGE:
                jobs.check_judge(score.config)
                judged.append(score)
            else:
                scores.append(score)
    except Refusal as error:
        raise Refusal(error.code, f"runs[{index}]: {error}", {**error.details, "index": index}) from None
    return _Given(given.dataset_item_id, given.repeat or 0, output, given.trace_id, scores, judged)


async def _with_rules(call: Call, given: list[_Given]) -> list[NewRun]:
    """The runs with what the rules among their scores come to; what has nothing to compare with is left out."""
    ids = sorted({run.item_id for run in given if any(isinstance(score, Wanted) for score in run.scores)})
    if not ids:
        return [_with_own_rules(run, None) for run in given]
    expected = await call.read(lambda connection: expected_outputs(connection, ids, scope=call.scope))
    return await asyncio.to_thread(lambda: [_with_own_rules(run, expected.get(run.item_id)) for run in given])


def _with_own_rules(given: _Given, expected: str | None) -> NewRun:
    target = Target(type="run", id="", project_id="")
    material = Material(target=target, output=given.output, input=None, expected_output=expected)
    found = (score if isinstance(score, Measurement) else measure(score, material) for score in given.scores)
    return NewRun(
        dataset_item_id=given.item_id,
        repeat=given.repeat,
        output=given.output,
        trace_id=given.trace_id,
        measurements=[score for score in found if isinstance(score, Measurement)],
    )


async def list_all(call: Call, query: RunQuery) -> Answer:
    experiment_id = call.params["experiment_id"]
    by_value = query.sort != "created_at"
    filtered = by_value or query.min_value is not None or query.max_value is not None
    if filtered and not query.scorer_name:
        raise Refusal("INVALID_REQUEST", "Say whose values: ?scorer_name=…", {"field": "scorer_name"})
    wanted = RunFilter(
        scorer_name=query.scorer_name or None,
        min_value=query.min_value,
        max_value=query.max_value,
        by_value=by_value,
        descending=query.sort == "-value",
    )
    listing = f"{LISTING}:{query.sort}"
    limit, after = query.checked_limit(), query.after(listing, 2 if by_value else 1)
    if by_value and after is not None:
        _check_number(after[0])
    ask = call.read if wanted.scorer_name is None else call.search
    rows = await ask(
        lambda connection: store.list_runs(
            connection, experiment_id, scope=call.scope, wanted=wanted, after=after, limit=limit + 1
        )
    )
    page = page_of(rows, limit, listing, lambda row: (repr(row[1]), row[0].id) if by_value else (row[0].id,))
    return json_answer(
        Page(items=[run for run, _ in page.items], next_cursor=page.next_cursor, limit=page.limit)
    )


def _check_number(text: str) -> None:
    try:
        float(text)
    except ValueError:
        raise Refusal("INVALID_REQUEST", "'cursor' is not one of this list's.", {"field": "cursor"}) from None


ROUTES = (
    Route(
        method="POST",
        path="/v1/experiments/{experiment_id}/runs",
        handler=create,
        role="write",
        request=RunBatch,
        response=RunsAccepted,
        status=201,
        errors=(
            "NOT_FOUND",
            "DUPLICATE_RUN",
            "INVALID_DATASET_ITEM",
            "EXPERIMENT_COMPLETED",
            "INVALID_SCORE_VALUE",
            "INVALID_SCORER_CONFIG",
        ),
        malformed=malformed_score,
        summary="Store runs with their scores, all or none",
        tag="Experiments",
    ),
    Route(
        method="GET",
        path="/v1/experiments/{experiment_id}/runs",
        handler=list_all,
        query=RunQuery,
        response=Page[Run],
        errors=("NOT_FOUND",),
        summary="List an experiment's runs with their scores",
        tag="Experiments",
    ),
)
