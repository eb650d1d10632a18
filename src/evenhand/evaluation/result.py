"""What `evaluate` gives back: rows, counts, means with intervals, and verdicts against other results."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, convert, field
from msgspec.structs import replace

from evenhand.core.errors import InputError, OutputError, Unavailable, UnknownName
from evenhand.core.outcome import Outcome, Scored, Tally
from evenhand.core.terminal import printable
from evenhand.results.bundle import BenchmarkSummary, Bundle, MetricValue, ScorerResult
from evenhand.results.by_scorer import pairs_by_scorer, scorers_of
from evenhand.results.reading import RunResults, read_run
from evenhand.results.records import SampleError, SampleResult, Usage
from evenhand.results.writing import write_json

if TYPE_CHECKING:
    from evenhand.compare.comparison import Comparison, Options
    from evenhand.evaluation.stopping import Stopping

ARTIFACTS = (
    "results.jsonl",
    "trajectories.jsonl",
    "runtime_stats.json",
    "failure_analysis.json",
    "report.html",
)
HTML_ROWS = 20
"""How many rows a notebook shows."""
HTML_CHARACTERS = 200
"""How much of a text it shows."""


class Row(Struct, frozen=True, kw_only=True):
    """One answer to one item."""

    index: int
    """The item's place in the data, from 0."""
    repeat: int
    """Which of several answers to the item this is."""
    input: Any
    """What the task was given."""
    output: Any
    """What it returned; None when it failed."""
    expected: Any
    """What was expected."""
    metadata: dict[str, Any]
    """The item's other fields."""
    scores: dict[str, float | str | None]
    """Every scorer's number or label; None where there is none: never a zero for a failure."""
    outcomes: dict[str, Outcome]
    """The same with reasons, errors and details."""
    error: str | None
    """Why the first scorer has no score for it, if so: the task's own error where it failed."""
    usage: Usage = field(default_factory=Usage)
    """Tokens, cost and seconds, where they are known."""
    trace_id: str | None = None
    """The trace that the task says it left."""


