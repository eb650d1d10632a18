"""Runs of experiments, with inline scores."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Raw, Struct, field

from evenhand.core.errors import Refusal
from evenhand.core.objects.experiments import Run, RunsAccepted
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, json_text
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.server.jobs.computing import compute_scores, run_off_loop
from evenhand.server.jobs.score_requests import (
    InlineScore,
    ScoreToCompute,
    malformed_score,
    quick_to_read,
    read_score,
)
from evenhand.server.jobs.scorers import Scorers
from evenhand.store import runs as store
from evenhand.store.datasets import Expectation, expectations
from evenhand.store.inline import ScoreResult
from evenhand.store.jobs import JobRequest
from evenhand.store.runs import NewRun, RunFilter
from evenhand.store.scores import Measurement
from evenhand.store.targets import Material, Target

LISTING = "runs"
MAX_BATCH = 10_000
UNKNOWN = Expectation(None, None)
"""An item that is not there: the run is refused when it is stored."""


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
    scores: list[Measurement | ScoreToCompute]


async def create(call: Call, body: RunBatch) -> Answer:
    experiment_id = call.params["experiment_id"]

    def read_all() -> list[_Given]:
        return [_read_run(call.service.scorers, index, run) for index, run in enumerate(body.runs)]

    scores = (score for run in body.runs for score in run.scores or ())
    quick = quick_to_read(scores, call.service.scorers)
    runs = await _with_scores(call, read_all() if quick else await run_off_loop(read_all))
    answer = await call.write(
        partial(store.add_runs, experiment_id=experiment_id, runs=runs, scope=call.scope)
    )
    if any(isinstance(result, JobRequest) for run in runs for _, result in run.scores):
        call.service.jobs.wake()
    return answer


def _read_run(scorers: Scorers, index: int, given: RunCreate) -> _Given:
    try:
        output = json_text(given.output, "output")
        if output is None:
            raise Refusal("INVALID_REQUEST", "'output' is required and cannot be null.", {"field": "output"})
        scores = [read_score(score, scorers) for score in given.scores or ()]
    except Refusal as error:
        raise Refusal(error.code, f"runs[{index}]: {error}", {**error.details, "index": index}) from None
    return _Given(given.dataset_item_id, given.repeat or 0, output, given.trace_id, scores)


async def _with_scores(call: Call, given: list[_Given]) -> list[NewRun]:
    """The runs with what their scores come to."""
    wanted = [(run, score) for run in given for score in run.scores if isinstance(score, ScoreToCompute)]
    computed: Iterator[ScoreResult] = iter(())
    if wanted:
        ids = sorted({run.item_id for run, _ in wanted})
        known = await call.read(lambda connection: expectations(connection, ids, scope=call.scope))
        pairs = [(score, _material(run, known.get(run.item_id, UNKNOWN))) for run, score in wanted]
        limit = call.service.config.limits.scoring_seconds
        computed = iter(await compute_scores(pairs, seconds=limit))
    return [
        NewRun(
            dataset_item_id=run.item_id,
            repeat=run.repeat,
            output=run.output,
            trace_id=run.trace_id,
            scores=[
                (score.scorer_name, score if isinstance(score, Measurement) else next(computed))
                for score in run.scores
            ],
        )
        for run in given
    ]


def _material(run: _Given, known: Expectation) -> Material:
    return Material(
        target=Target(type="run", id="", project_id=""),
        output=run.output,
        input=None,
        expected_output=known.expected_output,
        metadata=known.metadata,
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
        operation="create_runs",
        method="POST",
        path="/v1/experiments/{experiment_id}/runs",
        handler=create,
        audience="token:write",
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
        explain_malformed=malformed_score,
        summary="Store runs with their scores, all or none",
        tag="Experiments",
    ),
    Route(
        operation="list_runs",
        method="GET",
        path="/v1/experiments/{experiment_id}/runs",
        handler=list_all,
        audience="token:read",
        query=RunQuery,
        response=Page[Run],
        errors=("NOT_FOUND",),
        summary="List an experiment's runs with their scores",
        tag="Experiments",
    ),
)
