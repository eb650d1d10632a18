"""Every sample of a finished run with what was asked and said, read back from its files, for reports."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct

from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.evaluation.failures import FailureAnalysis, classify
from evenhand.results.reading import read_samples
from evenhand.results.records import SampleResult

QUESTION_FIELDS = ("question", "prompt", "problem", "input")
"""Where a problem's metadata may hold the question, for files without a record of the messages."""


class Said(Struct, frozen=True, kw_only=True):
    """What a report needs of a line of `trajectories.jsonl`; whatever else it holds is left alone."""

    problem_idx: int
    repeat: int = 0
    messages: list[Any] = []
    finish_reason: str = ""
    model: str = ""
    attempts: int = 1
    cached: bool = False
    judge: dict[str, Any] | None = None


class SampleView(Struct, frozen=True, kw_only=True):
    """One sample: what became of it, and what was said."""

    sample: SampleResult
    """The line of `results.jsonl`."""
    messages: list[tuple[str, str]]
    """Role and text of what was sent; from the metadata where nobody kept it."""
    said: Said | None = None
    """How the answer came about, where that was kept."""
    failure: str | None = None
    """Why it counts as a failure: `wrong_answer`, `truncated`, ..."""


def sample_views(
    folder: Path, failures: FailureAnalysis, *, trajectories: Path | None = None
) -> Iterator[SampleView]:
    """The samples of the run in `folder`, in order, each in the category in which `failures` counts it.

    `trajectories` is where the messages are, if elsewhere.
    """
    # Whether the scorer looks for an answer is not in the file, but where one does and finds none, that was counted.
    extracts = "format_error" in failures.categories
    said = _Beside(trajectories or folder / "trajectories.jsonl")
    for sample in read_samples(folder / "results.jsonl"):
        found = said.of(sample)
        messages = _messages(found.messages) if found is not None else []
        yield SampleView(
            sample=sample,
            messages=messages or _from_metadata(sample),
            said=found,
            failure=classify(sample, extracts=extracts),
        )


class _Beside:
    """The lines of a file of trajectories, taken along with those of the results, which are in the same order."""

    def __init__(self, path: Path) -> None:
        self._lines = _lines(path)
        self._head = next(self._lines, None)

    def of(self, sample: SampleResult) -> Said | None:
        key = (sample.problem_idx, sample.repeat)
        while self._head is not None and (self._head.problem_idx, self._head.repeat) < key:
            self._head = next(self._lines, None)
        if self._head is None or (self._head.problem_idx, self._head.repeat) != key:
            return None
        found, self._head = self._head, next(self._lines, None)
        return found


def _lines(path: Path) -> Iterator[Said]:
    # A report without messages is better than none: a line that cannot be read ends the reading.
    try:
        with path.open("rb") as file:
            for line in file:
                yield jsontext.decode(line, type=Said)
    except (OSError, InputError):
        return


def _messages(given: list[Any]) -> list[tuple[str, str]]:
    found = []
    for one in given:
        if isinstance(one, dict):
            content = one.get("content")
            text = content if isinstance(content, str) else jsontext.encode_text(content)
            found.append((str(one.get("role", "")), text))
    return found


def _from_metadata(sample: SampleResult) -> list[tuple[str, str]]:
    if sample.input is not UNSET:
        return [
            ("user", sample.input if isinstance(sample.input, str) else jsontext.encode_text(sample.input))
        ]
    for name in QUESTION_FIELDS:
        value = sample.metadata.get(name)
        if isinstance(value, str) and value:
            return [("user", value)]
    return []
