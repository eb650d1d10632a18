"""Scores: stored as given, or computed by a scorer."""

from datetime import timedelta
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from evenhand.core.errors import Refusal
from evenhand.core.objects.datasets import Deleted
from evenhand.core.objects.jobs import JobAccepted
from evenhand.core.objects.scores import (
    BatchReport,
    ListedScore,
    NotScored,
    Score,
    ScoreHistory,
    ScorerHistory,
    Source,
    TargetType,
)
from evenhand.core.timestamps import format_instant, now
from evenhand.server.api.jobs import WaitQuery, submit_job
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import instant_text, just_after
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.server.jobs.computing import compute_scores, run_off_loop
from evenhand.server.jobs.score_requests import (
    ScoreCreate,
    ScoreToCompute,
    malformed_score,
    quick_to_read,
    read_score,
)
from evenhand.store import scores as store
from evenhand.store.connection import Connection
from evenhand.store.deleting import delete_score
from evenhand.store.inline import BatchEntry, ScoreResult, store_batch, why
from evenhand.store.jobs import JobRequest
from evenhand.store.pages import LAST
from evenhand.store.projects import not_found
from evenhand.store.score_hours import list_hours, scorers_of_project
from evenhand.store.scores import Measurement, ScoreRequest
from evenhand.store.targets import Material, TargetName, find_targets, require_material

LISTING = "scores"
PROJECT_LISTING = "project_scores"
WEEK = timedelta(days=7)
MAX_BATCH = 10_000


class ScoreBatch(Struct, frozen=True, kw_only=True):
    """Many scores: all are stored, or none."""

    scores: Annotated[list[ScoreCreate], Meta(min_length=1, max_length=MAX_BATCH)]
    """In any order, for any targets."""


class ScoreQuery(Paging, frozen=True, kw_only=True):
    """Which scores are listed: those of a target, or those of a project."""

    target_id: str | None = None
    """The run or span; required unless a project is named."""
    target_type: Literal["run", "span"] | None = None
    """Which of the two; with `target_id`, a run is looked for first when absent."""
    trace_id: str | None = None
    """A span's trace; needed where several spans have its id."""
    project_id: str | None = None
    """The project: without `target_id`, all its scores are listed, newest first."""
    scorer_name: str | None = None
    """Only this scorer's."""
    min_value: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Of a project: only numbers of at least this; needs `scorer_name`."""
    max_value: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Of a project: only numbers of at most this; needs `scorer_name`."""
    label: str | None = None
    """Of a project: only this label."""
    source: Source | None = None
    """Of a project: only those that a `rule`, a `judge`, a `human` or something else (`custom`) computed."""
    stored_after: str | None = field(default=None, name="after")
    """Of a project: stored after this instant (ISO 8601)."""
    stored_before: str | None = field(default=None, name="before")
    """Of a project: stored before this instant (ISO 8601)."""


class HistoryQuery(Struct, frozen=True, kw_only=True):
    """Which hours of a project's scores."""

    project_id: str | None = None
    """The project; required."""
    scorer_name: str | None = None
    """Only this scorer."""
    since: str | None = field(default=None, name="after")
    """From the hour of this instant on (ISO 8601); a week ago when absent."""
    until: str | None = field(default=None, name="before")
    """Hours that begin before this instant (ISO 8601)."""


async def create(call: Call, body: ScoreCreate, query: WaitQuery) -> Answer:
    scorers = call.service.scorers
    if quick_to_read([body], scorers):
        read = read_score(body, scorers)
    else:
        read = await run_off_loop(lambda: read_score(body, scorers))
    if isinstance(read, Measurement):
        return await _store(call, body, read)
    if read.prepared.as_job:
        return await _submit(call, body, read.job, query)
    [result] = await _compute(call, [(body, read)])
    match result:
        case Measurement():
            return await _store(call, body, result)
        case JobRequest():
            return await _submit(call, body, result, query)
        case _:
            reason, error, message = why(result)
            return await call.respond_idempotently(
                NotScored(score=None, reason=reason, error=error, message=message)
            )


