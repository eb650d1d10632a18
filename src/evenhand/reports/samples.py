"""Every sample of a run in its report: rows to filter, to search and to open.

The first rows are HTML, for readers without scripts. All of them are data in the file, which `static/samples.js` shows a
page at a time; it makes elements and texts only, never HTML from text.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import Any

import msgspec
from markupsafe import Markup

from evenhand.core import jsontext
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.core.terminal import preview
from evenhand.evaluation.sample_views import Said, SampleView
from evenhand.plots.svg import without_forbidden
from evenhand.reports.components import Block, Row, Samples
from evenhand.results.records import SampleError, SampleResult

FIRST_ROWS = 25
"""Rows that are HTML."""
MOST_SAMPLES = 20_000
"""Samples that a report holds; the rest is in the run's files."""
MOST_BYTES = 64 * 1024 * 1024
"""Size of all their data."""
MOST_TEXT = 20_000
"""Characters of one text."""
IN_MEMORY = 2 * 1024 * 1024
"""Size of the data from which on they wait in a temporary file."""
CHUNK = 500
"""Samples in one block of data; the browser reads them one after the other."""
_REASONS = ("reasoning", "reason", "explanation", "rationale")
_ENCODER = msgspec.json.Encoder()
# In a script element these could end it, or be read as the start of a comment; in strings of JSON they mean the same.
_ESCAPES = {
    b"<": rb"\u003c",
    b">": rb"\u003e",
    b"&": rb"\u0026",
    "\u2028".encode(): rb"\u2028",
    "\u2029".encode(): rb"\u2029",
}


def samples_part(
    views: Iterable[SampleView], *, scorer: str, total: int, most: int = MOST_SAMPLES
) -> Samples:
    """The samples of a run. `scorer` names the score of `results.jsonl`."""
    first: list[Row] = []
    chunks = _Chunks()
    held = size = 0
    names = [scorer]
    rows = islice(_rows(views, names), most)
    while size < MOST_BYTES and (batch := list(islice(rows, CHUNK))):
        if not first:
            first = batch[:FIRST_ROWS]
        size += chunks.add(in_script(_ENCODER.encode(batch)))
        held += len(batch)
    return Samples(first=first, scorers=names, chunks=chunks, held=held, total=max(total, held))


def in_script(data: bytes) -> bytes:
    """JSON for the inside of a script element: nothing in it can end the element."""
    for given, escaped in _ESCAPES.items():
        data = data.replace(given, escaped)
    return data


class _Chunks:
    """Blocks of data that wait for their place at the end of the report, in a file when they are large. To be read once."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  closed when it was read
        self._sizes: list[int] = []

    def add(self, data: bytes) -> int:
        self._sizes.append(self._file.write(data))
        return len(data)

    def __iter__(self) -> Iterator[Markup]:
        with self._file:
            self._file.seek(0)
            for size in self._sizes:
                yield Markup(self._file.read(size).decode("utf-8"))  # noqa: S704  escaped by `in_script`


def _rows(views: Iterable[SampleView], names: list[str]) -> Iterator[Row]:
    """The rows; `names` grows by the scorers that the samples name, the headline's first."""
    before: int | None = None
    for view in views:
        # Later answers to a problem do not repeat what was asked.
        outcomes = view.sample.outcomes
        if before is None and outcomes:
            names[0] = next(iter(outcomes))
        names += [name for name in outcomes if name not in names]
        yield _row(view, names, again=view.sample.problem_idx == before)
        before = view.sample.problem_idx


def _row(view: SampleView, names: Sequence[str], *, again: bool) -> Row:
    sample = view.sample
    kind, message = _error(sample)
    label = sample.scoring_details.get("label") if kind == "label" else None
    asked = [] if again else [Block(_text(role), _text(text), 2) for role, text in view.messages]
    if not again:
        asked.append(Block("Target", _shown(sample.expected_answer)))
    question = next((text for role, text in reversed(view.messages) if role == "user"), "")
    return Row(
        i=sample.problem_idx,
        r=sample.repeat,
        s=sample.status,
        v=[
            _text(str(label)) if label is not None else sample.reward,
            *(_value(sample.outcomes.get(name)) for name in names[1:]),
        ],
        w=_text(view.failure or kind),
        c=None if sample.category is None else _text(sample.category),
        q="" if again else preview(question, 160),
        a=preview(sample.model_response if sample.model_response is not None else message, 160),
        f=_facts(sample, view.said),
        asked=asked,
        got=_answered(sample),
        why=_measured(sample, view.said, names[0]),
    )


