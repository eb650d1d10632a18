"""Runs of experiments, with inline scores."""

import asyncio
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from evenhand.core.errors import Refusal
from evenhand.core.objects.experiments import Run, RunsAccepted
from evenhand.server.answers import Answer, Page, json_answer
from evenhand.server.call import Call
from evenhand.server.fields import Name, json_text
from evenhand.server.measuring import (
    JUDGE,
    InlineScore,
    Unmeasured,
    Wanted,
    malformed_score,
    measure,
    read_score,
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


async def create(call: Call, body: RunBatch) -> Answer:
    experiment_id = call.params["experiment_id"]
    read = [_read_run(call.service.jobs, index, given) for index, given in enumerate(body.runs)]
    judged = [[score for score in wanted if score.scorer_name == JUDGE] for _, wanted in read]
    runs = await _with_rules(
        call, [(run, [score for score in wanted if score.scorer_name != JUDGE]) for run, wanted in read]
    )

    def work(connection: Connection) -> RunsAccepted:
        accepted, targets = store.add_runs(connection, experiment_id, runs, scope=call.scope)
        add_jobs(connection, judge_jobs(zip(targets, judged, strict=True)))
        return accepted

    answer = await call.write(work)
    if any(judged):
        call.service.jobs.wake()
    return answer


def _read_run(jobs: JobRunner, index: int, given: RunCreate) -> tuple[NewRun, list[Wanted]]:
    try:
        output = json_text(given.output, "output")
        if output is None:
            raise Refusal("INVALID_REQUEST", "'output' is required and cannot be null.", {"field": "output"})
        scores = [read_score(score) for score in given.scores or ()]
        wanted = [score for score in scores if isinstance(score, Wanted)]
        for score in wanted:
            if score.scorer_name == JUDGE:
                jobs.check_judge(score.config)
    except Refusal as error:
        raise Refusal(error.code, f"runs[{index}]: {error}", {**error.details, "index": index}) from None
    run = NewRun(
        dataset_item_id=given.dataset_item_id,
        repeat=given.repeat or 0,
        output=output,
        trace_id=given.trace_id,
        measurements=[score for score in scores if isinstance(score, Measurement)],
    )
    return run, wanted


async def _with_rules(call: Call, read: list[tuple[NewRun, list[Wanted]]]) -> list[NewRun]:
    """The runs with what the rules among their scores come to; what has nothing to compare with is left out."""
    if not any(wanted for _, wanted in read):
        return [run for run, _ in read]
    ids = sorted({run.dataset_item_id for run, wanted in read if wanted})
    expected = await call.read(lambda connection: expected_outputs(connection, ids, scope=call.scope))

    def run_all() -> list[NewRun]:
        return [_with_own_rules(run, wanted, expected.get(run.dataset_item_id)) for run, wanted in read]

    return await asyncio.to_thread(run_all)


def _with_own_rules(run: NewRun, wanted: list[Wanted], expected: str | None) -> NewRun:
    target = Target(type="run", id="", project_id="")
    material = Material(target=target, output=run.output, input=None, expected_output=expected)
    found = [measure(rule, material) for rule in wanted]
    measured = [m for m in found if not isinstance(m, Unmeasured)]
    return NewRun(
        dataset_item_id=run.dataset_item_id,
        repeat=run.repeat,
        output=run.output,
        trace_id=run.trace_id,
        measurements=[*run.measurements, *measured],
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
