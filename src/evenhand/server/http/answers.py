"""Answers: JSON bodies, pages of lists, and the one error envelope."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from evenhand.core.errors import (
    EvenhandError,
    InputError,
    MissingExtra,
    OptionError,
    Refusal,
    StoreBusy,
    StoreFull,
    StoreTimeout,
    StoreUnavailable,
    UnknownName,
)

T = TypeVar("T")
_ENCODER = msgspec.json.Encoder()

STATUS: dict[str, int] = {
    "INVALID_REQUEST": 400,
    "PROJECT_REQUIRED": 400,
    "INVALID_SCORE_VALUE": 400,
    "INVALID_SCORER_CONFIG": 400,
    "INVALID_SPAN": 400,
    "INVALID_SPAN_PARENT": 400,
    "CIRCULAR_SPAN_REFERENCE": 400,
    "EMPTY_ANNOTATION": 400,
    "INVALID_QUEUE_STATUS": 400,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "REQUEST_TIMEOUT": 408,
    "CONFLICT": 409,
    "DUPLICATE_SPAN": 409,
    "DUPLICATE_RUN": 409,
    "AMBIGUOUS_TARGET": 409,
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "EXPERIMENT_COMPLETED": 422,
    "INVALID_DATASET_ITEM": 422,
    "INCOMPATIBLE_EXPERIMENTS": 422,
    "UNSUPPORTED_THRESHOLD_TYPE": 422,
    "MIXED_SCORER_VERSIONS": 422,
    "INVALID_ANNOTATION_SCOPE": 422,
    "NO_ROOT_SPAN": 422,
    "NOT_INSTALLED": 422,
    "TOO_MANY_REQUESTS": 429,
    "INTERNAL_ERROR": 500,
    "OVERLOADED": 503,
    "QUERY_TIMEOUT": 503,
    "UNAVAILABLE": 503,
    "INSUFFICIENT_STORAGE": 507,
}
"""Every error code of the contract and its HTTP status."""
RETRY_AFTER = {"TOO_MANY_REQUESTS": 10, "OVERLOADED": 1, "QUERY_TIMEOUT": 5, "UNAVAILABLE": 2}
"""Seconds after which trying again makes sense."""

JSON = b"application/json"


class ErrorBody(Struct, frozen=True, kw_only=True):
    """What went wrong."""

    code: str
    """One of the contract's codes."""
    message: str
    """For people."""
    details: dict[str, Any] = {}
    """For programs: fields, ids, limits."""


class ErrorEnvelope(Struct, frozen=True, kw_only=True):
    """The shape of every error."""

    error: ErrorBody
    """The one field."""


class Page(Struct, Generic[T], frozen=True, kw_only=True):
    """A part of a list."""

    items: list[T]
    """In the list's order."""
    next_cursor: str | None
    """Ask with this `cursor` for what follows; null at the end."""
    limit: int
    """How many items a page may have."""


class Answer:
    """A complete answer, sent with its length."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        body: bytes,
        *,
        content_type: bytes = JSON,
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers or []


class StreamingAnswer(Answer):
    """An answer sent chunk by chunk as `chunks` makes them: an export, server-sent events.

    `chunks` is closed when the client goes away. An error in it cuts the connection, so that a client can tell an
    incomplete answer from a complete one. `endless` streams are ended when the server stops; others are finished.
    """

    __slots__ = ("chunks", "endless")

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        *,
        content_type: bytes,
        status: int = 200,
        headers: list[tuple[bytes, bytes]] | None = None,
        endless: bool = False,
    ) -> None:
        super().__init__(status, b"", content_type=content_type, headers=headers)
        self.chunks = chunks
        self.endless = endless


def json_answer(value: Any, status: int = 200) -> Answer:
    return Answer(status, _ENCODER.encode(value))


def encode_json(value: Any) -> bytes:
    return _ENCODER.encode(value)


def error_answer(code: str, message: str, details: Mapping[str, Any] | None = None) -> Answer:
    envelope = ErrorEnvelope(error=ErrorBody(code=code, message=message, details=dict(details or {})))
    headers: list[tuple[bytes, bytes]] = []
    if code in RETRY_AFTER:
        headers.append((b"retry-after", str(RETRY_AFTER[code]).encode()))
    if code == "METHOD_NOT_ALLOWED" and details:
        headers.append((b"allow", ", ".join(details["allowed"]).encode()))
    if code == "UNAUTHORIZED":
        headers.append((b"www-authenticate", b"Bearer"))
    return Answer(STATUS[code], _ENCODER.encode(envelope), headers=headers)


def answer_for(error: Exception) -> Answer | None:
    """The answer to an error of ours; None for one that nobody foresaw."""
    match error:
        case Refusal():
            return error_answer(error.code, str(error), error.details)
        case InputError() | OptionError() | UnknownName():
            return error_answer("INVALID_REQUEST", str(error))
        case MissingExtra():
            return error_answer("NOT_INSTALLED", str(error), {"extra": error.extra})
        case StoreFull():
            return error_answer("INSUFFICIENT_STORAGE", "No space is left; nothing was stored.")
        case StoreBusy():
            return error_answer("OVERLOADED", "Too many writes are waiting; try again in a moment.")
        case StoreTimeout():
            return error_answer("QUERY_TIMEOUT", "The query took too long and was stopped.")
        case StoreUnavailable():
            return error_answer("UNAVAILABLE", "The database cannot be used just now; try again in a moment.")
        case EvenhandError():
            return error_answer("INTERNAL_ERROR", "The server could not do this.")
    return None
