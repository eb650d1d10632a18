"""What a comparison of two experiments says before its items: the verdict, the evidence per scorer, what it rests on."""

import re

from msgspec import Struct

from evenhand.core.objects.experiments import Experiment, ExperimentComparison, ScorerComparison
from evenhand.plots.intervals import IntervalRow, interval_axis, interval_picture, interval_scale
from evenhand.plots.intervals import Tone as PlotTone
from evenhand.reports.components import Reason, Tone, VerdictBanner
from evenhand.reports.numbers import counted, number, p_text, signed
from evenhand.server.pages.links import Here

Sides = tuple[Experiment, Experiment]
"""The base and the other one."""


class Evidence(Struct, frozen=True, kw_only=True):
    """One scorer in the table of evidence."""

    name: str
    kind: str
    base: str
    other: str
    delta: str
    interval: str
    picture: str
    p: str
    corrected: str
    up: int
    same: int
    down: int
    sentence: str
    withheld: str
    """Why its numbers are not shown."""


def state_of(found: ExperimentComparison, sides: Sides, *, withheld: bool) -> str:
    """What the page shows: `incomparable`, `running`, `little`, `equivalent`, `shown` or `open`."""
    if withheld:
        return "incomparable"
    if "running" in {side.status for side in sides}:
        return "running"
    numeric = [one for one in found.scorer_comparisons if one.paired_delta is not None]
    if not numeric or max(one.paired_count for one in numeric) < 5:
        return "little"
    inside = all(
        one.ci_lower is not None
        and one.ci_upper is not None
        and -found.max_drop <= one.ci_lower
        and one.ci_upper <= found.max_drop
        for one in numeric
    )
    if inside and found.verdict == "PASS":
        return "equivalent"
    return "shown" if found.verdict in ("PASS", "BLOCK") else "open"


HEADLINES = {
    "incomparable": "Not comparable",
    "running": "Still running",
    "little": "Too little data",
    "equivalent": "Equivalent within your margin",
}


def _headline(found: ExperimentComparison, state: str) -> tuple[str, Tone, bool]:
    """The words, the colour, and whether the data show it."""
    if state in HEADLINES:
        return HEADLINES[state], "warn" if state == "incomparable" else "plain", state == "equivalent"
    numeric = [one for one in found.scorer_comparisons if one.paired_delta is not None]
    better = [one for one in numeric if _shown_direction(one) == 1]
    worse = [one for one in numeric if _shown_direction(one) == -1]
    if found.verdict == "BLOCK":
        return "Worse", "bad", True
    if found.verdict == "PASS":
        return (
            ("Better", "good", True) if better and not worse else ("No drop beyond your margin", "good", True)
        )
    if found.verdict == "WARN" or worse:
        return "Likely worse, not yet shown", "bad", False
    rising = any((one.paired_delta or 0) > 0 for one in numeric)
    falling = any((one.paired_delta or 0) < 0 for one in numeric)
    if rising and not falling:
        return "Likely better, not yet shown", "good", False
    if falling and not rising:
        return "Likely worse, not yet shown", "bad", False
    return "Not decided", "warn", False


def _shown_direction(one: ScorerComparison) -> int:
    """1 or −1 where the corrected test shows a rise or a fall; 0 otherwise."""
    corrected = one.p_adjusted if one.p_adjusted is not None else one.p_value
    if one.paired_delta is None or corrected is None or one.confidence_level is None:
        return 0
    if corrected >= 1 - one.confidence_level or one.paired_delta == 0:
        return 0
    return 1 if one.paired_delta > 0 else -1


def banner_of(
    found: ExperimentComparison, state: str, scorer: str, *, withheld: bool, forced: bool
) -> VerdictBanner:
    """The verdict for the top of the page."""
    name, tone, shown = _headline(found, state)
    chosen = next((one for one in found.scorer_comparisons if one.scorer_name == scorer), None)
    reasons: list[Reason] = []
    if forced:
        reasons.append(
            Reason(
                "Compared although the two are not comparable: read nothing into small differences.", "warn"
            )
        )
    if state == "running":
        reasons.append(
            Reason(
                "Runs are still arriving. No verdict is given before both experiments are complete.", "warn"
            )
        )
    if chosen is not None and not withheld and state != "running":
        reasons += [Reason(_words(text)) for text in chosen.reasons[:3]]
        reasons += [Reason(_words(text), "warn") for text in chosen.caveats[:3]]
    sentence = found.sentence
    if chosen is not None and not withheld and chosen.paired_delta is not None:
        sentence = _words(f"{chosen.scorer_name}: {chosen.sentence}")
        if state != "running" and len(found.scorer_comparisons) > 1 and chosen.sentence not in found.sentence:
            reasons.append(Reason(f"Over all scorers: {found.sentence}"))
    if state == "running":
        sentence = "One of the experiments is not complete: what is shown below may still change."
    step = _words(chosen.next_step) if chosen is not None and not withheld else ""
    if state == "running":
        step = "Wait for the runs that are missing; the page follows them."
    if withheld:
        step = "Score the older outputs again with the same scorer, or compare anyway."
    return VerdictBanner(
        name=name,
        sentence=sentence,
        tone=tone,
        shown=shown,
        reasons=reasons,
        next_steps=[step] if step else [],
    )


