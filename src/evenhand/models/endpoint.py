"""A chat model behind HTTP: cache, budgets, a slot, the request, and again if that may help."""

import asyncio
import random
from time import perf_counter

from evenhand.core.errors import ModelError, ModelRejected
from evenhand.models.config import EndpointConfig
from evenhand.models.dialect import Dialect, Parsed, check
from evenhand.models.limits import AdaptiveLimit, PerMinute
from evenhand.models.port import ChatReply, ChatRequest
from evenhand.models.retry import Retryable, delay_before
from evenhand.models.transport import Transport
from evenhand.models.usage import Usage


class Endpoint:
    """The one implementation of `ChatModel` that talks HTTP; the dialect says in which words."""

    def __init__(self, config: EndpointConfig, dialect: Dialect) -> None:
        self.config = config
        self.usage = Usage(concurrency=config.concurrency)
        self._dialect = dialect
        self._transport = Transport(config)
        self._url = config.base_url.rstrip("/") + dialect.path
        self._headers = dialect.headers(config.api_key.reveal() if config.api_key else None)
        self._slots = AdaptiveLimit(config.concurrency)
        self._requests = PerMinute(config.requests_per_minute) if config.requests_per_minute else None
        self._tokens = PerMinute(config.tokens_per_minute) if config.tokens_per_minute else None
        self._structured = config.structured_output == "auto"
        self._rng = random.Random()

    @property
    def model(self) -> str:
        return self.config.model

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One reply, after as many attempts as the policy allows."""
        self.usage.calls += 1
        policy = self.config.retry
        attempts = 0
        while True:
            attempts += 1
            try:
                return await self._attempt(request, attempts)
            except Retryable as error:
                if attempts >= policy.tries:
                    self.usage.failed(error.kind)
                    raise ModelError(
                        f"no reply after {attempts} attempts; the last: {error}",
                        kind=error.kind,
                        status=error.status,
                    ) from error
                self.usage.retried(error.kind)
                wait = delay_before(policy, attempts, error.retry_after, self._rng)
            except ModelRejected as error:
                if self._refuses_schema(request, error):
                    attempts -= 1
                    continue
                self.usage.failed(error.kind)
                raise
            self.usage.waited_seconds += wait
            await asyncio.sleep(wait)

    async def _attempt(self, request: ChatRequest, attempt: int) -> ChatReply:
        body = self._dialect.body(
            request, model=self.config.model, structured=self._structured, max_tokens=self._longest(request)
        )
        if self._requests is not None:
            await self._requests.take()
        if self._tokens is not None:
            await self._tokens.take(len(body) / 4 + (request.max_tokens or 0))
        async with self._slots:
            self.usage.requests += 1
            start = perf_counter()
            refused = False
            try:
                answer = await self._transport.post(self._url, self._headers, body)
                refused = answer.status == 429
            finally:
                self._slots.observe(refused=refused)
                self.usage.concurrency = self._slots.slots
            seconds = perf_counter() - start
        check(answer)
        return self._reply(self._dialect.parse(answer.body), seconds, attempt)

    def _reply(self, parsed: Parsed, seconds: float, attempt: int) -> ChatReply:
        self.usage.succeeded += 1
        self.usage.input_tokens += parsed.input_tokens or 0
        self.usage.output_tokens += parsed.output_tokens or 0
        return ChatReply(
            text=parsed.text,
            finish_reason=parsed.finish_reason,
            input_tokens=parsed.input_tokens,
            output_tokens=parsed.output_tokens,
            latency_seconds=seconds,
            cost_usd=None,
            model=parsed.model or self.config.model,
            attempts=attempt,
            reasoning=parsed.reasoning,
        )

    def _longest(self, request: ChatRequest) -> int | None:
        return request.max_tokens

    def _refuses_schema(self, request: ChatRequest, error: ModelRejected) -> bool:
        """Whether the endpoint turned down structured output; remembered, and asked again without."""
        if not self._structured or request.response_schema is None or error.kind != "bad_request":
            return False
        self._structured = False
        return True
