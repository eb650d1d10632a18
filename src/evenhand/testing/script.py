"""Scripted answers of the mock endpoint: a table, or the lines of a file."""

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from evenhand.core.errors import InputError, MissingFile
from evenhand.core.jsontext import decode
from evenhand.testing.faults import FaultKind

DEFAULT_ANSWER = "This is the scripted answer of a mock model."
# What a judge's prompt asks to be repeated; see judging.
_NONCE = re.compile(r'(?:"nonce": "|VERDICT )([0-9a-f]{8,64})\b')


class MockCall(Struct, frozen=True, kw_only=True):
    """One request as the mock endpoint saw it."""

    prompt: str
    """The last user turn."""
    system: str
    """The instructions before the conversation."""
    model: str
    """The model asked for."""
    body: dict[str, Any]
    """The whole body."""
    headers: dict[str, str]
    """Header fields, names in lower case."""
    path: str
    """The path asked for."""
    seen: int
    """How often the very same body came before."""


class MockAnswer(Struct, frozen=True, kw_only=True):
    """What the mock endpoint says, where a text alone is not enough."""

    text: str = ""
    """The reply."""
    content: list[dict[str, Any]] | None = None
    """Content parts in place of the text."""
    tool_calls: tuple[dict[str, Any], ...] = ()
    """Tools that the model calls: `{"name": ..., "arguments": {...}}`."""
    finish_reason: str = "stop"
    """Why it ended: `stop`, `length` or `content_filter`; Anthropic's words are used where its dialect is spoken."""
    input_tokens: int | None = None
    """Tokens of the question; counted by words when None."""
    output_tokens: int | None = None
    """Tokens of the reply; counted by words when None."""
    reasoning: str | None = None
    """Thinking shown apart from the reply."""
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    """Where an OpenAI-compatible reply has it."""
    fault: FaultKind | None = None
    """What goes wrong with this answer."""
    latency: float | None = None
    """Seconds for this answer, in place of the server's."""
    status: int = 200
    """Any other status makes `text` the message of an error."""
    headers: dict[str, str] = field(default_factory=dict)
    """Further header fields of the answer."""


Answerer = Callable[[MockCall], "str | MockAnswer"]


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a script: a condition (none means always) and what is answered."""

    contains: str | None = None
    """The prompt holds this text."""
    equals: str | None = None
    """The prompt is this text."""
    sha256: str | None = None
    """The prompt's UTF-8 bytes have this SHA-256."""
    answer: str | None = None
    """The reply; `{{nonce}}` becomes the code that a judge's prompt asks for."""
    answers: tuple[str, ...] = ()
    """Replies in turn, for the first, second, ... time the same request comes; the last one stays."""
    status: int = 200
    """Any other status makes the reply the message of an error."""
    finish_reason: str = "stop"
    """Why the reply ended; `length` for one that was cut off."""
    reasoning: str | None = None
    """Thinking shown apart from the reply."""
    tool_calls: tuple[dict[str, Any], ...] = ()
    """Tools that the model calls."""
    latency: float | None = None
    """Seconds for this answer, in place of the server's."""
    fault: FaultKind | None = None
    """What goes wrong with this answer."""

    def matches(self, prompt: str) -> bool:
        if self.equals is not None and prompt != self.equals:
            return False
        if self.sha256 is not None and hashlib.sha256(prompt.encode()).hexdigest() != self.sha256.lower():
            return False
        return self.contains is None or self.contains in prompt


class Script:
    """Answers by the first line that matches."""

    def __init__(self, lines: Iterable[Line], *, default: str = DEFAULT_ANSWER) -> None:
        self._exact: dict[str, Line] = {}
        self._rest: list[Line] = []
        self._default = default
        for line in lines:
            if line.equals is not None and line.contains is None and line.sha256 is None:
                self._exact.setdefault(line.equals, line)
            else:
                self._rest.append(line)

    def __call__(self, call: MockCall) -> str | MockAnswer:
        line = self._exact.get(call.prompt) or next(
            (line for line in self._rest if line.matches(call.prompt)), None
        )
        if line is None:
            return with_nonce(self._default, call.prompt)
        if line.answers:
            text = line.answers[min(call.seen, len(line.answers) - 1)]
        else:
            text = line.answer or ""
        return MockAnswer(
            text=with_nonce(text, call.prompt),
            status=line.status,
            finish_reason=line.finish_reason,
            reasoning=line.reasoning,
            tool_calls=line.tool_calls,
            latency=line.latency,
            fault=line.fault,
        )


def with_nonce(answer: str, prompt: str) -> str:
    """`answer` with the code that the prompt demands in place of `{{nonce}}`."""
    if "{{nonce}}" not in answer:
        return answer
    return answer.replace("{{nonce}}", demanded_nonce(prompt) or "")


def demanded_nonce(prompt: str) -> str | None:
    """The code that a judge's prompt asks to be repeated; the demand comes last in it."""
    found = _NONCE.findall(prompt)
    return str(found[-1]) if found else None


def read_script(path: Path, *, default: str = DEFAULT_ANSWER) -> Script:
    """The script in a file of JSON lines."""
    lines = []
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingFile(f"cannot be read: {error}", path=path) from None
    except UnicodeDecodeError as error:
        raise InputError(f"cannot be read: {error}", path=path) from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = decode(line, type=Line)
        except InputError as error:
            raise InputError(error.reason, path=path, line=number) from None
        if found.answer is None and not found.answers and not found.tool_calls and found.fault is None:
            raise InputError(
                "a line needs 'answer', 'answers', 'tool_calls' or 'fault'", path=path, line=number
            )
        lines.append(found)
    return Script(lines, default=default)
