"""Stopping a run as soon as its verdict against a baseline is reached; see `compare.stopping` for why that is valid."""

import asyncio
from typing import Any

from msgspec import Struct, field

from evenhand.compare.comparison import Options
from evenhand.compare.compatibility import differences
from evenhand.compare.stopping import Look, look, random_order, row_of_finished
from evenhand.core.errors import Incomparable, InputError, OptionError
from evenhand.evaluation.artifacts import sample_result
from evenhand.evaluation.folder import Pinned
from evenhand.evaluation.ledger import DONE, Ledger
from evenhand.evaluation.pipeline import Decided
from evenhand.evaluation.planning import ProblemFile
from evenhand.results.bundle import BenchmarkSummary, Bundle
from evenhand.results.reading import RunResults
from evenhand.results.records import SampleResult

LOOKS = 100
"""About so many looks are taken in a whole run."""
FEWEST = 5
"""Problems before the first look."""


class StopRule(Struct, frozen=True, kw_only=True):
    """When a run may stop."""

    baseline: RunResults
    """The run to compare with, whose answers are there already."""
    margin: float = 0.05
    """The drop that would be tolerated."""
    seed: int = 0
    """Of the order in which the problems are asked."""


class Stopping(Struct, frozen=True, kw_only=True):
    """What stopping came to, as the bundle and the summary tell it."""

    verdict: str
    """PASS, WARN, BLOCK, or INCONCLUSIVE when the whole run did not decide it."""
    decided_after: int
    """Problems that the verdict rests on."""
    problems: int
    """Problems of the whole run."""
    asked: int
    """Samples that were asked, those in flight at the end included."""
    samples: int
    """Samples of the whole run."""
    margin: float
    """The drop that would be tolerated."""
    scorers: list[dict[str, Any]] = field(default_factory=list)
    """Each scorer's difference with the interval that is valid at any time, and its sentence."""
    calls_saved: int = 0
    """Calls of the model or the task that were not made."""
    judge_calls_saved: int = 0
    """Samples that the judge did not have to see, at the rate of those that it saw."""
    usd_saved: float | None = None
    """What they would have cost at the mean price of those that were made; None when no price is known."""

    def __str__(self) -> str:
        if self.verdict == "INCONCLUSIVE":
            first = f"not decided after {self.decided_after:,} of {self.problems:,} problems"
        else:
            first = f"{self.verdict}, decided after {self.decided_after:,} of {self.problems:,} problems"
        saved = ""
        if self.calls_saved:
            judge = f" and {self.judge_calls_saved:,} judgements" if self.judge_calls_saved else ""
            money = "" if self.usd_saved is None else f", about ${self.usd_saved:,.4f}"
            saved = f"; {self.calls_saved:,} of {self.samples:,} calls{judge} were not made{money}"
        lines = [first + saved]
        for one in self.scorers:
            lines.append(f"{one['scorer']}: {one['sentence']}")
            lines.append(
                f"  difference {one['delta']:+.4f} [{one['ci_lower']:+.4f}, {one['ci_upper']:+.4f}]: an interval that is "
                "valid at any time, wider than that of a run whose length was fixed"
            )
        if self.verdict != "INCONCLUSIVE" and self.asked < self.samples:
            lines.append("continue the run with --resume and without --stop-when-decided (resume=True)")
        return "\n".join(lines)


