"""A chat model behind HTTP: cache, budgets, a slot, the request, and again if that may help."""

import asyncio
import random
from time import perf_counter

from msgspec.structs import replace

from evenhand.core.errors import BudgetExceeded, ModelError, ModelRejected
from evenhand.models.cache import ReplyCache, cache_key, may_be_kept
from evenhand.models.config import EndpointConfig
from evenhand.models.counters import EndpointCounters
from evenhand.models.dialect import Dialect, Parsed, check
from evenhand.models.limits import AdaptiveLimit, PerMinute
from evenhand.models.parameters import Parameters
from evenhand.models.port import ChatReply, ChatRequest
from evenhand.models.prices import cost_of, find_price
from evenhand.models.retry import Retryable, delay_before
from evenhand.models.spend import SpendCap
from evenhand.models.transport import HttpAnswer, Transport


class Endpoint:
    """The one implementation of `ChatModel` that talks HTTP; the dialect says in which words."""

    def __init__(self, config: EndpointConfig, dialect: Dialect, *, spend: SpendCap | None = None) -> None:
        self.config = config
        self.usage = EndpointCounters(concurrency=config.concurrency)
        self._dialect = dialect
        self._transport = Transport(config)
        self._url = config.base_url.rstrip("/") + dialect.path
        key = config.api_key.reveal() if config.api_key else None
        self._key = key.encode() if key else None
        self._headers = dialect.headers(key)
        self._slots = AdaptiveLimit(config.concurrency)
        self._requests = PerMinute(config.requests_per_minute) if config.requests_per_minute else None
        self._tokens = PerMinute(config.tokens_per_minute) if config.tokens_per_minute else None
        self._structured = config.structured_output == "auto"
        self._rng = random.Random()
        self._price = config.price or find_price(config.model)
        own = None if config.spend_cap_usd is None else SpendCap(config.spend_cap_usd)
        self._caps = [cap for cap in (spend, own) if cap is not None]
        if self._caps:
            config.check_price()
        self._parameters = Parameters(keep_limit=bool(self._caps) or config.dialect == "anthropic")
        self._cache: ReplyCache | None = None
        if config.cache_path is not None:
            self._cache = ReplyCache(config.cache_path, max_bytes=config.cache_max_bytes)

    @property
    def model(self) -> str:
        return self.config.model

    async def aclose(self) -> None:
        await self._transport.aclose()
        if self._cache is not None:
            self._cache.close()
            self._cache = None

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One reply: from the cache, or after as many attempts as the policy allows."""
        self.usage.calls += 1
        if self.config.extra:
            request = replace(request, extra={**self.config.extra, **request.extra})
        if self._cache is None:
            return await self._persist(request)
        key = cache_key(self.config, request)
        kept = self._cache.get(key, request.unkeyed)
        if kept is not None:
            self.usage.cached += 1
            return kept
        reply = await self._persist(request)
        if may_be_kept(reply) and self._cache is not None:
            self._cache.put(key, reply, request.unkeyed)
        return reply

    async def _persist(self, request: ChatRequest) -> ChatReply:
        """Try, and try again where that may help. No slot is held while waiting."""
        policy = self.config.retry
        request = self._limited(request)
        structured = self._structured and request.response_schema is not None
        attempts = 0
        while True:
            attempts += 1
            sent = self._parameters.adjusted(request)
            try:
                reply = await self._attempt(sent, attempts, structured)
                if not structured and request.response_schema is not None:
                    # It answers without a schema and did not with one: it is not asked for it any more.
                    self._structured = False
                return self._noted(request, reply)
            except Retryable as error:
                if attempts >= policy.tries:
                    self.usage.failed(error.kind)
                    tried = f"no reply after {attempts} attempts; the last: " if attempts > 1 else ""
                    raise ModelError(
                        f"{tried}{error}",
                        kind=error.kind,
                        status=error.status,
                        retry_after=error.retry_after,
                    ) from error
                self.usage.retried(error.kind)
                wait = delay_before(policy, attempts, error.retry_after, self._rng)
            except BudgetExceeded as error:
                self.usage.failed(error.kind)
                raise
            except ModelRejected as error:
                if self._parameters.learn(sent, error.parameters):
                    attempts -= 1
                    continue
                if structured and error.kind == "bad_request":
                    # Perhaps it does not know structured output; the prompt asks for the form as well.
                    structured = False
                    attempts -= 1
                    continue
                self.usage.failed(error.kind)
                raise
            self.usage.waited_seconds += wait
            await asyncio.sleep(wait)

    async def _attempt(self, request: ChatRequest, attempt: int, structured: bool) -> ChatReply:
        longest = request.max_tokens or request.max_completion_tokens
        body = self._dialect.body(request, model=self.config.model, structured=structured)
        if self._requests is not None:
            await self._requests.take()
        if self._tokens is not None:
            await self._tokens.take(len(body) / 4 + (longest or 0))
        if not self._caps:
            return await self._send(body, attempt)
        # A token is at least a byte: the body's length bounds the tokens of the question.
        worst = cost_of(self._price, len(body), longest) or 0.0
        reserved: list[SpendCap] = []
        actual = 0.0
        try:
            for cap in self._caps:
                await cap.reserve(worst)
                reserved.append(cap)
            # A reply that was lost on the way may have been paid for: it counts at its worst.
            actual = worst
            reply = await self._send(body, attempt)
            actual = reply.cost_usd if reply.cost_usd is not None else worst
        except ModelError as error:
            if error.status is not None:
                actual = 0.0
            raise
        finally:
            for cap in reserved:
                cap.settle(worst, actual)
        return reply

    async def _send(self, body: bytes, attempt: int) -> ChatReply:
        slots = self._slots
        if not slots.enter_at_once():
            await slots.enter()
        refused = False
        try:
            self.usage.requests += 1
            start = perf_counter()
            answer = await self._transport.post(self._url, self._headers, body)
            seconds = perf_counter() - start
            refused = answer.status == 429
        finally:
            slots.observe(refused=refused)
            slots.leave()
            self.usage.concurrency = slots.slots
        answer = self._without_key(answer)
        check(answer)
        return self._reply(self._dialect.parse(answer.body), seconds, attempt)

    def _without_key(self, answer: HttpAnswer) -> HttpAnswer:
        """The answer, if need be without the key: some endpoints repeat it, and it goes no further.

        Placeholders such as `EMPTY` or `not-needed` are no keys, and may well be words of a reply.
        """
        key = self._key
        if key is None or len(key) < (20 if answer.status == 200 else 8) or key not in answer.body:
            return answer
        return answer._replace(body=answer.body.replace(key, b"***"))

    def _reply(self, parsed: Parsed, seconds: float, attempt: int) -> ChatReply:
        usage = self.usage
        usage.succeeded += 1
        usage.input_tokens += parsed.input_tokens or 0
        usage.output_tokens += parsed.output_tokens or 0
        cost = cost_of(self._price, parsed.input_tokens, parsed.output_tokens)
        usage.cost_usd += cost or 0.0
        return ChatReply(
            text=parsed.text,
            finish_reason=parsed.finish_reason,
            input_tokens=parsed.input_tokens,
            output_tokens=parsed.output_tokens,
            latency_seconds=seconds,
            cost_usd=cost,
            model=parsed.model or self.config.model,
            attempts=attempt,
            reasoning=parsed.reasoning,
        )

    def _limited(self, request: ChatRequest) -> ChatRequest:
        """The question with a limit where one is needed."""
        if request.max_tokens is not None or request.max_completion_tokens is not None:
            return request
        if not self._caps and self.config.dialect != "anthropic":
            return request
        return replace(request, max_tokens=self.config.default_max_tokens)

    def _noted(self, request: ChatRequest, reply: ChatReply) -> ChatReply:
        """The reply, with what became of the question's parameters."""
        notes = self._parameters.notes(request)
        if not notes:
            return reply
        self.usage.adjusted = list(dict.fromkeys([*self.usage.adjusted, *notes]))
        return replace(reply, adjusted=notes)
