"""Scoring a file: samples from rows, outcomes as lines, a summary per scorer; `evenhand score`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from evenhand.core.errors import InputError, OutputError
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.datasets import Row, read_rows
from evenhand.datasets.rows import STDIN
from evenhand.evaluation.examples import Examples
from evenhand.models.reasoning import THINK_TAGS
from evenhand.results.writing import write_json
from evenhand.scoring.apply import score_sample, split_thinking
from evenhand.scoring.definition import Scorer
from evenhand.scoring.fingerprint import fingerprint
from evenhand.scoring.summary import ScorerSummary
from evenhand.scoring.types import ScorerInput

RESPONSE_FIELDS = ("response", "model_response", "output")
"""Where the response is looked for unless `--response-field` says."""
TARGET_FIELDS = ("target", "expected_answer", "expected_output")
"""Likewise the target."""
METADATA_FIELD = "metadata"
CATEGORY_FIELD = "category"
ID_FIELDS = ("id", "problem_idx", "repeat")
"""Fields of a row that its line of scores repeats."""

SCORERS_SUFFIX = ".scorers.json"
"""Beside `scores.jsonl`: what tells its scorers apart from others."""
SHOWN_SKIPS = 20
"""How many skipped lines are kept to be listed."""
PROGRESS_STEP = 200

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Fields(Struct, frozen=True, kw_only=True):
    """Which field of a row is what; None means: the first of the usual names."""

    response: str | None = None
    target: str | None = None
    metadata: str | None = None
    category: str | None = None
    group: str | None = None

    def sample(self, row: Row, path: Path) -> ScorerInput:
        """The sample of a row; `InputError` when the response is missing."""
        values = row.values
        response_field = self._find(values, self.response, RESPONSE_FIELDS)
        if response_field is None:
            wanted = self.response or " or ".join(RESPONSE_FIELDS)
            has = ", ".join(map(str, values))[:200] or "none"
            raise InputError(
                f"there is no field {wanted}; the row has: {has}. Say which one with --response-field",
                path=path,
                line=row.line,
            )
        target_field = self._find(values, self.target, TARGET_FIELDS)
        if target_field is None and self.target is not None:
            raise InputError("the field is missing", path=path, line=row.line, field=self.target)
        metadata_field = self.metadata or METADATA_FIELD
        used = (response_field, target_field, metadata_field)
        metadata = {key: value for key, value in values.items() if key not in used}
        own = values.get(metadata_field)
        if isinstance(own, Mapping):
            metadata.update(own)
        return ScorerInput(
            response=values[response_field],  # scorers read what is no text as text
            target=None if target_field is None else values[target_field],
            metadata=metadata,
        )

    def group_of(self, row: Row, path: Path) -> Any:
        """What makes a row belong together with others; None without `--group-field`."""
        if self.group is None:
            return None
        if self.group not in row.values:
            raise InputError("the field is missing", path=path, line=row.line, field=self.group)
        return str(row.values[self.group])

    def category_of(self, sample: ScorerInput) -> str | None:
        """The category under which a sample is counted, if it has one."""
        found = sample.metadata.get(self.category or CATEGORY_FIELD)
        return None if found is None or found == "" else str(found)

    @staticmethod
    def _find(values: Mapping[str, Any], given: str | None, usual: tuple[str, ...]) -> str | None:
        names = (given,) if given is not None else usual
        return next((name for name in names if name in values), None)


def was_cut_off(row: Mapping[str, Any]) -> bool:
    """Whether a row says that its response ended at the token limit."""
    reasons = (row.get("finish_reason"), row.get("stop_reason"))
    return row.get("truncated") is True or any(reason in ("length", "max_tokens") for reason in reasons)


class ScoresFile:
    """`scores.jsonl`: written beside its name and put in its place only when all went well."""

    def __init__(
        self, path: Path, sources: Sequence[Path], scorers: Mapping[str, Scorer] | None = None
    ) -> None:
        """`scorers` by label: what decides their grades is written beside the scores, for comparisons to check."""
        self.path = path
        self._scorers = scorers or {}
        for source in sources:
            _check_place(path, source)
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._file: BinaryIO | None = None

    def __enter__(self) -> "ScoresFile":
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._part.open("wb", buffering=1 << 20)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror}") from None
        return self

    def write(
        self,
        row: Row,
        category: str | None,
        outcomes: Mapping[str, Outcome],
        *,
        file: str = "",
        truncated: bool = False,
    ) -> None:
        """One line; `file` says which of several files its row came from, `truncated` that its response was cut off."""
        assert self._file is not None
        line: dict[str, Any] = {"line": row.line}
        if file:
            line["file"] = file
        line.update({name: row.values[name] for name in ID_FIELDS if name in row.values})
        if category is not None:
            line["category"] = category
        if truncated:
            line["truncated"] = True
        line["scores"] = outcomes
        try:
            data = _encode(line)
        except (ValueError, TypeError, RecursionError):
            cleaned: dict[str, Any] = {
                name: _writable(value) for name, value in line.items() if name != "scores"
            }
            cleaned["scores"] = {name: _plain(outcome) for name, outcome in outcomes.items()}
            data = _encode(cleaned)
        self._file.write(data)
        self._file.write(b"\n")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        assert self._file is not None
        self._file.close()
        if kind is None:
            self._part.replace(self.path)
            identities = {label: fingerprint(scorer) for label, scorer in self._scorers.items()}
            write_json(self.path.with_suffix(SCORERS_SUFFIX), identities)
        else:
            self._part.unlink(missing_ok=True)


def _plain(outcome: Outcome) -> Outcome:
    """The outcome with text in place of what cannot be written: lone surrogates and strange objects."""
    match outcome:
        case Scored():
            value = _clean(outcome.value) if isinstance(outcome.value, str) else outcome.value
            return Scored(value=value, extracted=_writable(outcome.extracted), details=_details(outcome))
        case Unscored():
            return Unscored(reason=outcome.reason, message=_clean(outcome.message), details=_details(outcome))
        case Failed():
            return Failed(error=outcome.error, message=_clean(outcome.message), details=_details(outcome))


def _details(outcome: Outcome) -> dict[str, Any]:
    return {_clean(str(key)): _writable(value) for key, value in outcome.details.items()}


def _writable(value: Any) -> Any:
    try:
        _encode(value)
    except (ValueError, TypeError, RecursionError):
        return _clean(str(value)[:10_000])
    return value


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _check_place(path: Path, source: Path) -> None:
    if path.is_dir():
        raise InputError("this is a folder; the scores need a file's name", path=path)
    if not path.exists():
        return
    if source.exists() and path.samefile(source):
        raise InputError(
            "the scores would replace the file they are made from; choose another with -o", path=path
        )
    with path.open("rb") as file:
        start = file.read(200)
    if start and not start.startswith(b'{"line":'):
        raise InputError("the file is there and holds no scores; choose another with -o", path=path)


class FileScoring:
    """Scoring files: what to read, what to score with, and what came of it."""

    def __init__(
        self,
        paths: Sequence[Path],
        scorers: dict[str, Scorer],
        fields: Fields,
        *,
        keep_examples: bool = False,
        think_tags: Sequence[str] = THINK_TAGS,
    ) -> None:
        self.paths = paths
        self.think_tags = think_tags
        self.truncated = 0
        """Responses that were cut off: at the token limit, as their row says, or inside their thinking."""
        self.scorers = scorers
        self.fields = fields
        self.examples = {label: Examples() for label in scorers} if keep_examples else {}
        self.summaries = {label: ScorerSummary() for label in scorers}
        self.rows = 0
        self.skipped = 0
        self.first_skips: list[InputError] = []
        self.repeats = False
        given = {"--metadata-field": fields.metadata, "--category-field": fields.category}
        self.unseen = {option: name for option, name in given.items() if name is not None}

    def skip(self, error: InputError) -> None:
        """Count a line that cannot be read."""
        self.skipped += 1
        if len(self.first_skips) < SHOWN_SKIPS:
            self.first_skips.append(error)

    @property
    def name(self) -> str:
        """What was scored, in a word or two."""
        first = "standard input" if self.paths[0] == STDIN else self.paths[0].name
        return first if len(self.paths) == 1 else f"{first} and {len(self.paths) - 1} more"

    def _label(self, path: Path) -> str:
        """Which of several files: its name, or all of its path where another has the same name."""
        if len(self.paths) == 1:
            return ""
        return path.name if [one.name for one in self.paths].count(path.name) == 1 else str(path)

    @property
    def repeats_alone(self) -> bool:
        """Whether rows that are repeats of problems are taken for independent ones."""
        return self.repeats and self.fields.group is None

    def _answer_only(self, sample: ScorerInput) -> tuple[ScorerInput, bool]:
        """The sample without the thinking in its response, and whether it was cut off."""
        split = split_thinking(sample, self.think_tags)
        cut_off = was_cut_off(sample.metadata)
        if split is None:
            return sample, cut_off
        return replace(sample, response=split.answer), cut_off or split.unclosed

    def score(
        self,
        out: ScoresFile,
        *,
        input_format: str | None = None,
        skip_invalid: bool = False,
        advance: Callable[[int], None] = lambda rows: None,
    ) -> None:
        """Read, score and write row by row; `advance` is told how many more are done."""
        for path in self.paths:
            before = self.rows
            self._score_file(path, out, input_format, skip_invalid, advance)
            if self.rows == before:
                raise InputError("the file holds no rows that can be scored", path=path)
        if self.unseen:
            option, name = next(iter(self.unseen.items()))
            raise InputError(f"no row has the field '{name}' that {option} names", path=self.paths[0])

    def _score_file(
        self,
        path: Path,
        out: ScoresFile,
        input_format: str | None,
        skip_invalid: bool,
        advance: Callable[[int], None],
    ) -> None:
        reject = self.skip if skip_invalid else None
        file = self._label(path)
        for row in read_rows(path, format=input_format, reject=reject, surrogates=True):
            try:
                stored = self.fields.sample(row, path)
                sample, cut_off = self._answer_only(stored)
                group = self.fields.group_of(row, path)
            except InputError as error:
                if not skip_invalid:
                    raise
                self.skip(error)
                continue
            category = self.fields.category_of(sample)
            outcomes = {
                label: score_sample(scorer, stored if scorer.as_stored else sample, think_tags=())
                for label, scorer in self.scorers.items()
            }
            for label, outcome in outcomes.items():
                self.summaries[label].add(outcome, category=category, line=row.line, group=group)
            for label, kept in self.examples.items():
                kept.add(outcomes[label], sample, category=category, line=row.line, file=file)
            out.write(row, category, outcomes, file=file, truncated=cut_off)
            self.truncated += cut_off
            self.repeats = self.repeats or bool(row.values.get("repeat"))
            self.rows += 1
            if self.unseen:
                self._note_fields(row, sample)
            if self.rows % PROGRESS_STEP == 0:
                advance(PROGRESS_STEP)

    def _note_fields(self, row: Row, sample: ScorerInput) -> None:
        for option, place in (("--metadata-field", row.values), ("--category-field", sample.metadata)):
            if option in self.unseen and self.unseen[option] in place:
                del self.unseen[option]
