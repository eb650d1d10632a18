"""Scores that the service computes outside of a request: slow scorers, `llm_judge`, and the scorers of online rules.

A job is durable before anyone hears of it. A runner claims open jobs with a lease, keeps the lease while it works, and
stores the score and the job's end in one transaction, and only while it still holds the lease. So killing a server
loses no job (the lease runs out and another claims it) and doubles no score (the first lease cannot end it any more).
"""

import asyncio
import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from evenhand.core.errors import EvenhandError, Refusal
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.jobs import Job
from evenhand.core.objects.scores import Score
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.core.spans import PICO
from evenhand.scoring.apply import without_thinking
from evenhand.server.http.logs import warn_of
from evenhand.server.jobs.computing import compute_score, in_range, sample_of, value_of
from evenhand.server.jobs.judge_models import MOST_REQUESTS, JudgeModels
from evenhand.server.jobs.score_requests import ScoreToCompute
from evenhand.server.jobs.scorers import EXPECTED, JUDGE, Scorers, without_unknown_keys
from evenhand.server.jobs.threads import ScoringThreads
from evenhand.store import jobs as store
from evenhand.store.connection import Connection
from evenhand.store.database import Database
from evenhand.store.judge_spend import add_spent, spent_on
from evenhand.store.keys import kept_key
from evenhand.store.scores import Measurement, insert_scores
from evenhand.store.targets import Material

if TYPE_CHECKING:
    from evenhand.judging.records import JudgeRecord

POLL_SECONDS = 1.0
OUTAGE_LOG_SECONDS = 60.0
RETRIED = ("judge_unavailable", "unknown_model", "scorer_not_enabled", "sandbox_unavailable")
"""Failures that a later attempt may not have: another server, or this one after a restart, may know the model."""
log = logging.getLogger("evenhand.jobs")


class Result(Struct, frozen=True):
    """What working on a job gave."""

    outcome: Outcome
    measurement: Measurement | None = None
    """The score, where there is one."""
    reply: str | None = None
    """The model's raw reply, where one was asked."""
    tries: int = MOST_REQUESTS
    """Attempts in all before the job is given up."""


