"""Two sources of scores, put into the form that `compare` and `gate` take: one pair of runs per scorer."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from evenhand.core.errors import InputError, OptionError, UnknownName
from evenhand.core.jsontext import canonical
from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.core.secret import Secret
from evenhand.integrations.foreign_json import read_head
from evenhand.integrations.port import ImportedRun, ImportedSample
from evenhand.integrations.registry import IMPORTERS, read_foreign
from evenhand.integrations.service_experiment import COMPUTED_BY, UNKNOWN, is_address, read_experiment
from evenhand.results.bundle import BenchmarkSummary, Bundle
from evenhand.results.by_scorer import numeric_scorers, pairs_by_scorer
from evenhand.results.reading import RunResults, read_run, run_folders
from evenhand.results.records import SampleError, SampleResult

NAMED_BY_TASK = ("inspect", "lm-eval", "nemo", "service")
"""Tools whose runs carry the name of the task, which must be the same on both sides."""


class Sides(Struct, frozen=True, kw_only=True):
    """Two sources of scores: runs by name, their problems numbered alike."""

    base: dict[str, RunResults]
    candidate: dict[str, RunResults]
    notes: tuple[str, ...] = ()
    """What a reader should know about how the two were put together."""

    def pairs(self) -> list[tuple[RunResults, RunResults]]:
        """The runs that belong together: two single ones, or those of one name."""
        if len(self.base) == 1 and len(self.candidate) == 1:
            return [(next(iter(self.base.values())), next(iter(self.candidate.values())))]
        shared = [name for name in self.base if name in self.candidate]
        if not shared:
            raise InputError(
                f"no benchmark in common: {', '.join(self.base)} against {', '.join(self.candidate)}"
            )
        return [(self.base[name], self.candidate[name]) for name in shared]

    @property
    def lonely(self) -> list[str]:
        """The names that only one side has."""
        return (
            sorted(self.base.keys() ^ self.candidate.keys())
            if len(self.base) + len(self.candidate) > 2
            else []
        )


def is_foreign(source: str) -> bool:
    """Whether `source` is read by an importer: a file of another tool, a file of scores, an experiment."""
    if is_address(source):
        return True
    path = Path(source)
    if not path.exists():
        return False
    head = read_head(path)
    # Our own run folders and NeMo's have one layout; they are read as they are.
    return any(one.name != "nemo" and one.recognises(path, head) for one in IMPORTERS)


def read_sources(source: str, token: Secret | None = None, format_: str | None = None) -> list[ImportedRun]:
    """The runs at a path or at an experiment's address."""
    if is_address(source):
        return [read_experiment(source, token)]
    return read_foreign(Path(source), format_)


def load_sides(
    base: str, candidate: str, *, scorers: Sequence[str] = (), token: Secret | None = None
) -> Sides:
    """The runs of two sources. A run folder is one run, a folder of them one per benchmark; a file of another
    tool, a file of scores or an experiment of a service is one per scorer, called NAME · SCORER."""
    if not is_foreign(base) and not is_foreign(candidate):
        return _own_sides(Path(base), Path(candidate), scorers)
    mine, theirs = read_sources(base, token), read_sources(candidate, token)
    _check_scorers([*mine, *theirs], scorers)
    single = len(mine) == 1 and len(theirs) == 1
    if single:
        _check_task(mine[0], theirs[0])
        if mine[0].tool == theirs[0].tool == "service":
            mine, theirs = [with_unknown_scorers(mine[0])], [with_unknown_scorers(theirs[0])]
    order: dict[str, int] = {}
    for run in (*mine, *theirs):
        for sample in run.samples:
            order.setdefault(sample.item, len(order))
    sides: list[dict[str, RunResults]] = []
    for source, runs in ((base, mine), (candidate, theirs)):
        found: dict[str, RunResults] = {}
        for run in runs:
            label = mine[0].name if single else run.variant or run.name
            for scorer in scorer_names(run):
                if not scorers or scorer in scorers:
                    name = f"{label} · {scorer}"
                    found[name] = as_run(run, scorer, order, source, name)
        sides.append(found)
    notes = tuple(dict.fromkeys(words for run in (*mine, *theirs) for words in run.unmapped))
    return Sides(base=sides[0], candidate=sides[1], notes=notes)


