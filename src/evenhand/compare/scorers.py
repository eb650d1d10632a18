"""Several scorers on the same two runs: each is compared, and their tests are corrected together.

A scorer's own verdict is that of `compare_runs`, as if it were the only one. With several scorers one of them may drop
by chance, so the verdict over all rests on `family.correct_together`, as with several benchmarks.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from evenhand.compare.comparison import Comparison, Options, compare_runs
from evenhand.compare.coverage import Key
from evenhand.compare.family import correct_together
from evenhand.compare.verdict import Verdict
from evenhand.core.errors import Incomparable, InputError
from evenhand.metrics.multiplicity import holm
from evenhand.results import RunResults

OverallName = Literal["PASS", "WARN", "BLOCK", "INCONCLUSIVE", "NOT_COMPARABLE"]
_SEVERITY: dict[OverallName, int] = {
    "PASS": 0,
    "WARN": 1,
    "INCONCLUSIVE": 2,
    "NOT_COMPARABLE": 3,
    "BLOCK": 4,
}


class Sides(Struct, frozen=True, kw_only=True):
    """One scorer's scores of both runs."""

    base: RunResults
    """The run to compare with."""
    candidate: RunResults
    """The run in question."""
    labels_only: bool = False
    """Whether the scores are labels, which have no mean."""
    not_comparable: str | None = None
    """Why the scores measure different things, when somebody knows already."""


class ScorerVerdict(Struct, frozen=True, kw_only=True):
    """What is said about one scorer."""

    name: OverallName | None
    """None for labels: they can be counted, not averaged."""
    sentence: str
    """It in one sentence."""
    reasons: list[str]
    """What it rests on."""
    next_step: str
    """What to do now."""
    comparison: Comparison | None = None
    """The numbers; None where there are none."""
    p_adjusted: float | None = None
    """The two-sided p-value after Holm's correction over the scorers."""
    p_drop_adjusted: float | None = None
    """The one-sided p-value of a drop after the same correction."""
    corrected: OverallName | None = None
    """The verdict after the correction; the verdict over all rests on it."""
    corrected_sentence: str = ""
    """It in one sentence."""


class Overall(Struct, frozen=True, kw_only=True):
    """What it comes to over all scorers."""

    name: OverallName
    """The worst of the scorers' verdicts that stand after the correction."""
    sentence: str
    """It in one sentence."""


def compare_scorers(
    sides: Mapping[str, Sides], options: Options | None = None, *, expected: Iterable[Key] = ()
) -> dict[str, ScorerVerdict]:
    """Every scorer's verdict and numbers; `expected` are the samples that both runs should have had."""
    keys = list(expected)
    found = {name: _one(one, options or Options(), keys) for name, one in sides.items()}
    compared = {name: one.comparison for name, one in found.items() if one.comparison is not None}
    if not compared:
        return found
    two_sided = holm([one.test.p_value for one in compared.values()])
    together = correct_together(list(compared.values()), options or Options())
    for name, p_value, one in zip(compared, two_sided, together, strict=True):
        found[name] = replace(
            found[name],
            p_adjusted=float(p_value),
            p_drop_adjusted=one.p_drop if one.family is None else one.family.p_drop,
            corrected=one.verdict.name,
            corrected_sentence=one.verdict.sentence,
        )
    return found


def overall(found: Mapping[str, ScorerVerdict]) -> Overall:
    """The verdict over all scorers: the worst of theirs after the correction."""
    counted: dict[str, OverallName] = {
        name: one.corrected for name, one in found.items() if one.corrected is not None
    }
    if not counted:
        return Overall(name="INCONCLUSIVE", sentence="No scorer has numbers to compare.")
    worst = max(counted.values(), key=_SEVERITY.__getitem__)
    ones = [name for name, verdict in counted.items() if verdict == worst]
    if len(counted) == 1:
        return Overall(name=worst, sentence=found[ones[0]].corrected_sentence)
    if worst == "PASS":
        return Overall(name=worst, sentence=f"All {len(counted)} scorers pass.")
    words = (
        f"{ones[0]}: {found[ones[0]].corrected_sentence}"
        if len(ones) == 1
        else f"{worst} by {', '.join(ones)}."
    )
    chance = [name for name in ones if found[name].name in ("BLOCK", "WARN") and worst == "INCONCLUSIVE"]
    if chance:
        words += f" With {len(counted)} scorers tested a drop of {', '.join(chance)} can still be chance."
    return Overall(name=worst, sentence=words)


def _one(sides: Sides, options: Options, expected: list[Key]) -> ScorerVerdict:
    if sides.not_comparable is not None and not options.force:
        return _not_comparable([sides.not_comparable])
    if sides.labels_only:
        return ScorerVerdict(
            name=None,
            sentence="The scores are labels: they can be counted, not averaged.",
            reasons=[],
            next_step="Look at the items whose label changed.",
        )
    try:
        found = compare_runs(sides.base, sides.candidate, options, expected=expected)
    except Incomparable as error:
        return _not_comparable(error.differences)
    except InputError as error:
        return ScorerVerdict(
            name="INCONCLUSIVE",
            sentence=f"Not proven: {error.reason}.",
            reasons=[],
            next_step="Score more items in both runs, then compare again.",
            corrected="INCONCLUSIVE",
            corrected_sentence=f"Not proven: {error.reason}.",
        )
    if sides.not_comparable is not None:
        forced = f"compared by force although this differs: {sides.not_comparable}"
        found = replace(found, caveats=[forced, *found.caveats])
    verdict: Verdict = found.verdict
    return ScorerVerdict(
        name=verdict.name,
        sentence=verdict.sentence,
        reasons=verdict.reasons,
        next_step=verdict.next_step,
        comparison=found,
    )


def _not_comparable(differences: list[str]) -> ScorerVerdict:
    return ScorerVerdict(
        name="NOT_COMPARABLE",
        sentence="The scores do not measure the same thing: no numbers are given.",
        reasons=differences,
        next_step="Score both sides' stored outputs with one version of the scorer, then compare again.",
        corrected="NOT_COMPARABLE",
        corrected_sentence=f"The scores do not measure the same thing: {'; '.join(differences)}.",
    )
