"""The port: what every chat model takes and gives."""

from typing import Any, Literal, Protocol

from msgspec import Struct, field

from evenhand.core.sample import response_text

Role = Literal["system", "user", "assistant"]


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """One turn of a conversation."""

    role: Role
    """Who speaks."""
    content: str | list[dict[str, Any]]
    """What is said: a text, or content parts (texts, images) as the endpoint takes them."""

    @property
    def text(self) -> str:
        """The text of it; of content parts the texts alone."""
        return response_text(self.content) or ""


class ChatRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to a model. What is None is left to the endpoint."""

    messages: tuple[Message, ...]
    """The conversation so far."""
    temperature: float | None = None
    """Spread of the sampling."""
    max_tokens: int | None = None
    """Longest reply, in tokens."""
    max_completion_tokens: int | None = None
    """Longest reply and thinking together, as newer models name the limit."""
    reasoning_effort: str | None = None
    """How long to think, in the endpoint's words: `low`, `medium`, `high`, ..."""
    top_p: float | None = None
    """Share of the probability mass that is sampled from."""
    seed: int | None = None
    """Seed of the sampling, where the endpoint takes one."""
    stop: tuple[str, ...] = ()
    """Texts at which the reply ends."""
    response_schema: dict[str, Any] | None = None
    """JSON Schema of the reply; sent where the endpoint supports it, otherwise left out."""
    repeat: int = 0
    """Which of several answers to the same question this is; part of the cache key, never sent."""
    unkeyed: str = ""
    """A code in the messages that says nothing about the question: no part of the cache key, put anew into replies
    from the cache."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further fields of the request's body, as the endpoint names them."""


class ChatReply(Struct, frozen=True, kw_only=True, gc=False):
    """One usable reply."""

    text: str
    """What the model answered."""
    finish_reason: str = "stop"
    """`stop`, `length`, `content_filter`, `tool_calls` or the endpoint's own word."""
    input_tokens: int | None = None
    """Tokens of the question, when the endpoint says so."""
    output_tokens: int | None = None
    """Tokens of the reply, when the endpoint says so."""
    latency_seconds: float = 0.0
    """Time of the attempt that succeeded; of the original one when the reply comes from the cache."""
    cost_usd: float | None = None
    """Price of the call; None when no price is known."""
    model: str = ""
    """The model that answered, in the endpoint's words."""
    cached: bool = False
    """Whether the reply came from the cache: nothing was sent and nothing was paid."""
    attempts: int = 1
    """How many requests it took."""
    reasoning: str | None = None
    """The model's own thinking, where the endpoint shows it apart."""
    adjusted: tuple[str, ...] = ()
    """Parameters that the endpoint does not take, and what was done about each."""


class ChatModel(Protocol):
    """A model that can be asked."""

    @property
    def model(self) -> str:
        """The model's id, as requests name it."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One reply; `ModelError` when none could be had."""
        ...

    async def aclose(self) -> None:
        """Give back connections and files."""
        ...


def user(text: str) -> Message:
    """A user's turn."""
    return Message(role="user", content=text)


def system(text: str) -> Message:
    """Instructions that precede the conversation."""
    return Message(role="system", content=text)
