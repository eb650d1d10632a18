"""From an interval and a test to a verdict, in words.

A regression check asks a one-sided question: did it get worse? With `max_drop` the drop that would be tolerated
and α = 1 − confidence level:

============  ==================================================================================
BLOCK         the drop is significant (one-sided p < α) and its estimate is larger than tolerated
WARN          the drop is significant, and its estimate is within the tolerance
PASS          no significant drop, a drop larger than tolerated is ruled out (p < α/2, by a bound
              that counts one problem, or cluster, lost as a whole but not seen), and
              missing samples cannot change that: each side has scored at least `min_coverage` of
              the samples, or the worst case's interval rules the drop out too
INCONCLUSIVE  neither: the data cannot tell, or too much is missing
============  ==================================================================================

Several benchmarks at once share α: see `Family`. Without a difference BLOCK comes up with probability α at most, whatever `max_drop` is. A BLOCK stands although
samples are missing: what is not there cannot make a candidate better.
"""

from collections.abc import Iterable
from math import ceil, log, log1p
from typing import Literal

from msgspec import Struct

from evenhand.compare.coverage import Coverage, coverage_words, share_text
from evenhand.compare.words import method_words
from evenhand.metrics.types import Interval

VerdictName = Literal["PASS", "WARN", "BLOCK", "INCONCLUSIVE"]
EXIT_STATUS: dict[VerdictName, int] = {"PASS": 0, "BLOCK": 1, "WARN": 2, "INCONCLUSIVE": 2}
SEVERITY: dict[VerdictName, int] = {"PASS": 0, "WARN": 1, "INCONCLUSIVE": 2, "BLOCK": 3}
"""INCONCLUSIVE is worse than WARN: a drop larger than tolerated is still possible."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What the comparison comes to."""

    name: VerdictName
    """The verdict."""
    sentence: str
    """It in one sentence for people who did not run it."""
    reasons: list[str]
    """The facts that it rests on; how much is covered is always among them."""
    next_step: str
    """What to do now."""


def worst_verdict(names: Iterable[VerdictName], *, some_left_out: bool) -> VerdictName:
    """The verdict over several comparisons; what could not be compared might have fallen."""
    verdicts = list(names)
    if some_left_out:
        verdicts.append("INCONCLUSIVE")
    return max(verdicts, key=SEVERITY.__getitem__)


class Family(Struct, frozen=True, kw_only=True):
    """What is left of one comparison when several benchmarks are compared together."""

    size: int
    """How many benchmarks."""
    p_drop: float
    """After Holm's correction: BLOCK and WARN rest on it."""
    p_rise: float
    """After Holm's correction: "really better" rests on it."""
    p_beyond: float
    """After Hochberg's correction: PASS rests on it. Where every benchmark passes alone, all pass together."""
    simultaneous: Interval
    """The delta's interval, wide enough for all benchmarks together (Bonferroni)."""


class Evidence(Struct, frozen=True, kw_only=True):
    """What a verdict is made from."""

    delta: Interval
    """Candidate minus base, on the score's scale; negative is worse."""
    p_drop: float
    """One-sided: of data like these if the candidate were not worse."""
    p_rise: float
    """One-sided: of data like these if the candidate were not better."""
    p_beyond: float | None = None
    """One-sided: of data like these if the drop were `max_drop` or larger; None: the interval decides."""
    lowest: float | None = None
    """The lowest delta that is not ruled out at the level of `p_beyond`, counting a drop that was not seen."""
    max_drop: float
    """The tolerated drop, as a positive number."""
    coverage: Coverage
    """How much was compared, and how far the rest could move the delta."""
    min_coverage: float
    """How much each side must have scored."""
    more_problems: int | None
    """How many problems (or clusters) more would show a drop of `max_drop`, or rule it out where nothing changed, with
    80 % power; 0 when there are enough."""
    wanted_effect: float
    """The drop that `more_problems` is about."""
    scale: float = 1.0
    """The largest difference that could be; 1 for scores from 0 to 1, whose differences are told in points."""
    units: int | None = None
    """How many problems, or clusters of them, are independent; None while a run still grows."""
    clustered: bool = False
    """Whether `units` are clusters."""
    family: Family | None = None
    """The corrected p-values, when other benchmarks are compared at the same time."""

    @property
    def sure_p_drop(self) -> float:
        """The p-value of a drop that decides: corrected where there are several benchmarks."""
        return self.p_drop if self.family is None else self.family.p_drop

    @property
    def sure_p_rise(self) -> float:
        """The p-value of a gain that decides."""
        return self.p_rise if self.family is None else self.family.p_rise

    @property
    def ruled_out(self) -> bool:
        """Whether a drop larger than tolerated is ruled out, at half of α as by a two-sided interval."""
        if self.p_beyond is None:
            return self.delta.ci_lower > -self.max_drop
        p = self.p_beyond if self.family is None else self.family.p_beyond
        return p < (1 - self.delta.confidence_level) / 2

    @property
    def is_covered(self) -> bool:
        """Whether what is missing cannot reverse that."""
        return _covered(self) or _worst_clears(self, -self.max_drop)


