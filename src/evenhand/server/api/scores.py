"""Scores: stored as given, or worked out by a rule."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.scores import BatchReport, NotScored, Score, ScoreJob, SkippedScore, TargetType
from evenhand.server.answers import Answer, Page, json_answer
from evenhand.server.api.jobs import JobAccepted, WaitQuery, submit_judge
from evenhand.server.call import Call
from evenhand.server.measuring import (
    JUDGE,
    ScoreCreate,
    Unmeasured,
    Wanted,
    malformed_score,
    measure,
    read_score,
    unhurried,
)
from evenhand.server.paging import Paging, page_of
from evenhand.server.routes import Route
from evenhand.server.scoring_jobs import judge_jobs
from evenhand.store import scores as store
from evenhand.store.connection import Connection
from evenhand.store.jobs import add_jobs
from evenhand.store.projects import not_found
from evenhand.store.scores import Measurement, ScoreRequest
from evenhand.store.targets import Material, Target, find_targets, read_material

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
    read = read_score(body)
    if isinstance(read, Wanted):
        if read.scorer_name == JUDGE:
            call.service.jobs.check_judge(read.config)
            return await submit_judge(
                call,
                target_type=body.target_type,
                target_id=body.target_id,
                config_text=read.config_text or "{}",
                wait=query.wait,
            )
        (found,) = await work_out(call, [(body, read)])
        if isinstance(found, Unmeasured):
            return await call.told(NotScored(score=None, reason=found.reason))
        read = found
    return await call.write_item(store.store_requests, _request(call, body, read))


async def create_batch(call: Call, body: ScoreBatch) -> Answer:
    read = await unhurried(
        body.scores, lambda: [_read_numbered(call, index, given) for index, given in enumerate(body.scores)]
    )
    wanted = [(body.scores[i], r) for i, r in enumerate(read) if isinstance(r, Wanted) and not _is_judged(r)]
    worked_out = iter(await work_out(call, wanted) if wanted else ())
    outcomes = [r if isinstance(r, Measurement) or _is_judged(r) else next(worked_out) for r in read]
    answer = await call.write(lambda connection: _store_batch(connection, call, body.scores, outcomes))
    if any(_is_judged(outcome) for outcome in outcomes):
        call.service.jobs.wake()
    return answer


def _store_batch(
    connection: Connection,
    call: Call,
    given: list[ScoreCreate],
    outcomes: Sequence[Measurement | Unmeasured | Wanted],
) -> BatchReport:
    pairs = list(enumerate(zip(given, outcomes, strict=True)))
    requests = [_request(call, score, m) for _, (score, m) in pairs if isinstance(m, Measurement)]
    judged = [(index, score, w) for index, (score, w) in pairs if isinstance(w, Wanted)]
    targets = find_targets(
        connection, [(score.target_type, score.target_id, call.scope) for _, score, _ in judged]
    )
    stored = store.store_requests(connection, requests)
    missing = [r.target_id for r, s in zip(requests, stored, strict=True) if isinstance(s, Exception)]
    missing += [score.target_id for (_, score, _), t in zip(judged, targets, strict=True) if t is None]
    if missing:
        raise Refusal(
            "NOT_FOUND", f"{len(missing)} of the targets are not there.", {"target_ids": missing[:100]}
        )
    present = [target for target in targets if target is not None]
    jobs = add_jobs(connection, judge_jobs(zip(present, [[w] for _, _, w in judged], strict=True)))
    made = iter(stored)
    return BatchReport(
        accepted=len(requests),
        score_ids=[_id_of(next(made)) if isinstance(m, Measurement) else None for m in outcomes],
        skipped=[
            SkippedScore(index=index, reason=m.reason)
            for index, m in enumerate(outcomes)
            if isinstance(m, Unmeasured)
        ],
        jobs=[ScoreJob(index=index, job_id=job) for (index, _, _), job in zip(judged, jobs, strict=True)],
    )


def _is_judged(read: Measurement | Unmeasured | Wanted) -> bool:
    return isinstance(read, Wanted) and read.scorer_name == JUDGE


def _id_of(score: Score | Exception) -> str:
    assert isinstance(score, Score)
    return score.id


def _read_numbered(call: Call, index: int, given: ScoreCreate) -> Measurement | Wanted:
    try:
        read = read_score(given)
        if isinstance(read, Wanted) and read.scorer_name == JUDGE:
            call.service.jobs.check_judge(read.config)
    except Refusal as error:
        raise Refusal(error.code, f"scores[{index}]: {error}", {**error.details, "index": index}) from None
    return read


def _request(call: Call, body: ScoreCreate, measurement: Measurement) -> ScoreRequest:
    return ScoreRequest(
        target_type=body.target_type, target_id=body.target_id, scope=call.scope, measurement=measurement
    )


async def work_out(call: Call, wanted: list[tuple[ScoreCreate, Wanted]]) -> list[Measurement | Unmeasured]:
    """Run the rules on what their targets hold; `NOT_FOUND` for a target that is not there."""

    def look(connection: Connection) -> list[Material]:
        asked = [(body.target_type, body.target_id, call.scope) for body, _ in wanted]
        found = find_targets(connection, asked)
        targets: list[Target] = []
        for target, (body, _) in zip(found, wanted, strict=True):
            if target is None:
                raise not_found(body.target_type, body.target_id)
            targets.append(target)
        return read_material(connection, targets)

    materials = await call.read(look)
    pairs = [(rule, material) for (_, rule), material in zip(wanted, materials, strict=True)]
    return await asyncio.to_thread(lambda: [measure(rule, material) for rule, material in pairs])


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
        role="write",
        request=ScoreCreate,
        response=Score,
        status=201,
        query=WaitQuery,
        other_answers={200: NotScored, 202: JobAccepted},
        errors=("NOT_FOUND", "INVALID_SCORE_VALUE", "INVALID_SCORER_CONFIG"),
        malformed=malformed_score,
        summary="Store a score, or have a built-in scorer work it out",
        tag="Scores",
    ),
    Route(
        method="POST",
        path="/v1/scores/batch",
        handler=create_batch,
        role="write",
        request=ScoreBatch,
        response=BatchReport,
        status=201,
        errors=("NOT_FOUND", "INVALID_SCORE_VALUE", "INVALID_SCORER_CONFIG"),
        malformed=malformed_score,
        summary="Store many scores, all or none",
        tag="Scores",
    ),
    Route(
        method="GET",
        path="/v1/scores",
        handler=list_all,
        query=ScoreQuery,
        response=Page[Score],
        errors=("NOT_FOUND",),
        summary="List a target's scores, oldest first",
        tag="Scores",
    ),
)