async def _store(call: Call, body: ScoreCreate, measurement: Measurement) -> Answer:
    request = ScoreRequest(target=body.target(call.scope), measurement=measurement)
    return await call.write_item(store.store_requests, request)


async def _submit(call: Call, body: ScoreCreate, request: JobRequest, query: WaitQuery) -> Answer:
    return await submit_job(call, target=body.target(call.scope), request=request, wait=query.wait)


async def create_batch(call: Call, body: ScoreBatch) -> Answer:
    def read_all() -> list[Measurement | ScoreToCompute]:
        return [_read_numbered(call, index, given) for index, given in enumerate(body.scores)]

    quick = quick_to_read(body.scores, call.service.scorers)
    read = read_all() if quick else await run_off_loop(read_all)
    wanted = [(body.scores[i], one) for i, one in enumerate(read) if isinstance(one, ScoreToCompute)]
    computed = iter(await _compute(call, wanted) if wanted else ())
    results = [one if isinstance(one, Measurement) else next(computed) for one in read]
    entries = [
        BatchEntry(target=given.target(call.scope), result=result)
        for given, result in zip(body.scores, results, strict=True)
    ]
    answer = await call.write(partial(store_batch, entries=entries))
    if any(isinstance(result, JobRequest) for result in results):
        call.service.jobs.wake()
    return answer


def _read_numbered(call: Call, index: int, given: ScoreCreate) -> Measurement | ScoreToCompute:
    try:
        return read_score(given, call.service.scorers)
    except Refusal as error:
        raise Refusal(error.code, f"scores[{index}]: {error}", {**error.details, "index": index}) from None


async def _compute(call: Call, wanted: list[tuple[ScoreCreate, ScoreToCompute]]) -> list[ScoreResult]:
    """What the scores come to; `NOT_FOUND` for a target that does not exist."""
    asked = [body.target(call.scope) for body, _ in wanted]
    materials: list[Material] = await call.read(lambda connection: require_material(connection, asked))
    pairs = [(score, material) for (_, score), material in zip(wanted, materials, strict=True)]
    return await compute_scores(pairs, seconds=call.service.config.limits.scoring_seconds)


async def list_all(call: Call, query: ScoreQuery) -> Answer:
    if query.target_id:
        return await _list_of_target(call, query, query.target_id)
    if not query.project_id:
        raise Refusal(
            "INVALID_REQUEST", "Say which target (?target_id=…) or project.", {"field": "target_id"}
        )
    project_id = call.listed_project(query.project_id)
    narrow = store.ScoreFilter(
        scorer_name=query.scorer_name or None,
        target_type=query.target_type,
        min_value=query.min_value,
        max_value=query.max_value,
        label=query.label,
        source=query.source,
        since="" if query.stored_after is None else just_after("after", query.stored_after),
        until=LAST if query.stored_before is None else instant_text("before", query.stored_before),
    )
    if narrow.by_value and narrow.scorer_name is None:
        raise Refusal("INVALID_REQUEST", "Say whose values: ?scorer_name=…", {"field": "scorer_name"})
    limit, after = query.checked_limit(), query.after(PROJECT_LISTING, 2)
    rows = await call.search(
        lambda connection: store.list_project_scores(
            connection,
            project_id=project_id,
            narrow=narrow,
            before=None if after is None else (after[0], after[1]),
            limit=limit + 1,
        )
    )
    return json_answer(page_of(rows, limit, PROJECT_LISTING, lambda score: (score.created_at, score.id)))