def fewest_units(max_drop: float, scale: float, alpha: float) -> int:
    """How many unchanged problems (or clusters) rule out a drop at level α: a whole one may be lost unseen.

    With fewer, a share max_drop/scale of problems that fall by the whole scale goes unseen with a chance above α.
    """
    if not 0 < max_drop < scale:
        return 1
    return ceil(log(alpha) / log1p(-max_drop / scale) - 1e-9)


def points(value: float, scale: float, *, sign: bool = False) -> str:
    """A difference of scores in points (hundredths): `2.5 points`; on a larger scale the number itself."""
    if scale > 1:
        return f"{value:+.4g}" if sign else f"{value:.4g}"
    text = f"{value * 100:+.1f}" if sign else f"{value * 100:.1f}"
    return f"{text} points"


def decide(evidence: Evidence) -> Verdict:
    """Apply the table above."""
    delta, alpha = evidence.delta, 1 - evidence.delta.confidence_level
    dropped = delta.value < 0 and evidence.sure_p_drop < alpha
    beyond = -delta.value > evidence.max_drop
    if dropped:
        return _worse(evidence, beyond=beyond)
    if not evidence.ruled_out:
        return Verdict(
            name="INCONCLUSIVE",
            sentence=f"Not proven: the data cannot tell, the true change lies anywhere from {_possible(evidence)}{_over(evidence)}.",
            reasons=[
                *_reasons(evidence, dropped=False, tolerance="a larger one is not ruled out"),
                *_too_few(evidence),
            ],
            next_step=_more(evidence),
        )
    if not evidence.is_covered:
        return _too_much_missing(evidence)
    return Verdict(
        name="PASS",
        sentence=_pass_words(evidence, alpha),
        reasons=_reasons(evidence, dropped=False, tolerance="a larger one is ruled out"),
        next_step="Nothing stands in the way on this benchmark.",
    )


def _worse(evidence: Evidence, *, beyond: bool) -> Verdict:
    scale, tolerated = evidence.scale, points(evidence.max_drop, evidence.scale)
    drop = points(-evidence.delta.value, scale)
    if beyond and drop == tolerated:  # 5.01 points are more than 5, and are told so
        digits = f"{-evidence.delta.value * (100 if scale <= 1 else 1):.9g}"
        drop = f"{digits} points" if scale <= 1 else digits
    if beyond:
        shown, tolerance = _beyond_words(evidence)
        measured = "" if shown else " as measured"
        doubt = "" if shown else "; that the true drop is larger than tolerated is not proven"
        return Verdict(
            name="BLOCK",
            sentence=(
                f"The candidate is really worse: by {drop}{measured}, more than the {tolerated} that are tolerated"
                f"{doubt}{_over(evidence)}."
            ),
            reasons=_reasons(evidence, dropped=True, tolerance=tolerance),
            next_step="Look at the regressed problems (--show-flips) before anything ships.",
        )
    within = f"by {drop}; that is within the {tolerated} that are tolerated"
    if not evidence.ruled_out:
        within = f"by {drop} as measured; that the true drop is within the {tolerated} that are tolerated is not proven"
    return Verdict(
        name="WARN",
        sentence=f"The candidate is really worse, {within}{_over(evidence)}.",
        reasons=_reasons(
            evidence,
            dropped=True,
            tolerance="a larger one is ruled out"
            if evidence.ruled_out
            else "the estimate is within it, a larger one is not ruled out",
        ),
        next_step="Look at the regressed problems (--show-flips) and decide whether the trade is worth it.",
    )


