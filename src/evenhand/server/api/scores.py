"""Scores: stored as given, or computed by a scorer."""

from functools import partial
from typing import Annotated, Literal

from msgspec import Meta, Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.jobs import JobAccepted
from evenhand.core.objects.scores import BatchReport, NotScored, Score, TargetType
from evenhand.server.api.jobs import WaitQuery, submit_job
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
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
from evenhand.store.inline import BatchEntry, ScoreResult, store_batch, why
from evenhand.store.jobs import JobRequest
from evenhand.store.projects import not_found
from evenhand.store.scores import Measurement, ScoreRequest
from evenhand.store.targets import Material, find_targets, require_material

LISTING = "scores"
MAX_BATCH = 10_000


class ScoreBatch(Struct, frozen=True, kw_only=True):
    """Many scores: all are stored, or none."""

    scores: Annotated[list[ScoreCreate], Meta(min_length=1, max_length=MAX_BATCH)]
    """In any order, for any targets."""


class ScoreQuery(Paging, frozen=True, kw_only=True):
    """Which scores are listed."""

    target_id: str | None = None
    """The run or span; required."""
    target_type: Literal["run", "span"] | None = None
    """Which of the two; a run is looked for first when absent."""
    scorer_name: str | None = None
    """Only this scorer's."""


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
    request = ScoreRequest(
        target_type=body.target_type, target_id=body.target_id, scope=call.scope, measurement=measurement
    )
    return await call.write_item(store.store_requests, request)


async def _submit(call: Call, body: ScoreCreate, request: JobRequest, query: WaitQuery) -> Answer:
    return await submit_job(
        call, target_type=body.target_type, target_id=body.target_id, request=request, wait=query.wait
    )


async def create_batch(call: Call, body: ScoreBatch) -> Answer:
    def read_all() -> list[Measurement | ScoreToCompute]:
        return [_read_numbered(call, index, given) for index, given in enumerate(body.scores)]

    quick = quick_to_read(body.scores, call.service.scorers)
    read = read_all() if quick else await run_off_loop(read_all)
    wanted = [(body.scores[i], one) for i, one in enumerate(read) if isinstance(one, ScoreToCompute)]
    computed = iter(await _compute(call, wanted) if wanted else ())
    results = [one if isinstance(one, Measurement) else next(computed) for one in read]
    entries = [
        BatchEntry(target_type=given.target_type, target_id=given.target_id, scope=call.scope, result=result)
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
    asked = [(body.target_type, body.target_id, call.scope) for body, _ in wanted]
    materials: list[Material] = await call.read(lambda connection: require_material(connection, asked))
    pairs = [(score, material) for (_, score), material in zip(wanted, materials, strict=True)]
    return await compute_scores(pairs, seconds=call.service.config.limits.scoring_seconds)


async def list_all(call: Call, query: ScoreQuery) -> Answer:
    if not query.target_id:
        raise Refusal("INVALID_REQUEST", "Say which target: ?target_id=…", {"field": "target_id"})
    limit, after = query.checked_limit(), query.after(LISTING)
    target_id = query.target_id
    kinds: tuple[TargetType, ...] = ("run", "span") if query.target_type is None else (query.target_type,)

    def work(connection: Connection) -> list[Score]:
        found = find_targets(connection, [(kind, target_id, call.scope) for kind in kinds])
        target = next((t for t in found if t is not None), None)
        if target is None:
            raise not_found(kinds[0], target_id)
        return store.list_scores(
            connection,
            target=target,
            scorer_name=query.scorer_name,
            after=after[0] if after else None,
            limit=limit + 1,
        )

    return json_answer(page_of(await call.read(work), limit, LISTING, lambda score: (score.id,)))


ROUTES = (
    Route(
        method="POST",
        path="/v1/scores",
        handler=create,
        audience="token:write",
        request=ScoreCreate,
        response=Score,
        status=201,
        query=WaitQuery,
        other_answers={200: NotScored, 202: JobAccepted},
        errors=("NOT_FOUND", "INVALID_SCORE_VALUE", "INVALID_SCORER_CONFIG"),
        explain_malformed=malformed_score,
        summary="Store a score, or have a scorer compute it",
        tag="Scores",
    ),
    Route(
        method="POST",
        path="/v1/scores/batch",
        handler=create_batch,
        audience="token:write",
        request=ScoreBatch,
        response=BatchReport,
        status=201,
        errors=("NOT_FOUND", "INVALID_SCORE_VALUE", "INVALID_SCORER_CONFIG"),
        explain_malformed=malformed_score,
        summary="Store many scores, all or none",
        tag="Scores",
    ),
    Route(
        method="GET",
        path="/v1/scores",
        handler=list_all,
        audience="token:read",
        query=ScoreQuery,
        response=Page[Score],
        errors=("NOT_FOUND",),
        summary="List a target's scores, oldest first",
        tag="Scores",
    ),
)
