"""What a suite comes to: one line per variant, one cell per scorer, and each variant's verdict against the baseline."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from evenhand.compare.comparison import Comparison, Options, compare_runs
from evenhand.compare.family import correct_together
from evenhand.compare.gate import run_gate
from evenhand.compare.policy import Policy
from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode
from evenhand.core.outcome import Tally
from evenhand.evaluation.result import Result, baseline_run
from evenhand.evaluation.suites.variants import VariantSuite
from evenhand.results.bundle import MetricValue
from evenhand.results.by_scorer import pairs_by_scorer
from evenhand.results.reading import RunResults

VerdictName = Literal["GO", "NO-GO", "INCONCLUSIVE"]
EXIT_STATUS: dict[VerdictName, int] = {"GO": 0, "NO-GO": 1, "INCONCLUSIVE": 2}


class Cell(Struct, frozen=True, kw_only=True):
    """What one scorer says of one variant."""

    mean: MetricValue
    """The mean of what was scored, with its interval."""
    tally: Tally
    """Scored, unscored and failed."""
    labels: dict[str, int] = field(default_factory=dict)
    """How often each label was given, by a scorer that gives labels."""


class Difference(Struct, frozen=True, kw_only=True):
    """One scorer's difference to the baseline."""

    scorer: str
    """Which."""
    verdict: str
    """PASS, WARN, BLOCK, INCONCLUSIVE; with a policy PASS, BREACH, INSUFFICIENT_EVIDENCE, MISSING."""
    sentence: str
    """It in words."""
    delta: float | None = None
    """Variant minus baseline, over the rows that both have scored; with a policy on another metric, that metric's."""
    ci_lower: float | None = None
    """Lower end of its interval, which holds for all differences of the grid at once."""
    ci_upper: float | None = None
    """Upper end."""
    limit: float | None = None
    """The drop that was tolerated."""


class Line(Struct, frozen=True, kw_only=True):
    """One variant."""

    variant: str
    """Its name."""
    prompt: str
    """The prompt's name."""
    model: str
    """The model's name."""
    folder: str
    """Where its run is."""
    samples: int
    """Rows × repeats."""
    cells: dict[str, Cell]
    """By scorer."""
    cost_usd: float | None
    """Of the model; null when no price is known."""
    judge_cost_usd: float | None
    """Of the judge."""
    latency_seconds: float | None
    """Half of the answers took no longer."""
    is_baseline: bool = False
    """Whether the others are held against it."""
    verdict: VerdictName | None = None
    """May it replace the baseline? None for the baseline, and where there is none."""
    sentence: str = ""
    """Why."""
    differences: list[Difference] = []
    """By scorer."""
    tests: dict[str, int] = field(default_factory=dict)
    """In files of tests: how many passed, failed, and ended in an error."""


class Grid(Struct, frozen=True, kw_only=True):
    """The whole."""

    suite: str
    """Its name."""
    baseline: str | None
    """The variant or folder that the others are held against."""
    margin: float | None
    """The drop that was tolerated; null with a policy."""
    scorers: list[str]
    """The columns."""
    lines: list[Line]
    """The rows, in the order of the file."""
    verdict: VerdictName | None
    """The worst; None without a baseline and without tests."""
    sentence: str
    """It in words."""
    notes: list[str] = []
    """What the reader must know."""

    @property
    def exit_status(self) -> int:
        """As `gate`: GO 0, NO-GO 1, INCONCLUSIVE 2; without a verdict 0, or 1 when samples could not be measured."""
        if self.verdict is not None:
            return EXIT_STATUS[self.verdict]
        return int(any(cell.tally.failed for line in self.lines for cell in line.cells.values()))


def make_grid(suite: VariantSuite, folder: Path) -> Grid:
    """The grid of the variants' runs under `folder`."""
    results = {one.name: Result.load(folder / one.folder) for one in suite.variants}
    lines = [
        replace(
            _line(results[one.name]), variant=one.name, prompt=one.prompt, model=one.model, folder=one.folder
        )
        for one in suite.variants
    ]
    if suite.tests:
        lines = [replace(line, tests=_tests(results[line.variant])) for line in lines]
    if suite.baseline is not None:
        against = suite.baseline
        base = baseline_run(results[against] if isinstance(against, str) else against)
        runs = {one.name: baseline_run(results[one.name]) for one in suite.candidates}
        judged = (
            _compared(base, runs, suite.margin) if suite.policy is None else _gated(base, runs, suite.policy)
        )
        lines = [
            replace(line, is_baseline=True) if line.variant == against else _with(line, judged[line.variant])
            for line in lines
        ]
    verdict, sentence = _tests_verdict(lines) if suite.tests else _overall(lines)
    return Grid(
        suite=suite.name,
        baseline=None if suite.baseline is None else str(suite.baseline),
        margin=None if suite.policy is not None or suite.baseline is None else suite.margin,
        scorers=list(dict.fromkeys(name for line in lines for name in line.cells)),
        lines=lines,
        verdict=verdict,
        sentence=sentence,
        notes=list(suite.notes),
    )


def _line(result: Result) -> Line:
    ledger = result.ledger
    cells = {
        name: Cell(mean=result.interval(name), tally=ledger[name], labels=result.labels(name))
        for name in result.scorers
    }
    stats: dict[str, Any] = {}
    if result.folder is not None and (path := result.folder / "runtime_stats.json").is_file():
        stats = decode(path.read_bytes())
    return Line(
        variant="",
        prompt="",
        model="",
        folder="",
        samples=result.bundle.benchmark.samples,
        cells=cells,
        cost_usd=stats.get("cost_usd"),
        judge_cost_usd=stats.get("judge_cost_usd"),
        latency_seconds=(stats.get("latency_seconds") or {}).get("p50"),
    )