class JobRunner:
    """Works on the jobs of one server process."""

    def __init__(self, database: Database, models: JudgeModels, scorers: Scorers) -> None:
        self.models = models
        self._database = database
        self._scorers = scorers
        # Scorers in jobs may take minutes: those of requests do not wait for them.
        self._threads = ScoringThreads(models.limits.concurrency, "evenhand-jobs")
        self._lease_ms = int(models.limits.lease_seconds * 1000)
        self._concurrency = models.limits.concurrency
        self._wake = asyncio.Event()
        self._held: dict[str, store.Claim] = {}
        self._changed = asyncio.Condition()
        self._fence_key: bytes | None = None
        self._booked: dict[str, float] = {}
        self._outages: dict[str, float] = {}
        self._ending = False
        self.ended: Counter[str] = Counter()
        """Jobs that this server ended, by outcome."""

    def wake(self) -> None:
        """There is a new job: look at once."""
        self._wake.set()

    async def run(self) -> None:
        """Claim and work until cancelled; what is held then is given back."""
        keeper = asyncio.create_task(self._keep_leases())
        working: set[asyncio.Task[None]] = set()
        try:
            while True:
                claims = await self._claim(self._concurrency - len(working))
                for claim in claims:
                    task = asyncio.create_task(self._work(claim))
                    working.add(task)
                    task.add_done_callback(working.discard)
                    task.add_done_callback(lambda _: self._wake.set())
                if not claims or len(working) >= self._concurrency:
                    await self._sleep()
        finally:
            held = list(self._held.values())  # before they are cancelled: each lets go of its claim
            for task in (keeper, *working):
                task.cancel()
            await asyncio.gather(keeper, *working, return_exceptions=True)
            await self._give_back(held)
            await self.models.aclose()

    async def _sleep(self) -> None:
        try:
            async with asyncio.timeout(POLL_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            pass  # look anyway: other servers add jobs too, and leases run out
        self._wake.clear()

    async def _claim(self, limit: int) -> list[store.Claim]:
        if limit < 1:
            return []
        try:
            if not await self._database.read(store.any_claimable):
                return []
            claims = await self._database.write(
                lambda connection: store.claim_jobs(connection, limit=limit, lease_ms=self._lease_ms)
            )
        except EvenhandError as error:
            warn_of(error, "jobs cannot be claimed")
            return []
        self._held.update((claim.job_id, claim) for claim in claims)
        return claims

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 3000)
            held = list(self._held.values())
            if held:
                try:
                    await self._database.write(
                        lambda connection, held=held: store.keep_claims(
                            connection, held, lease_ms=self._lease_ms
                        )  # type: ignore[misc]  # bound early on purpose
                    )
                except EvenhandError as error:
                    warn_of(error, "leases cannot be kept")

    async def _give_back(self, held: list[store.Claim]) -> None:
        """Jobs that another may claim at once; those that ended meanwhile stay ended."""

        def work(connection: Connection) -> None:
            for claim in held:
                store.reopen_job(connection, claim, delay_ms=0)

        if held:
            try:
                await self._database.write(work)
            except EvenhandError as error:
                # Nothing is lost: the leases run out.
                warn_of(error, "jobs cannot be given back")

    async def _work(self, claim: store.Claim) -> None:
        try:
            result = await self._result(claim)
            await self._database.write(lambda connection: finish(connection, claim, result))
            self.ended[_kind_of(result.outcome)] += 1
        except EvenhandError as error:
            # The lease runs out, and the job is claimed again.
            log.warning(
                "a job could not be ended",
                extra={"fields": {"job_id": claim.job_id, "error": type(error).__name__}},
            )
        except Exception:
            log.exception("a job failed", extra={"fields": {"job_id": claim.job_id}})
            await self._end_broken(claim)
        finally:
            # A lease that ran out may have been claimed anew here: that claim is held on.
            if self._held.get(claim.job_id) is claim:
                del self._held[claim.job_id]
            async with self._changed:
                self._changed.notify_all()

    async def _end_broken(self, claim: store.Claim) -> None:
        broken = Result(Failed(error="internal_error", message="the server failed; its log says more"))
        try:
            await self._database.write(lambda connection: finish(connection, claim, broken))
        except EvenhandError as error:
            log.warning(
                "a job could not be ended",
                extra={"fields": {"job_id": claim.job_id, "error": type(error).__name__}},
            )

    async def _result(self, claim: store.Claim) -> Result:
        material = await self._database.read(lambda connection: store.material_of(connection, claim))
        if material is None:
            return Result(Failed(error="target_gone", message="what was to be scored is not there any more"))
        try:
            # Checking options can take a while too.
            asked = await self._threads.run(lambda: self._asked(claim))
            if claim.scorer_name == JUDGE:
                return await self._judge(asked, material)
            return _result_of(await self._threads.run(lambda: compute_score(asked, material)))
        except Refusal as error:
            # It was right when it was asked for, by a server of another version or with other scorers and models.
            return Result(Failed(error=_refused(error), message=str(error)))

    def _asked(self, claim: store.Claim) -> ScoreToCompute:
        config = msgspec.json.decode(claim.config)
        if claim.scorer_name == JUDGE:
            # Earlier versions stored what they did not know, and did not look at it.
            config = without_unknown_keys(config)
        return ScoreToCompute(
            scorer_name=claim.scorer_name,
            prepared=self._scorers.prepare(claim.scorer_name, config),
            config=config,
            config_text=claim.config,
            metadata=claim.metadata,
            rationale=claim.rationale,
        )

    async def _judge(self, asked: ScoreToCompute, material: Material) -> Result:
        from evenhand.judging.platform import (
            LlmJudgeConfig,
            run_llm_judge,
        )  # loads aiohttp: only where it is needed

        judge = LlmJudgeConfig.from_json(
            {name: value for name, value in asked.config.items() if name != EXPECTED}
        )
        sample = without_thinking(sample_of(material, None), asked.prepared.think_tags)
        await self._load_spent(judge.model)
        try:
            record = await run_llm_judge(
                self.models.get(judge.model),
                judge,
                input=value_of(material.input),
                output=sample.response,
                expected_output=asked.expected(value_of(material.expected_output)),
                key=await self._key(),
            )
        finally:
            await self._book_spent(judge.model)
        outcome = in_range(record.outcome)
        self._tell_outage(judge.model, outcome)
        if not isinstance(outcome, Scored):
            return Result(outcome, reply=record.raw_reply, tries=self.models.tries(judge.model))
        given = {} if asked.metadata is None else msgspec.json.decode(asked.metadata)
        measurement = Measurement(
            scorer_name=asked.scorer_name,
            value=outcome.value,
            rationale=_storable(record.raw_reply),
            config=asked.config_text,
            metadata=encode_text({**given, **_provenance(record)}),
            source="judge",
            canonical_name=asked.prepared.canonical_name,
            version=asked.prepared.version,
            options=asked.prepared.options,
        )
        return Result(outcome, measurement, record.raw_reply)

    async def _load_spent(self, model: str) -> None:
        """Let the model's spend cap know what was spent before this server started, and by other servers."""
        cap = self.models.cap(model)
        if cap is not None:
            booked = await self._database.read(lambda connection: spent_on(connection, model))
            unbooked = cap.spent_usd - self._booked.get(model, 0.0)
            self._booked[model] = booked / PICO
            cap.spent_usd = self._booked[model] + unbooked

    async def _book_spent(self, model: str) -> None:
        """Write down what calls under a spend cap cost since the last time."""
        cap = self.models.cap(model)
        if cap is None:
            return
        pico = round((cap.spent_usd - self._booked.get(model, 0.0)) * PICO)
        if pico <= 0:
            return
        self._booked[model] = cap.spent_usd
        try:
            await self._database.write(lambda connection: add_spent(connection, model, pico))
        except EvenhandError as error:
            # It is booked with the next call: the difference is still there.
            self._booked[model] -= pico / PICO
            warn_of(error, "spending cannot be booked")

    def _tell_outage(self, model: str, outcome: Outcome) -> None:
        """A warning when a model stops answering, again after a minute, and a line when it answers again."""
        is_down = isinstance(outcome, Failed) and outcome.error in ("judge_unavailable", "judge_refused")
        instant, told = time.monotonic(), self._outages.get(model)
        if is_down and (told is None or instant - told > OUTAGE_LOG_SECONDS):
            assert isinstance(outcome, Failed)
            self._outages[model] = instant
            log.warning(
                "a judge model does not answer", extra={"fields": {"model": model, "error": outcome.error}}
            )
        elif not is_down and told is not None:
            del self._outages[model]
            log.info("a judge model answers again", extra={"fields": {"model": model}})

    def end_waits(self) -> None:
        """Answer the requests that wait for a job with how far it is: the server stops."""
        self._ending = True

    async def _key(self) -> bytes:
        """The key of the fence around judged text, which the database keeps."""
        if self._fence_key is None:
            from evenhand.judging.fence import new_key

            self._fence_key = await self._database.write(
                lambda connection: kept_key(connection, "judge_fence", new_key())
            )
        return self._fence_key

    async def wait_for(self, job_id: str, seconds: float) -> Job:
        """The job once it has ended, or as it is when the time is up."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            job = await self._database.read(lambda connection: store.get_job(connection, job_id, scope=None))
            left = deadline - asyncio.get_running_loop().time()
            if job.status in ("completed", "failed") or left <= 0 or self._ending:
                return job
            try:
                # Another server may be working on it: look now and then without being told.
                async with asyncio.timeout(min(left, 0.25)), self._changed:
                    await self._changed.wait()
            except TimeoutError:
                continue


def _kind_of(outcome: Outcome) -> str:
    match outcome:
        case Scored():
            return "scored"
        case Unscored():
            return "unscored"
        case Failed(error=error):
            return "retried" if error in RETRIED else "failed"


def _result_of(computed: Measurement | Unscored | Failed) -> Result:
    if isinstance(computed, Measurement):
        return Result(Scored(value=computed.value), computed)
    return Result(computed)


def _refused(error: Refusal) -> str:
    """Why a job cannot be worked on here."""
    if error.code == "INVALID_REQUEST":
        return "scorer_not_enabled"
    return "unknown_model" if "known" in error.details else "invalid_config"


def finish(connection: Connection, claim: store.Claim, result: Result) -> Score | None:
    """The score and the job's end, together or not at all; nothing when the lease was lost."""
    if not store.holds(connection, claim):
        return None
    match result.outcome:
        case Scored():
            assert result.measurement is not None
            return _store_score(connection, claim, result, result.measurement)
        case Failed(error=error, message=message) if error in RETRIED and claim.attempts < result.tries:
            delay_ms = _delay_ms(claim.attempts, result.outcome.details.get("retry_after"))
            store.reopen_job(connection, claim, delay_ms=delay_ms, error=error, message=_storable(message))
        case Failed(error=error, message=message):
            _end_without_score(connection, claim, "failed", error, message, result.reply)
        case Unscored(reason=reason, message=message):
            _end_without_score(connection, claim, "unscored", reason, message, result.reply)
    return None


