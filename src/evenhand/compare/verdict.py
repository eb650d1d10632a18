"""From an interval and a test to a verdict, in words.

A regression check asks a one-sided question: did it get worse? With `max_drop` the drop that would be tolerated
and α = 1 − confidence level:

============  ==================================================================================
BLOCK         the drop is significant (one-sided p < α) and its estimate is larger than tolerated
WARN          the drop is significant, and its estimate is within the tolerance
PASS          no significant drop, and a drop larger than tolerated is ruled out by the interval
INCONCLUSIVE  neither: the data cannot tell (or too much is missing)
============  ==================================================================================

Without a difference BLOCK comes up with probability α at most, whatever `max_drop` is.
"""

from typing import Literal

from msgspec import Struct

from evenhand.metrics.types import Interval

VerdictName = Literal["PASS", "WARN", "BLOCK", "INCONCLUSIVE"]
EXIT_STATUS: dict[VerdictName, int] = {"PASS": 0, "BLOCK": 1, "WARN": 2, "INCONCLUSIVE": 2}


class Verdict(Struct, frozen=True, kw_only=True):
    """What the comparison comes to."""

    name: VerdictName
    """The verdict."""
    sentence: str
    """It in one sentence for people who did not run it."""
    reasons: list[str]
    """The facts that it rests on."""
    next_step: str
    """What to do now."""


class Evidence(Struct, frozen=True, kw_only=True):
    """What a verdict is made from."""

    delta: Interval
    """Candidate minus base, on the score's scale; negative is worse."""
    p_drop: float
    """One-sided: of data like these if the candidate were not worse."""
    p_rise: float
    """One-sided: of data like these if the candidate were not better."""
    max_drop: float
    """The tolerated drop, as a positive number."""
    coverage_share: float
    """How much of the possible pairs was compared."""
    min_coverage: float
    """How much must be."""
    more_problems: int | None
    """How many problems more would show a drop of `max_drop` with 80 % power; 0 when there are enough."""
    wanted_effect: float
    """The drop that `more_problems` is about."""
    scale: float = 1.0
    """The largest difference that could be; 1 for scores from 0 to 1, whose differences are told in points."""


def points(value: float, scale: float, *, sign: bool = False) -> str:
    """A difference of scores in points (hundredths): `2.5 points`; on a larger scale the number itself."""
    if scale > 1:
        return f"{value:+.4g}" if sign else f"{value:.4g}"
    text = f"{value * 100:+.1f}" if sign else f"{value * 100:.1f}"
    return f"{text} points"


def decide(evidence: Evidence) -> Verdict:
    """Apply the table above."""
    delta, alpha = evidence.delta, 1 - evidence.delta.confidence_level
    dropped = delta.value < 0 and evidence.p_drop < alpha
    beyond = -delta.value > evidence.max_drop
    ruled_out = delta.ci_lower > -evidence.max_drop
    scale = evidence.scale
    interval = f"{points(delta.ci_lower, scale, sign=True)} to {points(delta.ci_upper, scale, sign=True)}"
    tolerated = points(evidence.max_drop, scale)
    reasons = [
        f"delta {points(delta.value, scale, sign=True)}, {delta.confidence_level:.0%} interval {interval} ({delta.method})",
        f"one-sided p of a drop {evidence.p_drop:.3g}: {'significant' if dropped else 'not significant'} at {alpha:.3g}",
        f"tolerated drop {tolerated}: a larger one is {'ruled out' if ruled_out else 'not ruled out'}",
    ]
    if evidence.coverage_share < evidence.min_coverage:
        reasons.append(
            f"only {evidence.coverage_share:.1%} of the pairs are compared, {evidence.min_coverage:.1%} are asked for"
        )
        return Verdict(
            name="INCONCLUSIVE",
            sentence="Too much is missing to compare: the samples that were not scored could change the answer.",
            reasons=reasons,
            next_step="Score the missing samples (see the coverage list), then compare again.",
        )
    if dropped and beyond:
        name: VerdictName = "BLOCK"
        sentence = f"The candidate is really worse: by {points(-delta.value, scale)}, more than the {tolerated} that are tolerated."
        step = "Look at the regressed problems (--show-flips) before anything ships."
    elif dropped:
        name = "WARN"
        sentence = f"The candidate is really worse, by {points(-delta.value, scale)}; that is within the {tolerated} that are tolerated."
        step = "Look at the regressed problems (--show-flips) and decide whether the trade is worth it."
    elif ruled_out:
        name = "PASS"
        better = delta.value > 0 and evidence.p_rise < alpha
        sentence = (
            f"The candidate is really better, by {points(delta.value, scale)}."
            if better
            else f"No real drop: a drop of more than {tolerated} is ruled out."
        )
        step = "Nothing stands in the way on this benchmark."
    else:
        name = "INCONCLUSIVE"
        sentence = f"The data cannot tell: the true change lies anywhere from {interval}."
        step = _more(evidence)
    return Verdict(name=name, sentence=sentence, reasons=reasons, next_step=step)


def _more(evidence: Evidence) -> str:
    goal = f"to see a {points(evidence.wanted_effect, evidence.scale).removesuffix('s')} drop with 80 % power"
    if evidence.more_problems is None:
        return "Run more problems; the differences so far are too few to say how many."
    if evidence.more_problems == 0:
        return f"There are enough problems {goal}; the result happens to lie near the limit. More repeats would narrow it."
    return f"Run {evidence.more_problems:,} more problems {goal}."