def with_unknown_scorers(run: ImportedRun) -> ImportedRun:
    """A service tells what computed a score where it knows. Where it does not, its scores are not those of a version."""
    unknown = {name: {COMPUTED_BY: UNKNOWN} for name in scorer_names(run)}
    return replace(run, scorers={**unknown, **run.scorers})


def _own_sides(base: Path, candidate: Path, scorers: Sequence[str]) -> Sides:
    """Run folders, which may have several scorers each."""
    mine, theirs = _own(base), _own(candidate)
    single = len(mine) == 1 and len(theirs) == 1
    pairs = (
        [(next(iter(mine.values())), next(iter(theirs.values())))]
        if single
        else [(mine[name], theirs[name]) for name in mine if name in theirs]
    )
    if scorers and not any(numeric_scorers(run) for pair in pairs for run in pair):
        raise OptionError("--scorer picks among several scorers; these runs have only one")
    left: dict[str, RunResults] = {}
    right: dict[str, RunResults] = {}
    for pair in pairs:
        parts = pairs_by_scorer(*pair, scorers)
        left |= parts[0]
        right |= parts[1]
    if not single:  # what only one side has is named, not forgotten
        left |= {name: run for name, run in mine.items() if name not in theirs}
        right |= {name: run for name, run in theirs.items() if name not in mine}
    return Sides(base=left, candidate=right)


def _own(path: Path) -> dict[str, RunResults]:
    return {name: read_run(found) for name, found in sorted(run_folders(path).items())}


def _check_task(left: ImportedRun, right: ImportedRun) -> None:
    if left.tool == right.tool and left.tool in NAMED_BY_TASK and left.name != right.name:
        raise InputError(f"these are runs of different tasks: {left.name} and {right.name}")


def _check_scorers(runs: Sequence[ImportedRun], wanted: Sequence[str]) -> None:
    known = list(dict.fromkeys(name for run in runs for name in scorer_names(run)))
    if not known:
        raise InputError("there are no numeric scores in these files")
    for name in wanted:
        if name not in known:
            raise UnknownName("scorer", name, known)


def scorer_names(run: ImportedRun) -> list[str]:
    """The scorers with at least one number, in the order of the file."""
    names = dict.fromkeys(name for sample in run.samples for name in sample.outcomes)
    return [
        name
        for name in names
        if any(isinstance(one, Scored) and not isinstance(one.value, str) for one in run.outcomes(name))
    ]


def as_run(run: ImportedRun, scorer: str, order: Mapping[str, int], source: str, name: str) -> RunResults:
    """The run with one scorer's outcomes as rewards; `order` numbers the items, alike on both sides."""
    # The tool did not apply the scorer to a sample without an outcome of it: no part of this scorer's denominator.
    samples = [
        _sample(sample, outcome, order[sample.item])
        for sample in run.samples
        if (outcome := sample.outcomes.get(scorer)) is not None
    ]
    config: dict[str, Any] = {"treatment": run.treatment, "tool": run.tool}
    hashes: dict[str, str] = {}
    if scorer in run.scorers:
        config["scorer"] = run.scorers[scorer]
        hashes["scorer"] = sha256(canonical(run.scorers[scorer])).hexdigest()
    bundle = Bundle(benchmark=BenchmarkSummary(name=name, samples=len(samples)), config=config, hashes=hashes)
    address = source if is_address(source) else ""
    return RunResults(path=Path(source), name=name, bundle=bundle, samples=samples, address=address)


def _sample(sample: ImportedSample, outcome: Outcome, index: int) -> SampleResult:
    metadata = {"id": sample.item, **sample.metadata}
    common: dict[str, Any] = {
        "problem_idx": index,
        "repeat": sample.repeat,
        "expected_answer": sample.expected,
        "model_response": sample.output,
        "metadata": metadata,
        "usage": sample.usage,
    }
    match outcome:
        case Scored() if not isinstance(outcome.value, str):
            return SampleResult(
                **common,
                reward=outcome.value,
                status="scored",
                extracted_answer=outcome.extracted,
                scoring_details=outcome.details,
            )
        case Failed():
            return SampleResult(
                **common, status="failed", error=SampleError(kind=outcome.error, message=outcome.message)
            )
        case Scored():
            error = SampleError(kind="label", message="the score is a word, not a number")
        case _:
            error = SampleError(kind=outcome.reason, message=outcome.message)
    return SampleResult(**common, status="unscored", error=error)