def _delay_ms(attempts: int, retry_after: Any) -> int:
    """How long a job waits for its next attempt: as long as the endpoint asks for, at most five minutes."""
    asked = retry_after * 1000 if isinstance(retry_after, int | float) else 0.0
    return int(min(max(1000 * 4 ** (attempts - 1), asked), 300_000))


def _end_without_score(
    connection: Connection,
    claim: store.Claim,
    outcome: Literal["unscored", "failed"],
    error: str,
    message: str,
    reply: str | None,
) -> None:
    store.end_job(
        connection,
        claim,
        status="failed",
        outcome=outcome,
        error=_storable(error),
        message=_storable(message),
        reply=_storable(reply),
    )


def _store_score(
    connection: Connection, claim: store.Claim, result: Result, measurement: Measurement
) -> Score | None:
    target = store.target_of(connection, claim)
    if target is None:
        _end_without_score(
            connection, claim, "failed", "target_gone", "the target was deleted meanwhile", None
        )
        return None
    [score] = insert_scores(connection, [(target, measurement)])
    store.end_job(
        connection,
        claim,
        status="completed",
        outcome="scored",
        score_id=score.id,
        reply=_storable(result.reply),
    )
    return score


def _storable(text: str | None) -> str | None:
    # PostgreSQL's text has no NUL, and what a scorer raised may hold half a character.
    return None if text is None else text.replace("\x00", "\ufffd").encode(errors="replace").decode()


def _provenance(record: "JudgeRecord") -> dict[str, Any]:
    """What a reader needs to check a verdict."""
    return {
        "model": record.model,
        "identity": record.identity,
        "prompt_hash": record.prompt_hash,
        "input_tokens": record.input_tokens,
        "output_tokens": record.output_tokens,
        "cost_usd": record.cost_usd,
        "latency_seconds": record.latency_seconds,
        "warnings": list(record.warnings),
        "flags": list(record.flags),
    }
