"""The judge: one sample in, one record out. What goes wrong with a model or a reply is a value in the record."""

import asyncio
from typing import Protocol

from evenhand.core.errors import BudgetExceeded, JudgementError, ModelError, ModelRejected
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.core.sample import ScorerInput, with_text
from evenhand.judging.combine import combine_outcomes
from evenhand.judging.config import JudgeScoringConfig
from evenhand.judging.fence import process_key
from evenhand.judging.identity import judge_identity
from evenhand.judging.injection import injection_signs
from evenhand.judging.judgements import Judgement, parse_judge_response
from evenhand.judging.prompts import (
    JudgePrompt,
    as_request,
    build_judge_prompt,
    demand,
    hash_messages,
    repair_request,
)
from evenhand.judging.records import JudgeCall, JudgeRecord, call_of, record_of
from evenhand.models.port import ChatModel
from evenhand.models.reasoning import split_reasoning

STOPPING = frozenset({"budget_exceeded", "judge_rejected"})
"""Failures after which asking for further samples is pointless."""


class Judging(Protocol):
    """Anything that judges a sample: one judge, or a panel of them."""

    @property
    def identity(self) -> str:
        """Hash of everything that could change a judgement."""
        ...

    async def judge(self, sample: ScorerInput) -> JudgeRecord:
        """Judge one sample; never raises for what a model or a reply does."""
        ...


class Judge:
    """A chat model with a rubric. `key` is the key of the fence around judged text (`fence.py`)."""

    def __init__(
        self, model: ChatModel, config: JudgeScoringConfig | None = None, *, key: bytes | None = None
    ) -> None:
        self.model = model
        self.key = key or process_key()
        self.config = config or JudgeScoringConfig()
        self._identity = judge_identity(model.model, self.config)

    @property
    def identity(self) -> str:
        return self._identity

    async def judge(self, sample: ScorerInput) -> JudgeRecord:
        """Judge one sample, as often as the configuration says."""
        readable = with_text(sample)
        if readable is None:
            return self._record(Unscored(reason="no_response", message="the sample has no response"), ())
        sample = readable
        config = self.config
        if config.empty_verdict is not None and not sample.response.strip():
            return self._record(scored(judgement_on_nothing(config, config.empty_verdict), config), ())
        asked = [(n, False) for n in range(config.samples)]
        if config.swap_check:
            asked += [(n, True) for n in range(config.samples)]
        if len(asked) == 1:
            outcome, calls, warnings = await self._ask(sample, 0, swapped=False)
        else:
            found = await asyncio.gather(*(self._ask(sample, n, swapped=swapped) for n, swapped in asked))
            calls = tuple(call for _, some, _ in found for call in some)
            warnings = tuple(warning for _, _, some in found for warning in some)
            outcome = self._joined([outcome for outcome, _, _ in found])
        return self._record(outcome, calls, warnings=warnings, flags=suspicion(sample.response))

    def _joined(self, outcomes: list[Outcome]) -> Outcome:
        config = self.config
        size = config.samples
        groups = [outcomes[start : start + size] for start in range(0, len(outcomes), size)]
        sides = [self._combined(group) for group in groups]
        if len(sides) == 1:
            return sides[0]
        correct = [side.details.get("correct") for side in sides if isinstance(side, Scored)]
        if len(correct) == 2 and correct[0] != correct[1]:
            return Unscored(
                reason="inconsistent_verdict",
                message="the judgement changes with the order of reference and answer",
                details={"verdicts": [side.value for side in sides if isinstance(side, Scored)]},
            )
        return self._combined(sides)

    def _combined(self, outcomes: list[Outcome]) -> Outcome:
        if len(outcomes) == 1:
            return outcomes[0]
        return combine_outcomes(outcomes, self.config.combine, threshold=self.config.threshold)

    async def _ask(
        self, sample: ScorerInput, repeat: int, *, swapped: bool
    ) -> tuple[Outcome, tuple[JudgeCall, ...], tuple[str, ...]]:
        prompt = build_judge_prompt(sample, self.config, key=self.key, swapped=swapped)
        calls: list[JudgeCall] = []
        try:
            judgement = await self._judgement(prompt, repeat, calls)
        except JudgementError as error:
            return unread(error), tuple(calls), ()
        except ModelError as error:
            return unavailable(error), tuple(calls), ()
        return scored(judgement, self.config), tuple(calls), judgement.warnings

    async def outcome_of(self, prompt: JudgePrompt, *, calls: list[JudgeCall]) -> Scored:
        """The judgement on a prompt that the caller built; raises what is no judgement, and notes every call."""
        return scored(await self._judgement(prompt, 0, calls), self.config)

    async def _judgement(self, prompt: JudgePrompt, repeat: int, calls: list[JudgeCall]) -> Judgement:
        request = as_request(prompt, self.config, repeat=repeat)
        reply = await self.model.complete(request)
        calls.append(call_of(reply, prompt.prompt_hash))
        try:
            return self._read(reply.text, reply.finish_reason, prompt)
        except JudgementError as error:
            if not self.config.repair or error.kind != "grade_parse_failure":
                raise
            again = repair_request(request, reply.text, str(error), demand(self.config, prompt.nonce))
        reply = await self.model.complete(again)
        calls.append(call_of(reply, hash_messages(again.messages, prompt.nonce)))
        judgement = self._read(reply.text, reply.finish_reason, prompt)
        return Judgement(
            reward=judgement.reward,
            score=judgement.score,
            label=judgement.label,
            reasoning=judgement.reasoning,
            warnings=(*judgement.warnings, "repaired"),
        )

    def _read(self, text: str, finish_reason: str, prompt: JudgePrompt) -> Judgement:
        if finish_reason == "content_filter":
            raise JudgementError(
                "the judge's reply was withheld by a filter", reply=text, kind="content_filter"
            )
        split = split_reasoning(text)
        try:
            return parse_judge_response(
                split.answer, self.config, nonce=prompt.nonce if self.config.form != "bare" else None
            )
        except JudgementError as error:
            if split.unclosed or finish_reason == "length":
                raise JudgementError(
                    "the judge's reply was cut off before its judgement: raise max_tokens of the judge",
                    reply=text,
                    kind="judge_truncated",
                ) from error
            raise

    def _record(
        self,
        outcome: Outcome,
        calls: tuple[JudgeCall, ...],
        *,
        warnings: tuple[str, ...] = (),
        flags: tuple[str, ...] = (),
    ) -> JudgeRecord:
        return record_of(
            outcome, calls, identity=self.identity, model=self.model.model, warnings=warnings, flags=flags
        )


