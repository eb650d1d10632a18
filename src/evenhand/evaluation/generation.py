"""How an answer is made: the one port of the pipeline towards whatever is under test, and the chat model behind it.

`tasks.py` has the other implementation: a function of the user's.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from evenhand.benchmarks.definition import Problem
from evenhand.core.errors import BudgetExceeded, ModelError, ModelRejected
from evenhand.evaluation.records import Generated
from evenhand.models.port import ChatModel, ChatRequest, Message
from evenhand.models.reasoning import join_reasoning, split_reasoning

# The endpoint will not answer any other question either.
PERMANENT_ERRORS = frozenset({"auth", "not_found", "quota", "redirect", "certificate", "forbidden_address"})
REFUSED_AT_FIRST = 5
"""So many refusals before the first answer mean that the request itself is wrong."""


class Generator(Protocol):
    """Whatever answers: a chat model, a task."""

    async def generate(self, key: int, problem: Problem, repeat: int) -> Generated:
        """The answer, or why there is none. An error that is raised ends the run: no other problem would fare better."""
        ...


class ModelGenerator:
    """A chat model that is asked the problem's messages."""

    def __init__(
        self,
        model: ChatModel,
        *,
        sampling: Mapping[str, Any],
        think_tags: Sequence[str],
        has_answered: bool = False,
    ) -> None:
        """`has_answered`: in an earlier process of this run."""
        self._model = model
        self._sampling = sampling
        self._think_tags = think_tags
        self._has_answered = has_answered
        self._refused = 0

    async def generate(self, key: int, problem: Problem, repeat: int) -> Generated:
        try:
            reply = await self._model.complete(self._request(problem, repeat))
        except BudgetExceeded:
            raise
        except ModelError as error:
            if isinstance(error, ModelRejected):
                self._abort_if_permanent(error)
            return Generated(key=key, error=error.kind, message=str(error)[:1000], at=time.time())
        self._has_answered = True
        split = split_reasoning(reply.text, self._think_tags)
        return Generated(
            key=key,
            text=split.answer,
            finish_reason=reply.finish_reason,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            latency_seconds=round(reply.latency_seconds, 6),
            cost_usd=reply.cost_usd,
            model=reply.model,
            cached=reply.cached,
            attempts=reply.attempts,
            reasoning=join_reasoning(reply.reasoning, split.reasoning),
            adjusted=reply.adjusted,
            truncated=split.unclosed or reply.finish_reason == "length",
            at=time.time(),
        )

    def _abort_if_permanent(self, error: ModelRejected) -> None:
        if error.kind in PERMANENT_ERRORS:
            raise error
        self._refused += 1
        if self._refused >= REFUSED_AT_FIRST and not self._has_answered:
            raise ModelRejected(
                f"the first {self._refused} requests were all refused: {error}",
                kind=error.kind,
                status=error.status,
            )

    def _request(self, problem: Problem, repeat: int) -> ChatRequest:
        sampling = dict(self._sampling)
        extra = sampling.pop("extra_body", {})
        if repeat and sampling.get("seed") is not None:
            sampling["seed"] += repeat
        messages = tuple(
            Message(role=turn.role, content=turn.content)  # type: ignore[arg-type]  # checked when the problem was made
            for turn in problem.turns
        )
        return ChatRequest(messages=messages, repeat=repeat, extra=extra, **sampling)
