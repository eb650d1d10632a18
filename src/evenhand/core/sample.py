"""The sample that scorers and judges are given."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.core.errors import ScoringError
from evenhand.core.jsontext import spelled


@dataclass(slots=True)
class ScorerInput:
    """One response to be scored."""

    response: str
    """What the model answered."""
    target: Any = ""
    """The expected answer."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The row's other fields: alternative answers, tests, categories."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Options of the scorer for this sample."""
    sandbox: Any = None
    """The sandbox in which code of this sample runs; None means the configured one."""
    input: Any = None
    """What was asked, where it is known: the item's `input`."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """What the answer took, where it is known: `latency_seconds`, `cost_usd`."""


def with_text(sample: ScorerInput, *, parts: bool = True) -> ScorerInput | None:
    """The sample with its response as text (see `response_text`); None when there is no response."""
    given: Any = sample.response
    if isinstance(given, str):
        return sample
    text = response_text(given, parts=parts)
    return None if text is None else replace(sample, response=text)


def response_text(value: Any, *, parts: bool = True) -> str | None:
    """A response as the text that scorers read; None when there is no response.

    Of the content parts of a chat message the texts count, one after the other, unless `parts` is false; other JSON
    values are written in their one spelling, and everything else as Python shows it.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if parts and isinstance(value, list | tuple) and value:
        texts = [_part_text(part) for part in value]
        if any(text is not None for text in texts) and all(_is_part(part) for part in value):
            return "".join(text for text in texts if text is not None)
    try:
        return spelled(value)
    except (ValueError, TypeError, RecursionError):
        return _shown(value)


def _shown(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # an integer of more digits than Python writes
        raise ScoringError("the response holds a number that is too long to be written as text") from None


def _is_part(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("type"), str)


def _part_text(part: Any) -> str | None:
    """The text of a part of type `text` or `output_text`; a model's thinking and its tool calls are no text."""
    if not _is_part(part) or part["type"] not in ("text", "output_text"):
        return None
    text = part.get("text")
    return text if isinstance(text, str) else None