def _words(text: str) -> str:
    """What the command line says, for a page: without its options, with true minus signs."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", re.sub(r" \(--[^)]*\)", "", text))


def items_needed(found: ExperimentComparison, state: str) -> tuple[int, int] | None:
    """Items there are, and items that would show a change as large as the margin: widths shrink with the square root."""
    numeric = [one for one in found.scorer_comparisons if one.ci_lower is not None and one.paired_count]
    if state not in ("open", "little") or not numeric:
        return None
    one = max(numeric, key=lambda each: (each.ci_upper or 0) - (each.ci_lower or 0))
    width = ((one.ci_upper or 0) - (one.ci_lower or 0)) / 2
    target = max(found.max_drop, 0.01)
    needed = max(one.paired_count, round(one.paired_count * (width / target) ** 2))
    return one.paired_count, needed


def next_links(
    found: ExperimentComparison, scorer: str, here: Here, *, withheld: bool
) -> list[tuple[str, str, bool]]:
    """What to do next: words, address, and whether it is the main thing."""
    if withheld:
        return [("Compare anyway", here(force=True), False)]
    chosen = next((one for one in found.scorer_comparisons if one.scorer_name == scorer), None)
    links = []
    if chosen is not None and chosen.regressed_count:
        links.append(
            (
                f"Look at the {chosen.regressed_count:,} that fell",
                here(show="fell", page=None) + "#items",
                True,
            )
        )
    return links


def evidence_of(found: ExperimentComparison, *, withheld: bool, running: bool) -> tuple[list[Evidence], str]:
    """A row for each scorer, and the axis of their pictures.

    While runs arrive there is no interval and no p-value: looked at again and again, each would sooner or later show a
    difference that is not there.
    """
    rows = {
        one.scorer_name: _interval_row(one)
        for one in found.scorer_comparisons
        if one.paired_delta is not None and not withheld and not running
    }
    scale = interval_scale(list(rows.values()), include=(0.0, -found.max_drop)) if rows else None
    shown = []
    for one in found.scorer_comparisons:
        row = rows.get(one.scorer_name)
        picture = ""
        if row is not None and scale is not None:
            picture = interval_picture(row, scale, reference=0.0, limit=-found.max_drop)
        shown.append(
            Evidence(
                name=one.scorer_name,
                kind="label" if one.base_mean is None and one.compare_mean is None else "number",
                base="" if withheld else number(one.base_mean),
                other="" if withheld else number(one.compare_mean),
                delta="" if withheld else signed(one.paired_delta),
                interval=""
                if withheld or running or one.ci_lower is None
                else f"[{signed(one.ci_lower)}, {signed(one.ci_upper)}]",
                picture=picture,
                p="" if withheld else "–" if running else p_text(one.p_value),
                corrected="" if withheld else "–" if running else p_text(one.p_adjusted),
                up=one.improved_count,
                same=one.unchanged_count,
                down=one.regressed_count,
                sentence="No interval before both are complete." if running else one.sentence,
                withheld=one.not_comparable or "",
            )
        )
    return shown, interval_axis(scale) if scale is not None else ""


def _interval_row(one: ScorerComparison) -> IntervalRow:
    delta = one.paired_delta or 0.0
    tone: PlotTone = "plain" if delta == 0 else "good" if delta > 0 else "bad"
    return IntervalRow(
        label=one.scorer_name,
        value=delta,
        low=one.ci_lower,
        high=one.ci_upper,
        tone=tone,
        shown=_shown_direction(one) != 0,
    )


def checks_of(found: ExperimentComparison, sides: Sides) -> list[tuple[bool, str]]:
    """What makes the two comparable: whether it holds, and in words."""
    checks = []
    for one in found.scorer_comparisons:
        if one.coverage is not None:
            whole = one.coverage.pairs == one.coverage.possible
            text = f"{one.scorer_name}: {one.coverage.pairs:,} of {one.coverage.possible:,} pairs"
            if not whole:
                worst, best = signed(one.coverage.worst_delta), signed(one.coverage.best_delta)
                text += f", between {worst} and {best} whatever the others were"
            checks.append((whole, text))
    same = sides[0].dataset_version == sides[1].dataset_version
    versions = f"dataset versions {sides[0].dataset_version} and {sides[1].dataset_version}"
    checks.append((same, "same dataset version" if same else versions))
    mixed = [one for one in found.scorer_comparisons if one.not_comparable]
    checks.append((not mixed, "same scorers" if not mixed else "scorers differ"))
    return checks


def how_calculated(found: ExperimentComparison) -> list[str]:
    """How the numbers came about, a line for each scorer."""
    lines = []
    for one in found.scorer_comparisons:
        if one.test is not None and one.confidence_level is not None:
            effect = (
                ""
                if one.minimum_detectable_effect is None
                else f" A true change of {number(one.minimum_detectable_effect)} would be seen in 80 % of such comparisons."
            )
            lines.append(
                f"{one.scorer_name}: {counted(one.paired_count, 'item')} paired, repeats averaged first; "
                f"{one.confidence_level:.0%} interval; test: {one.test.replace('_', ' ')}.{effect}"
            )
    lines.append("p-values are corrected over the scorers (Holm).")
    return lines