class Stopper:
    """Watches the ledger of a run."""

    def __init__(
        self, rule: StopRule, pinned: Pinned, problems: ProblemFile, ledger: Ledger, *, ahead: int
    ) -> None:
        """`ahead`: how many problems may be asked before the next look; at least as many as it waits for."""
        self._rule = rule
        self._pinned = pinned
        self._problems = problems
        self._ledger = ledger
        self._options = Options(max_drop=rule.margin)
        self._indexes = [problem.index for problem in problems]
        base = rule.baseline
        outside = next(
            (one.reward for one in base.samples if one.reward is not None and not 0 <= one.reward <= 1), None
        )
        if outside is not None:
            raise OptionError(f"stopping early needs scores between 0 and 1; the baseline has {outside:g}")
        self._candidate = RunResults(
            path=base.path,
            name=pinned.benchmark,
            bundle=Bundle(benchmark=BenchmarkSummary(name=pinned.benchmark), hashes=dict(pinned.hashes)),
            samples=[],
        )
        different = differences(base, self._candidate)
        if different:
            raise Incomparable(
                different, hint="\nA run can stop only against a baseline that measured the same."
            )
        known = {one.problem_idx for one in base.samples}
        shared = [index for index in self._indexes if index in known]
        if len(shared) < 2:
            raise InputError("the baseline has no problem in common with this run", path=base.path)
        self._order = random_order(shared, rule.seed)
        place = {index: number for number, index in enumerate(self._indexes)}
        # What the baseline lacks decides nothing, and comes last.
        rest = [index for index in self._indexes if index not in known]
        self.places = [place[index] for index in (*self._order, *rest)]
        """Where the problems are in the plan, in the order in which they are to be asked."""
        self._place = place
        self._step = max(1, len(self._order) // LOOKS)
        self._ahead = max(ahead, FEWEST, 2 * self._step)
        self._rank = {place: rank for rank, place in enumerate(self.places)}
        self._seen: dict[int, list[SampleResult]] = {}
        self._looked_at = 0
        self.last: Look | None = None

    def may_ask(self, key: int) -> bool:
        """Whether the problem of a sample is not too far ahead of the last look."""
        if self._looked_at >= len(self._order):
            return True  # only what the baseline lacks is left
        return self._rank[key // self._pinned.repeats] < self._looked_at + self._ahead

    async def decided(self) -> Decided | None:
        """One look, if enough is new; what it came to when that decides the run."""
        if self.last is not None and self.last.decided:
            return Decided()  # what was valid when it was seen stays so
        row = row_of_finished(self._order, _Finished(self))
        if len(row) < max(FEWEST, self._looked_at + self._step) and len(row) < len(self._order):
            return None
        if len(row) <= self._looked_at:
            return None
        found = await asyncio.to_thread(look, self._rule.baseline, self._grown(row), row, self._options)
        self.last = found
        self._looked_at = len(row)
        return Decided() if found.decided else None

    def report(self) -> Stopping:
        """What it came to in the end."""
        found, ledger = self.last, self._ledger
        asked = ledger.done()
        left = len(ledger) - asked
        share = left / max(asked, 1)
        judged = sum(sum(offset >= 0 for offset in places.offsets) for places in ledger.judged.values())
        return Stopping(
            verdict="INCONCLUSIVE" if found is None else found.verdict,
            decided_after=0 if found is None else found.problems,
            problems=len(self._indexes),
            asked=asked,
            samples=len(ledger),
            margin=self._rule.margin,
            scorers=[] if found is None else [_shown(one) for one in found.comparisons],
            calls_saved=left,
            judge_calls_saved=round(judged * share),
            usd_saved=ledger.spent.cost_usd * share if ledger.spent.priced else None,
        )

    def is_finished(self, problem: int) -> bool:
        first = self._place[problem] * self._pinned.repeats
        return all(self._ledger.state[first + repeat] in DONE for repeat in range(self._pinned.repeats))

    def _grown(self, row: list[int]) -> RunResults:
        for problem in row:
            if problem not in self._seen:
                self._seen[problem] = list(self._samples(problem))
        samples = [one for problem in row for one in self._seen[problem]]
        return RunResults(
            path=self._candidate.path,
            name=self._candidate.name,
            bundle=self._candidate.bundle,
            samples=samples,
        )

    def _samples(self, problem: int) -> Any:
        place = self._place[problem]
        for repeat in range(self._pinned.repeats):
            key = place * self._pinned.repeats + repeat
            steps = (
                self._ledger.generation(key),
                self._ledger.measurement(key),
                self._ledger.judgements(key),
            )
            yield sample_result(self._problems[place], repeat, *steps, scorers=self._pinned.scorers)


class _Finished:
    """The finished problems, looked up one by one: only the first unfinished one matters."""

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper

    def __contains__(self, problem: object) -> bool:
        return isinstance(problem, int) and self._stopper.is_finished(problem)


def _shown(one: Any) -> dict[str, Any]:
    return {
        "scorer": one.benchmark.rpartition(" · ")[2],
        "verdict": one.verdict.name,
        "sentence": one.verdict.sentence,
        "delta": one.delta.value,
        "ci_lower": one.delta.ci_lower,
        "ci_upper": one.delta.ci_upper,
        "confidence_level": one.delta.confidence_level,
        "method": one.delta.method,
        "problems": one.problems,
    }