def _beyond_words(evidence: Evidence) -> tuple[bool, str]:
    """Whether a significant drop is shown to be larger than tolerated, and why or why not."""
    ends = evidence.delta if evidence.family is None else evidence.family.simultaneous
    if ends.ci_upper < -evidence.max_drop:
        return True, "the whole interval lies beyond it"
    if evidence.max_drop == 0:
        return True, "any drop lies beyond it, and one is shown"
    return False, "the estimate lies beyond it, the interval reaches within it"


def _pass_words(evidence: Evidence, alpha: float) -> str:
    delta, scale = evidence.delta, evidence.scale
    shown = delta.value > 0 and evidence.sure_p_rise < alpha
    if shown and (_covered(evidence) or _worst_clears(evidence, 0.0)):
        better = f"The candidate is really better, by {points(delta.value, scale)}"
        return f"{better}{_over(evidence)}{_assumption(evidence, 0.0)}."
    ruled_out = f"A drop of more than {points(evidence.max_drop, scale)} is ruled out"
    if delta.value != 0:
        kind = "gain" if delta.value > 0 else "drop"
        ruled_out += f"; the {kind} of {points(abs(delta.value), scale)} is not proven"
    return f"{ruled_out}{_over(evidence)}{_assumption(evidence, -evidence.max_drop)}."


def _assumption(evidence: Evidence, limit: float) -> str:
    """What is taken for granted about the missing samples, unless even the worst case stays above `limit`."""
    missing = evidence.coverage.possible - evidence.coverage.pairs
    return missing_words(missing, cleared=_worst_clears(evidence, limit))


def missing_words(missing: int, *, cleared: bool) -> str:
    """What a PASS takes for granted about the missing samples; empty when there are none."""
    if missing == 0:
        return ""
    which = "the missing sample" if missing == 1 else f"the {missing:,} missing samples"
    if cleared:
        return f"; {which} cannot change that, even at worst"
    return f"; this assumes that {which} {'is' if missing == 1 else 'are'} like the others"


def _too_much_missing(evidence: Evidence) -> Verdict:
    coverage, tolerated = evidence.coverage, points(evidence.max_drop, evidence.scale)
    return Verdict(
        name="INCONCLUSIVE",
        sentence=(
            f"Not proven: {coverage.possible - coverage.pairs:,} of {coverage.possible:,} samples are not compared, and they "
            f"could hide a drop of more than {tolerated}."
        ),
        reasons=[
            *_reasons(
                evidence, dropped=False, tolerance="a larger one is ruled out for what was compared only"
            ),
            f"each side must have scored {share_text(evidence.min_coverage)} of the samples, or the worst case must rule the drop out",
        ],
        next_step="Score the missing samples (see the list of what is not compared), then compare again.",
    )


def _covered(evidence: Evidence) -> bool:
    return evidence.coverage.reaches(evidence.min_coverage)


def _worst_clears(evidence: Evidence, limit: float) -> bool:
    return evidence.coverage.worst_lower is not None and evidence.coverage.worst_lower > limit


def _interval(evidence: Evidence) -> str:
    delta, scale = evidence.delta, evidence.scale
    return f"{points(delta.ci_lower, scale, sign=True)} to {points(delta.ci_upper, scale, sign=True)}"


def _possible(evidence: Evidence) -> str:
    """What the delta may be: the interval, or further down where a drop may have gone unseen."""
    delta, scale = evidence.delta, evidence.scale
    lower = delta.ci_lower if evidence.lowest is None else min(delta.ci_lower, evidence.lowest)
    return f"{points(lower, scale, sign=True)} to {points(delta.ci_upper, scale, sign=True)}"