def _value(outcome: Outcome | None) -> float | str | None:
    if not isinstance(outcome, Scored):
        return None
    return outcome.value if isinstance(outcome.value, float) else _text(outcome.value)


def _others(sample: SampleResult) -> list[Block]:
    """What the scorers after the first say."""
    found = []
    for name, outcome in list(sample.outcomes.items())[1:]:
        match outcome:
            case Scored(value=value):
                found.append(
                    Block(_text(name), _shown(value) if isinstance(value, str) else _number(value), 3)
                )
            case Unscored(reason=kind, message=message):
                found.append(
                    Block(f"{_text(name)}: unscored", _text(f"{kind}: {message}" if message else kind))
                )
            case Failed(error=kind, message=message):
                found.append(
                    Block(f"{_text(name)}: failed", _text(f"{kind}: {message}" if message else kind))
                )
        if outcome.details:
            found.append(Block(f"Details of {_text(name)}", _json(outcome.details), 1))
    return found


def _answered(sample: SampleResult) -> list[Block]:
    found = []
    if sample.reasoning:
        found.append(Block("Thinking", _text(sample.reasoning), 1))
    if sample.model_response is not None:
        cut = "Answer, cut off" if sample.truncated else "Answer"
        found.append(Block(cut, _text(sample.model_response) or "(empty)"))
    if sample.extracted_answer is not None:
        found.append(Block("Extracted answer", _shown(sample.extracted_answer)))
    return found


def _measured(sample: SampleResult, said: Said | None, scorer: str) -> list[Block]:
    details = dict(sample.scoring_details)
    kind, message = _error(sample)
    found = []
    if sample.status == "scored":
        found.append(Block(scorer, _number(sample.reward), 3))
    else:
        words = f"{kind}: {message}" if kind and message else kind or message or "no reason given"
        found.append(Block(f"{scorer}: {sample.status}", _text(words)))
    reason = next((details.pop(name) for name in _REASONS if isinstance(details.get(name), str)), None)
    if reason:
        found.append(Block("Judge's reason" if "judge" in details else "Reason", _text(reason)))
    raw = details.pop("raw_reply", None)
    judge = (said.judge if said is not None else None) or {}
    raw = raw or judge.get("raw_reply")
    if details:
        found.append(Block("Scorer's details", _json(details), 1))
    if isinstance(raw, str) and raw:
        found.append(Block("Judge's reply", _text(raw), 1))
    if flags := [*judge.get("warnings", []), *judge.get("flags", [])]:
        found.append(Block("Judge's remarks", _text(", ".join(map(str, flags))), 3))
    found += _others(sample)
    if sample.metadata:
        found.append(Block("Metadata", _json(sample.metadata), 1))
    return found


def _facts(sample: SampleResult, said: Said | None) -> str:
    usage, words = sample.usage, []
    if usage is not None and usage.input_tokens is not None:
        words.append(f"{usage.input_tokens:,} tokens in")
    if usage is not None and usage.output_tokens is not None:
        words.append(f"{usage.output_tokens:,} out")
    if usage is not None and usage.duration_seconds is not None:
        words.append(f"{usage.duration_seconds:.2f} s")
    if usage is not None and usage.cost_usd is not None:
        words.append(f"${usage.cost_usd:.5f}")
    if said is not None:
        words += [f"{said.attempts} requests"] if said.attempts > 1 else []
        words += ["from the cache"] if said.cached else []
        words += [f"ended: {_text(said.finish_reason)}"] if said.finish_reason else []
        words += [_text(said.model)] if said.model else []
    return " · ".join(words)


def _error(sample: SampleResult) -> tuple[str, str]:
    error = sample.error
    if isinstance(error, SampleError):
        return error.kind, error.message
    return "", error or ""


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    return (_text(value) or "(empty)") if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        return _text(msgspec.json.format(jsontext.encode(value), indent=2).decode())
    except (ValueError, TypeError):  # Parquet holds more types than JSON
        return _text(str(value))


def _text(text: str) -> str:
    if len(text) <= MOST_TEXT and text.isprintable():  # most texts, and there are ten to a sample
        return text
    if len(text) > MOST_TEXT:
        text = f"{text[:MOST_TEXT]}\n… ({len(text):,} characters in all)"
    return without_forbidden(text)
