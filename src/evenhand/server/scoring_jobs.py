"""Scores that the service works out on its own: `llm_judge`, and the scorers of online rules.

A job is durable before anyone hears of it. A runner claims open jobs with a lease, keeps the lease while it works, and
stores the score and the job's end in one transaction, and only while it still holds the lease. So killing a server
loses no job (the lease runs out and another claims it) and doubles no score (the first lease cannot end it any more).
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from evenhand.core.errors import EvenhandError, OptionError, Refusal
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.jobs import Job
from evenhand.core.objects.scores import Score
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.scoring.rules import run_rule
from evenhand.server.judge_models import JudgeModels
from evenhand.server.measuring import JUDGE, Wanted
from evenhand.store import jobs as store
from evenhand.store.connection import Connection
from evenhand.store.database import Database
from evenhand.store.scores import Measurement, insert_scores
from evenhand.store.targets import Material, Target

if TYPE_CHECKING:
    from evenhand.scoring.judging.records import JudgeRecord

MAX_ATTEMPTS = 5
POLL_SECONDS = 1.0
RETRIED = ("judge_unavailable", "unknown_model")
"""Failures that a later attempt may not have: another server, or this one after a restart, may know the model."""
log = logging.getLogger("evenhand.jobs")


class Result(Struct, frozen=True):
    """What working on a job gave."""

    outcome: Outcome
    reply: str | None = None
    metadata: str | None = None


class JobRunner:
    """Works on the jobs of one server process."""

    def __init__(self, database: Database, models: JudgeModels) -> None:
        self.models = models
        self._database = database
        self._lease_ms = int(models.limits.lease_seconds * 1000)
        self._concurrency = models.limits.concurrency
        self._wake = asyncio.Event()
        self._held: dict[str, store.Claim] = {}
        self._changed = asyncio.Condition()

    def check_judge(self, config: Mapping[str, Any]) -> None:
        """`INVALID_SCORER_CONFIG` unless an `llm_judge` with these parameters can be run here."""
        from evenhand.scoring.judging.platform import LlmJudgeConfig  # loads aiohttp: only where it is needed

        try:
            judge = LlmJudgeConfig.from_json({k: v for k, v in config.items() if k != "expected_output"})
        except OptionError as error:
            raise Refusal("INVALID_SCORER_CONFIG", str(error), {"field": "config"}) from None
        self.models.check(judge.model)

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
            log.warning("jobs cannot be claimed", extra={"fields": {"error": type(error).__name__}})
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
                    log.warning("leases cannot be kept", extra={"fields": {"error": type(error).__name__}})

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
                log.warning("jobs cannot be given back", extra={"fields": {"error": type(error).__name__}})

    async def _work(self, claim: store.Claim) -> None:
        try:
            result = await self._result(claim)
            await self._database.write(lambda connection: finish(connection, claim, result))
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
            return await self._worked_out(claim, material)
        except OptionError as error:
            # It was right when it was asked for, by a server of another version.
            return Result(Failed(error="invalid_config", message=str(error)))

    async def _worked_out(self, claim: store.Claim, material: Material) -> Result:
        config = msgspec.json.decode(claim.config)
        expected = config.get("expected_output", _value(material.expected_output))
        if claim.scorer_name != JUDGE:
            outcome = await asyncio.to_thread(
                run_rule, claim.scorer_name, _value(material.output), expected, config
            )
            return Result(outcome)
        from evenhand.scoring.judging.platform import LlmJudgeConfig, run_llm_judge  # as above

        judge = LlmJudgeConfig.from_json({k: v for k, v in config.items() if k != "expected_output"})
        try:
            model = self.models.get(judge.model)
        except Refusal as refusal:
            return Result(Failed(error="unknown_model", message=str(refusal)))
        record = await run_llm_judge(
            model,
            judge,
            input=_value(material.input),
            output=_value(material.output),
            expected_output=expected,
        )
        return Result(record.outcome, record.raw_reply, encode_text(_provenance(record)))

    async def wait_for(self, job_id: str, seconds: float) -> Job:
        """The job once it has ended, or as it is when the time is up."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            job = await self._database.read(lambda connection: store.get_job(connection, job_id, scope=None))
            left = deadline - asyncio.get_running_loop().time()
            if job.status in ("completed", "failed") or left <= 0:
                return job
            try:
                # Another server may be working on it: look now and then without being told.
                async with asyncio.timeout(min(left, 0.25)), self._changed:
                    await self._changed.wait()
            except TimeoutError:
                continue


def judge_jobs(judged: Iterable[tuple[Target, Sequence[Wanted]]]) -> list[store.NewJob]:
    """One job for each `llm_judge` among the inline scores of new runs or spans."""
    return [
        store.NewJob(
            project_id=target.project_id,
            target_type=target.type,
            target_id=target.id,
            trace_key=target.trace_key,
            scorer_name=JUDGE,
            config=score.config_text or "{}",
        )
        for target, scores in judged
        for score in scores
    ]


def finish(connection: Connection, claim: store.Claim, result: Result) -> Score | None:
    """The score and the job's end, together or not at all; nothing when the lease was lost."""
    if not store.holds(connection, claim):
        return None
    match result.outcome:
        case Scored(value=value):
            return _store_score(connection, claim, result, value)
        case Failed(error=error, message=message) if error in RETRIED and claim.attempts < MAX_ATTEMPTS:
            delay_ms = min(1000 * 4 ** (claim.attempts - 1), 300_000)
            store.reopen_job(connection, claim, delay_ms=delay_ms, error=error, message=message)
        case Failed(error=error, message=message):
            store.end_job(
                connection,
                claim,
                status="failed",
                error=error,
                message=message,
                reply=_storable(result.reply),
            )
        case Unscored(reason=reason, message=message):
            store.end_job(
                connection,
                claim,
                status="failed",
                error=reason,
                message=message,
                reply=_storable(result.reply),
            )
    return None


def _store_score(
    connection: Connection, claim: store.Claim, result: Result, value: float | str
) -> Score | None:
    target = store.target_of(connection, claim)
    if target is None:
        store.end_job(
            connection,
            claim,
            status="failed",
            error="target_gone",
            message="the target was deleted meanwhile",
        )
        return None
    measurement = Measurement(
        scorer_name=claim.scorer_name,
        value=value if isinstance(value, str) else float(value),
        rationale=_storable(result.reply),
        config=claim.config,
        metadata=result.metadata,
        source="judge" if claim.scorer_name == JUDGE else "rule",
    )
    [score] = insert_scores(connection, [(target, measurement)])
    store.end_job(connection, claim, status="completed", score_id=score.id, reply=_storable(result.reply))
    return score


def _storable(text: str | None) -> str | None:
    # PostgreSQL's text has no NUL.
    return None if text is None else text.replace("\x00", "\ufffd")


def _value(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


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