async def _list_of_target(call: Call, query: ScoreQuery, target_id: str) -> Answer:
    limit, after = query.checked_limit(), query.after(LISTING)
    kinds: tuple[TargetType, ...] = ("run", "span") if query.target_type is None else (query.target_type,)
    names = [TargetName(kind, target_id, call.scope, query.trace_id, query.project_id) for kind in kinds]

    def work(connection: Connection) -> list[ListedScore]:
        found = find_targets(connection, names)
        target = next((one for one in found if one is not None), None)
        if target is None:
            raise not_found(kinds[0], target_id)
        if isinstance(target, Refusal):
            raise target
        return store.list_scores(
            connection,
            target=target,
            scorer_name=query.scorer_name,
            after=after[0] if after else None,
            limit=limit + 1,
        )

    return json_answer(page_of(await call.read(work), limit, LISTING, lambda score: (score.id,)))


async def get(call: Call) -> Answer:
    score_id = call.params["score_id"]
    return json_answer(
        await call.read(lambda connection: store.get_score(connection, score_id, scope=call.scope))
    )


async def delete(call: Call) -> Answer:
    return await call.write(
        partial(
            delete_score,
            score_id=call.params["score_id"],
            scope=call.scope,
            actor=call.access.token_id,
        )
    )


async def history(call: Call, query: HistoryQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    since = format_instant(now() - WEEK) if query.since is None else instant_text("after", query.since)
    until = LAST if query.until is None else instant_text("before", query.until)

    def work(connection: Connection) -> ScoreHistory:
        names = [query.scorer_name] if query.scorer_name else scorers_of_project(connection, project_id)
        listed = [
            ScorerHistory(
                scorer_name=name,
                hours=list_hours(
                    connection, project_id=project_id, scorer_name=name, since=since, until=until
                ),
            )
            for name in names
        ]
        return ScoreHistory(project_id=project_id, scorers=[one for one in listed if one.hours])

    return json_answer(await call.search(work))


ROUTES = (
    Route(
        operation="create_score",
        method="POST",
        path="/v1/scores",
        handler=create,
        audience="token:write",
        request=ScoreCreate,
        response=Score,
        status=201,
        query=WaitQuery,
        other_answers={200: NotScored, 202: JobAccepted},
        errors=("NOT_FOUND", "AMBIGUOUS_TARGET", "INVALID_SCORE_VALUE", "INVALID_SCORER_CONFIG"),
        explain_malformed=malformed_score,
        summary="Store a score, or have a scorer compute it",
        tag="Scores",
    ),
    Route(
        operation="create_scores",
        method="POST",
        path="/v1/scores/batch",
        handler=create_batch,
        audience="token:write",
        request=ScoreBatch,
        response=BatchReport,
        status=201,
        errors=("NOT_FOUND", "AMBIGUOUS_TARGET", "INVALID_SCORE_VALUE", "INVALID_SCORER_CONFIG"),
        explain_malformed=malformed_score,
        summary="Store many scores, all or none",
        tag="Scores",
    ),
    Route(
        operation="list_scores",
        method="GET",
        path="/v1/scores",
        handler=list_all,
        audience="token:read",
        query=ScoreQuery,
        response=Page[ListedScore],
        errors=("NOT_FOUND", "AMBIGUOUS_TARGET"),
        summary="List a target's scores, oldest first, or a project's, newest first",
        tag="Scores",
    ),
    Route(
        operation="get_score_history",
        method="GET",
        path="/v1/scores/history",
        handler=history,
        audience="token:read",
        query=HistoryQuery,
        response=ScoreHistory,
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="A project's scores by scorer and hour",
        tag="Scores",
    ),
    Route(
        operation="get_score",
        method="GET",
        path="/v1/scores/{score_id}",
        handler=get,
        audience="token:read",
        response=Score,
        errors=("NOT_FOUND",),
        summary="Read a score",
        tag="Scores",
    ),
    Route(
        operation="delete_score",
        method="DELETE",
        path="/v1/scores/{score_id}",
        handler=delete,
        audience="token:write",
        response=Deleted,
        errors=("NOT_FOUND",),
        summary="Delete a score; every number that counts it is as if it had never been",
        tag="Scores",
    ),
)