def scored(judgement: Judgement, config: JudgeScoringConfig) -> Scored:
    """The outcome that a judgement stands for."""
    details: dict[str, object] = {"correct": judgement.reward >= config.threshold}
    if judgement.score is not None:
        details["score"] = judgement.score
    if judgement.label is not None:
        details["label"] = judgement.label
    if judgement.reasoning:
        details["reasoning"] = judgement.reasoning
    return Scored(
        value=judgement.reward,
        extracted=judgement.label if judgement.label is not None else judgement.score,
        details=details,
    )


def judgement_on_nothing(config: JudgeScoringConfig, judgement: float | str) -> Judgement:
    """What the rubric itself says about an empty answer; no judge is asked."""
    reasoning = "the rubric says what an empty answer is worth"
    if isinstance(judgement, str):
        choice = next(choice for choice in config.choices if choice.label == judgement)
        return Judgement(reward=choice.value, label=choice.label, reasoning=reasoning)
    return Judgement(reward=config.normalised(judgement), score=judgement, reasoning=reasoning)


def unread(error: JudgementError) -> Failed:
    """No judgement could be read; the raw reply is kept."""
    return Failed(
        error=error.kind,
        message=f"no judgement could be read from the judge's reply: {error}",
        details={"raw_reply": error.reply},
    )


def unavailable(error: ModelError) -> Failed:
    """No reply could be had."""
    name = "judge_unavailable"
    if isinstance(error, BudgetExceeded):
        name = "budget_exceeded"
    elif isinstance(error, ModelRejected) and error.kind in (
        "auth",
        "quota",
        "not_found",
        "forbidden_address",
    ):
        name = "judge_rejected"
    elif isinstance(error, ModelRejected):
        # This one request; the same again would be refused again.
        name = "judge_refused"
    details: dict[str, object] = {"kind": error.kind}
    if error.status is not None:
        details["http_status"] = error.status
    if error.retry_after is not None:
        details["retry_after"] = error.retry_after
    return Failed(error=name, message=str(error), details=details)


def suspicion(response: str) -> tuple[str, ...]:
    """The flags that a judged text raises."""
    return ("injection_suspected",) if injection_signs(response) else ()