class Verdicts:
    """A result against a baseline: one comparison per scorer, corrected for their number. True when nothing got worse
    by more than the margin, for sure."""

    def __init__(
        self,
        comparisons: "Sequence[Comparison]",
        left_out: Sequence[str],
        *,
        pairs: Sequence[tuple[RunResults, RunResults]],
        options: "Options",
    ) -> None:
        """`pairs`: baseline and result of each comparison, which `audit` writes down."""
        self.comparisons: dict[str, Comparison] = {
            one.benchmark.rpartition(" · ")[2]: one for one in comparisons
        }
        """By scorer."""
        self.left_out = list(left_out)
        """Scorers that only one side has."""
        self._pairs = list(pairs)
        self._options = options

    @property
    def verdict(self) -> str:
        """The worst: BLOCK, then INCONCLUSIVE, then WARN, then PASS."""
        from evenhand.compare.verdict import worst_verdict

        names = [one.verdict.name for one in self.comparisons.values()]
        return worst_verdict(names, some_left_out=bool(self.left_out))

    def audit(self) -> dict[str, Any]:
        """Everything that the verdict was made from; written as JSON, `tools/verify_verdict.py` recomputes it."""
        from evenhand.compare.audit import compare_audit, digests

        base, mine = (str(run.path) for run in self._pairs[0])
        return compare_audit(
            list(self.comparisons.values()),
            self._pairs,
            self._options,
            verdict=self.verdict,
            left_out=self.left_out,
            inputs=digests({"base": base, "candidate": mine}),
        )

    def save_audit(self, path: str | Path) -> Path:
        """Write `audit` to a file."""
        file = Path(path)
        try:
            write_json(file, self.audit())
        except OSError as error:
            raise OutputError(f"{file}: cannot be written: {error.strerror}") from None
        return file

    def __bool__(self) -> bool:
        """Whether a drop larger than the margin is ruled out on every scorer."""
        return not self.left_out and all(
            one.verdict.name == "PASS"
            or (one.verdict.name == "WARN" and one.evidence.ruled_out and one.evidence.is_covered)
            for one in self.comparisons.values()
        )

    def __str__(self) -> str:
        lines = [f"{self.verdict}"]
        for name, one in self.comparisons.items():
            lines.append(f"{printable(name)}: {one.verdict.name}. {one.verdict.sentence}")
            lines += [f"  {reason}" for reason in one.verdict.reasons]
        if self.comparisons:
            changes = next(iter(self.comparisons.values())).treatment
            lines += [f"treatment: {printable(str(change))}" for change in changes]
        lines += [f"{printable(name)}: only on one side" for name in self.left_out]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Result:
    """A finished evaluation, in memory."""

    def __init__(self, run: RunResults, files: Mapping[str, bytes], *, folder: Path | None = None) -> None:
        """`files`: the artifacts by name. Use `evaluate`, `aevaluate` or `Result.load`."""
        if run.bundle is None:
            raise InputError("there is no bundle eval-*.json beside the results", path=run.path)
        self._run = run
        self._files = dict(files)
        self.folder = folder
        """Where the run is kept, if it is."""
        self.verdicts: Verdicts | None = None
        """Against the baseline that `evaluate` was given."""

    @classmethod
    def load(cls, folder: str | Path) -> "Result":
        """The result that a folder holds: of `evaluate`, of `evenhand eval run`, or one that was saved."""
        path = Path(folder)
        run = read_run(path)
        return cls(run, _artifacts(path), folder=path)

    def forget_folder(self) -> None:
        """The folder is not kept: what was read from it is all there is."""
        self._run = replace(self._run, path=Path(self.name))
        self.folder = None

    @property
    def bundle(self) -> Bundle:
        """What the run was and what it came to, as `eval-*.json` has it."""
        assert self._run.bundle is not None
        return self._run.bundle

    @property
    def name(self) -> str:
        """The name that the run was given, else that of its data."""
        return str(self.bundle.config.get("name") or self._run.name)

    @property
    def stopping(self) -> "Stopping | None":
        """What stopping as soon as it was decided came to, if the run was to do so."""
        from evenhand.evaluation.stopping import Stopping

        told = self.bundle.config.get("stopping")
        return None if told is None else convert(told, Stopping)

    @property
    def scorers(self) -> list[str]:
        """The scorers' names, the one of the headline first."""
        return scorers_of(self._run) or [self._headline]

    @property
    def rows(self) -> list[Row]:
        """Every answer, in the order of the data."""
        return [_row(sample, self._headline) for sample in self._run.samples]

    @property
    def ledger(self) -> dict[str, Tally]:
        """Scored, unscored and failed samples by scorer; each adds up to the samples that the scorer was applied to."""
        found = self._results()
        return {name: one.tally or Tally() for name, one in found.items()}

    def mean(self, scorer: str | None = None) -> float:
        """The mean of what was scored; NaN when nothing was, which is neither above nor below any limit."""
        value = self.interval(scorer).value
        return math.nan if value is None else value

    def interval(self, scorer: str | None = None) -> MetricValue:
        """The mean with its interval: `.value`, `.ci_lower`, `.ci_upper`, and the method."""
        return self._result(scorer).scores.get("mean_reward", MetricValue(value=None, n=0))

    def metrics(self, scorer: str | None = None) -> dict[str, MetricValue]:
        """Every metric: with repeats also pass@k and pass^k."""
        return self._result(scorer).scores

    def labels(self, scorer: str | None = None) -> dict[str, int]:
        """How often each label was given, by a scorer that gives labels."""
        return self._result(scorer).labels

    def compare(
        self, baseline: "Result | str | Path", margin: float = 0.05, *, scorer: str | None = None
    ) -> Verdicts:
        """This result against another one, item by item: the same data and scorers, another task.

        `margin` is the drop that would be tolerated, on the scores' scale. Several scorers share the error rate;
        `scorer` picks one.
        """
        from evenhand.compare.comparison import Options, compare_runs
        from evenhand.compare.family import correct_together

        options = Options(max_drop=margin)
        base, mine = pairs_by_scorer(baseline_run(baseline), self._run, () if scorer is None else (scorer,))
        if len(base) == len(mine) == 1:
            pairs = [(next(iter(base.values())), next(iter(mine.values())))]
            left_out = []
        else:
            pairs = [(base[name], mine[name]) for name in base if name in mine]
            left_out = [name.rpartition(" · ")[2] for name in sorted(base.keys() ^ mine.keys())]
        if not pairs:
            raise InputError(f"no scorer in common: {', '.join(base)} against {', '.join(mine)}")
        found = correct_together([compare_runs(*pair, options) for pair in pairs], options)
        return Verdicts(found, left_out, pairs=pairs, options=options)

    def not_worse_than(
        self, baseline: "Result | str | Path", margin: float = 0.05, *, scorer: str | None = None
    ) -> Verdicts:
        """Whether a drop of more than `margin` against the baseline is ruled out: true or false, and says why."""
        return self.compare(baseline, margin, scorer=scorer)

    def save(self, folder: str | Path) -> Path:
        """Write the result into a new folder, which `Result.load`, `evenhand compare` and `gate` read."""
        path = Path(folder)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError("the folder for the result is not empty", path=path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            # The bundle last: a folder without one is not a result.
            for name in sorted(self._files, key=lambda name: name.startswith("eval-")):
                (path / name).write_bytes(self._files[name])
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
        return path

    def to_records(self) -> list[dict[str, Any]]:
        """The rows as flat dicts: one column per scorer, `SCORER status` beside it."""
        return list(self._records())

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame."""
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError:
            raise Unavailable(
                "to_pandas needs the package 'pandas'; install it with: pip install pandas"
            ) from None
        return pandas.DataFrame(self.to_records())

    def to_polars(self) -> Any:
        """The rows as a polars data frame; values of mixed types are written as text."""
        try:
            import polars
        except ImportError:
            raise Unavailable(
                "to_polars needs the package 'polars'; install it with: pip install polars"
            ) from None
        return polars.DataFrame(self.to_records(), infer_schema_length=None, strict=False)

    def summary(self) -> str:
        """Counts, means with intervals, and the verdict against the baseline, as text."""
        from evenhand.evaluation.summary import metric_text

        done = self.bundle.benchmark
        items = done.samples // max(done.repeats, 1)
        lines = [f"{printable(self.name)}: {items:,} items × {done.repeats} = {done.samples:,} samples"]
        width = max(map(len, self.scorers), default=0)
        for name, one in self._results().items():
            tally = one.tally or Tally()
            shown = metric_text(one.scores.get("mean_reward", MetricValue(value=None)))
            if one.labels:
                shown = ", ".join(f"{printable(label)} {count:,}" for label, count in one.labels.items())
            counts = f"{tally.scored:,} scored, {tally.unscored:,} unscored, {tally.failed:,} failed"
            lines.append(f"  {printable(name):<{width}}  {shown}  ({counts})")
        errors = [row.error for row in self.rows if row.error and row.output is None]
        if errors:
            lines.append(f"  the first of {len(errors):,} failures: {printable(errors[0])[:300]}")
        if self.stopping is not None:
            lines += [f"  {printable(line)}" for line in str(self.stopping).splitlines()]
        if self.verdicts is not None:
            lines += [f"  {line}" for line in str(self.verdicts).splitlines()]
        if self.folder is not None:
            lines.append(f"  kept in {printable(str(self.folder))}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """For notebooks: the summary and the first rows. Every text is escaped."""
        columns = ["input", "output", "expected", *self.scorers, "error"]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        body = []
        for row in self.rows[:HTML_ROWS]:
            values = [
                row.input,
                row.output,
                row.expected,
                *(row.scores.get(name) for name in self.scorers),
                row.error,
            ]
            body.append("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in values) + "</tr>")
        more = len(self._run.samples) - len(body)
        rest = f"<p>… and {more:,} more</p>" if more > 0 else ""
        return (
            f"<pre>{html.escape(self.summary())}</pre>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{rest}"
        )

    @property
    def _headline(self) -> str:
        scorer = self.bundle.config.get("scorer")
        named = scorers_of(self._run)
        return named[0] if named else str(scorer.get("name") if isinstance(scorer, dict) else "reward")

    def _results(self) -> dict[str, ScorerResult]:
        done: BenchmarkSummary = self.bundle.benchmark
        if done.scorers:
            return {name: done.scorers[name] for name in self.scorers if name in done.scorers}
        categories = done.categories if isinstance(done.categories, list) else []
        return {self._headline: ScorerResult(scores=done.scores, categories=categories, tally=done.tally)}

    def _result(self, scorer: str | None) -> ScorerResult:
        found = self._results()
        name = self._headline if scorer is None else scorer
        if name not in found:
            raise UnknownName("scorer", name, list(found))
        return found[name]

    def _records(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            yield {
                "index": row.index,
                "repeat": row.repeat,
                "input": row.input,
                "output": row.output,
                "expected": row.expected,
                **{name: row.scores.get(name) for name in self.scorers},
                **{f"{name} status": _status(row.outcomes.get(name)) for name in self.scorers},
                "error": row.error,
                "input_tokens": row.usage.input_tokens,
                "output_tokens": row.usage.output_tokens,
                "cost_usd": row.usage.cost_usd,
                "seconds": row.usage.duration_seconds,
                "trace_id": row.trace_id,
                "metadata": row.metadata,
            }


def baseline_run(given: "Result | str | Path") -> RunResults:
    """The run of a result, a folder or a results file."""
    return given._run if isinstance(given, Result) else read_run(given)


def _row(sample: SampleResult, headline: str) -> Row:
    outcomes = sample.outcomes
    scores: dict[str, float | str | None] = {
        name: one.value if isinstance(one, Scored) else None for name, one in outcomes.items()
    }
    error = sample.error
    return Row(
        index=sample.problem_idx,
        repeat=sample.repeat,
        input=None if sample.input is UNSET else sample.input,
        output=sample.model_response if sample.output is UNSET else sample.output,
        expected=sample.expected_answer,
        metadata=sample.metadata,
        scores=scores or {headline: sample.reward},
        outcomes=outcomes,
        error=None if error is None else _error_words(error),
        usage=sample.usage or Usage(),
        trace_id=sample.trace_id or None,
    )


def _error_words(error: SampleError | str) -> str:
    return error if isinstance(error, str) else error.message or error.kind


def _status(outcome: Outcome | None) -> str | None:
    return None if outcome is None else str(type(outcome).__name__).lower()


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    short = text if len(text) <= HTML_CHARACTERS else text[:HTML_CHARACTERS] + "…"
    return html.escape(printable(short))


def _artifacts(folder: Path) -> dict[str, bytes]:
    if not folder.is_dir():
        folder = folder.parent
    names = [*ARTIFACTS, *(path.name for path in folder.glob("eval-*.json"))]
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}