def _too_few(evidence: Evidence) -> list[str]:
    if evidence.units is None:
        return []
    alpha = (1 - evidence.delta.confidence_level) / 2
    return too_few_words(
        evidence.units, evidence.max_drop, evidence.scale, alpha, clustered=evidence.clustered
    )


def too_few_words(
    units: int, max_drop: float, scale: float, alpha: float, *, clustered: bool = False
) -> list[str]:
    """Why nothing short of a gain could pass, when there are fewer problems or clusters than any drop needs."""
    fewest = fewest_units(max_drop, scale, alpha)
    if units >= fewest:
        return []
    kind = "cluster" if clustered else "problem"
    few = f"1 {kind} is" if units == 1 else f"{units:,} {kind}s are"
    share = share_text(max_drop / scale)
    return [
        (
            f"{few} too few: with {share} of all {kind}s lost as a whole, they could well show none; "
            f"at least {fewest:,} are needed, unless the candidate gains"
        )
    ]


def _over(evidence: Evidence) -> str:
    """Which samples the headline is about, when they are not all."""
    coverage = evidence.coverage
    if coverage.pairs == coverage.possible:
        return ""
    return f" (over the {coverage.pairs:,} of {coverage.possible:,} samples scored on both sides)"


def _reasons(evidence: Evidence, *, dropped: bool, tolerance: str) -> list[str]:
    delta, scale, coverage, family = evidence.delta, evidence.scale, evidence.coverage, evidence.family
    alpha = 1 - delta.confidence_level
    level = f"{delta.confidence_level:.0%} interval {_interval(evidence)} ({method_words(delta.method)})"
    drop = f"one-sided p of a drop {evidence.p_drop:.3g}"
    worst = "" if evidence.lowest is None else f", bound {points(evidence.lowest, scale, sign=True)}"
    beyond = (
        "" if evidence.p_beyond is None else f" (p = {evidence.p_beyond:.3g} against {alpha / 2:.3g}{worst})"
    )
    together = []
    if family is not None:
        drop += f", {family.p_drop:.3g} after Holm's correction for {family.size} benchmarks"
        beyond = f" (p = {evidence.p_beyond:.3g}, {family.p_beyond:.3g} after Hochberg's correction, against {alpha / 2:.3g}{worst})"
        ends = family.simultaneous
        together = [
            (
                f"interval for all {family.size} benchmarks together {points(ends.ci_lower, scale, sign=True)} to "
                f"{points(ends.ci_upper, scale, sign=True)} (Bonferroni)"
            )
        ]
    return [
        f"delta {points(delta.value, scale, sign=True)}, {level}",
        *together,
        f"{drop}: {'significant' if dropped else 'not significant'} at {alpha:.3g}",
        f"tolerated drop {points(evidence.max_drop, scale)}: {tolerance}{'' if dropped else beyond}",
        coverage_words(
            coverage,
            delta="the delta",
            worst=_extreme(coverage.worst_delta, coverage.worst_lower, scale),
            best=_extreme(coverage.best_delta, coverage.best_upper, scale),
        ),
    ]


def _extreme(value: float, end: float | None, scale: float) -> str:
    text = points(value, scale, sign=True)
    return text if end is None else f"{text} (bound {points(end, scale, sign=True)})"


def _more(evidence: Evidence) -> str:
    drop = points(evidence.wanted_effect, evidence.scale).removesuffix("s")
    kind = "clusters" if evidence.clustered else "problems"
    ruled_out = ", or to rule it out if nothing changed," if evidence.max_drop > 0 else ""
    goal = f"to see a {drop} drop{ruled_out} with 80 % power, if they vary like these"
    if evidence.more_problems is None:
        return f"Run more {kind}; the differences so far are too few to say how many."
    if evidence.more_problems == 0:
        return f"There are enough {kind} {goal}; the result happens to lie near the limit. More of them, or more repeats, would narrow it."
    return f"Run {evidence.more_problems:,} more {kind} {goal}."
