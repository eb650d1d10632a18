"""What differs between the protocols of chat endpoints, and what every one of them answers alike."""

from typing import Any, Protocol

from msgspec import Struct

from evenhand.core.errors import InputError, ModelRejected
from evenhand.core.jsontext import decode
from evenhand.core.terminal import preview
from evenhand.models.parameters import refused_parameters
from evenhand.models.port import ChatRequest
from evenhand.models.retry import Retryable, parse_retry_after
from evenhand.models.transport import HttpAnswer


class Parsed(Struct, frozen=True, kw_only=True, gc=False):
    """What a usable answer says, before price and time are known."""

    text: str
    finish_reason: str
    input_tokens: int | None
    output_tokens: int | None
    model: str
    reasoning: str | None = None


class Dialect(Protocol):
    """One protocol: pure functions between our requests and its bodies."""

    path: str
    """What follows the base URL."""

    def headers(self, key: str | None) -> dict[str, str]:
        """The headers of every request."""
        ...

    def body(self, request: ChatRequest, *, model: str, structured: bool) -> bytes:
        """The body of one request."""
        ...

    def parse(self, body: bytes) -> Parsed:
        """What a successful answer says; `Retryable` when it says nothing usable."""
        ...


RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 524, 529})
_CONTEXT = ("context_length", "context length", "maximum context", "too many tokens", "prompt is too long")
_FILTER = ("content_filter", "content management policy", "content policy")
_QUOTA = ("insufficient_quota", "credit balance", "billing")


def check(answer: HttpAnswer) -> None:
    """Raise unless the answer is a success that may hold a reply."""
    if 200 <= answer.status < 300:
        kind = answer.content_type.partition(";")[0].strip().lower()
        if kind and "json" not in kind and kind != "text/plain":
            raise Retryable(
                f"the endpoint answered with {preview(kind, 40)} in place of JSON", kind="bad_reply"
            )
        return
    said, parameter = _error_text(answer.body)
    low = said.lower()
    status = answer.status
    if status == 429 and any(word in low for word in _QUOTA):
        raise ModelRejected(f"the endpoint's quota is used up (429): {said}", kind="quota", status=status)
    if status in RETRIED or status >= 500:
        raise Retryable(
            f"the endpoint answered {status}: {said}",
            kind="rate_limit" if status == 429 else "timeout" if status == 408 else "server_error",
            status=status,
            retry_after=parse_retry_after(answer.retry_after),
        )
    if 300 <= status < 400:
        raise ModelRejected(
            f"the endpoint answered with a redirect ({status}), which is not followed; give the final address",
            kind="redirect",
            status=status,
        )
    kind = "bad_request"
    if status in (401, 403):
        kind = "auth"
    elif status == 404:
        kind = "not_found"
    elif any(word in low for word in _CONTEXT):
        kind = "context_length"
    elif any(word in low for word in _FILTER):
        kind = "content_filter"
    raise ModelRejected(
        f"the endpoint refused the request ({status}): {said}",
        kind=kind,
        status=status,
        parameters=refused_parameters(said, parameter) if kind == "bad_request" else (),
    )


def _error_text(body: bytes) -> tuple[str, Any]:
    """The message of an error body in any of the usual shapes, or its beginning; and the parameter it is about."""
    try:
        value: Any = decode(body[:65536])
    except InputError:
        return preview(body[:400].decode("utf-8", "replace"), 200), None
    error = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(error, dict):
        words = [str(error[name]) for name in ("message", "detail", "code", "type") if error.get(name)]
        return preview(" · ".join(words), 300), error.get("param")
    return preview(str(error), 300), None


def bad_reply(reason: str) -> Retryable:
    """A success without a usable reply."""
    return Retryable(f"the endpoint's reply is not usable: {reason}", kind="bad_reply")