def _with(line: Line, differences: list[Difference]) -> Line:
    names = [one.verdict for one in differences]
    verdict: VerdictName
    if any(name in ("BLOCK", "BREACH") for name in names):
        verdict = "NO-GO"
    elif names and all(name in ("PASS", "WARN") for name in names):
        verdict = "GO"
    else:
        verdict = "INCONCLUSIVE"
    decisive = {"NO-GO": ("BLOCK", "BREACH"), "GO": ("PASS", "WARN")}.get(verdict, ())
    shown = [one for one in differences if (one.verdict in decisive) == (verdict != "INCONCLUSIVE")]
    words = " ".join(
        f"{one.scorer}: {one.sentence}" if len(differences) > 1 else one.sentence for one in shown
    )
    return replace(line, verdict=verdict, sentence=words, differences=differences)


def _compared(base: RunResults, runs: Mapping[str, RunResults], margin: float) -> dict[str, list[Difference]]:
    """Every variant on every scorer, as one family: the chance of any wrong word in the grid stays at its level."""
    options = Options(max_drop=margin)
    found: dict[tuple[str, str], Comparison] = {}
    lost: dict[tuple[str, str], str] = {}
    for name, run in runs.items():
        mine, theirs = pairs_by_scorer(base, run)
        for benchmark in dict.fromkeys([*mine, *theirs]):
            place = (name, _scorer(benchmark, run))
            if benchmark not in mine or benchmark not in theirs:
                lost[place] = "Only one side has this scorer."
                continue
            try:
                found[place] = compare_runs(mine[benchmark], theirs[benchmark], options)
            except InputError as error:
                lost[place] = f"Not proven: {error.reason}."
    together = dict(zip(found, correct_together(list(found.values()), options), strict=True))
    made: dict[str, list[Difference]] = {name: [] for name in runs}
    for (name, scorer), one in together.items():
        interval = one.delta if one.family is None else one.family.simultaneous
        verdict: str = one.verdict.name
        if verdict == "WARN" and not (one.evidence.ruled_out and one.evidence.is_covered):
            verdict = "INCONCLUSIVE"
        made[name].append(
            Difference(
                scorer=scorer,
                verdict=verdict,
                sentence=one.verdict.sentence,
                delta=one.delta.value,
                ci_lower=interval.ci_lower,
                ci_upper=interval.ci_upper,
                limit=margin,
            )
        )
    for (name, scorer), words in lost.items():
        made[name].append(Difference(scorer=scorer, verdict="INCONCLUSIVE", sentence=words, limit=margin))
    return made


def _scorer(benchmark: str, run: RunResults) -> str:
    """The scorer of `SUITE · SCORER`; of a run with one scorer alone, that scorer's name."""
    _, dot, scorer = benchmark.rpartition(" · ")
    if dot:
        return scorer
    shown = run.bundle.config.get("scorer") if run.bundle is not None else None
    return str(shown.get("name")) if isinstance(shown, dict) else "score"


def _gated(base: RunResults, runs: Mapping[str, RunResults], policy: Policy) -> dict[str, list[Difference]]:
    """Every variant through the policy. Benchmarks of the policy are the scorers; the error rate is shared."""
    shared = replace(policy, alpha=policy.alpha / max(len(runs), 1))
    made = {}
    for name, run in runs.items():
        mine, theirs = pairs_by_scorer(base, run)
        report = run_gate(
            {_scorer(key, run): one for key, one in mine.items()},
            {_scorer(key, run): one for key, one in theirs.items()},
            shared,
        )
        made[name] = [
            Difference(
                scorer=gate.benchmark if gate.metric == "mean_reward" else f"{gate.benchmark} {gate.metric}",
                verdict=gate.status,
                sentence=" ".join(gate.reasons),
                delta=None if gate.damage is None else -gate.damage,
                ci_lower=None if gate.damage_upper is None else -gate.damage_upper,
                ci_upper=None if gate.damage_lower is None else -gate.damage_lower,
                limit=gate.limit,
            )
            for gate in report.gates
            if gate.tier != "advisory"
        ]
    return made


def _overall(lines: list[Line]) -> tuple[VerdictName | None, str]:
    said = [line for line in lines if line.verdict is not None]
    if not said:
        return None, "No baseline: the means stand for themselves."
    order: tuple[VerdictName, ...] = ("NO-GO", "INCONCLUSIVE", "GO")
    worst = next(name for name in order if any(line.verdict == name for line in said))
    which = ", ".join(line.variant for line in said if line.verdict == worst)
    meaning = {
        "NO-GO": "worse than the baseline by more than is tolerated",
        "INCONCLUSIVE": "neither shown to be worse nor shown to be as good as is asked",
        "GO": "not worse than the baseline by more than is tolerated",
    }[worst]
    shared = f" (corrected for {len(said)} variants)" if len(said) > 1 else ""
    return worst, f"{which}: {meaning}{shared}."


def _tests(result: Result) -> dict[str, int]:
    found = {"passed": 0, "failed": 0, "errors": 0}
    for row in result.rows:
        value = row.scores.get(result.scorers[0])
        found["errors" if value is None else "passed" if value == 1 else "failed"] += 1
    return found


def _tests_verdict(lines: list[Line]) -> tuple[VerdictName, str]:
    total = {key: sum(line.tests[key] for line in lines) for key in ("passed", "failed", "errors")}
    words = f"{total['passed']:,} passed, {total['failed']:,} failed, {total['errors']:,} errors."
    if total["failed"]:
        return "NO-GO", words
    return ("INCONCLUSIVE" if total["errors"] else "GO"), words
