"""A judge beside the people of a review queue: three means, how often it is right on either side, and where it errs."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from evenhand.core.errors import InputError
from evenhand.core.objects.reviews import CorrectedMean, Reviewed, ReviewQueue, unsettled
from evenhand.judging.calibration import Calibration, Rated, calibrate
from evenhand.judging.reviewers import corrected_mean, final_answer
from evenhand.metrics.intervals import NoSpread, mean_interval
from evenhand.metrics.types import Interval
from evenhand.plots import Bin

BINS = 5
"""Stretches of the judge's values in the calibration picture."""
GOOD = 0.5
"""What people say is good from here on: a label counts 0 or 1, and half is a disagreement."""

Side = Literal["false_good", "false_bad", "true_good", "true_bad"]


class Sides(Struct, frozen=True, kw_only=True):
    """The items on which both speak, by who says good and who bad."""

    true_good: list[str]
    """People say good, the judge too."""
    false_bad: list[str]
    """People say good, the judge bad."""
    false_good: list[str]
    """People say bad, the judge good; the judge's highest value first."""
    true_bad: list[str]
    """People say bad, the judge too."""


class AgainstPeople(Struct, frozen=True, kw_only=True):
    """One version of a judge against people."""

    values: Calibration
    """On the values as they are: means, bias, agreement and whether it may be trusted."""
    mean: CorrectedMean
    """The corrected mean as the queue's order of items allows it."""
    passes: Calibration | None
    """From the threshold on: sensitivity, specificity and the table; None where fewer than two items are settled."""
    sides: Sides
    bins: list[Bin]
    disputed: int
    """Items on which people disagree: they are in the means and not on a side."""


def versions_in(items: Sequence[Reviewed]) -> dict[str, int]:
    """The versions of the judge that scored the items, with how many items each; the most items first."""
    counts: dict[str, int] = {}
    for item in items:
        if item.judge is not None:
            key = item.judge.version or ""
            counts[key] = counts.get(key, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def against_people(
    queue: ReviewQueue, items: Sequence[Reviewed], *, version: str, threshold: float
) -> tuple[AgainstPeople | None, str]:
    """One version of the queue's judge against its people, or why that cannot be said."""
    headline = queue.form.headline
    own = [item for item in items if item.judge is not None and (item.judge.version or "") == version]
    mean, reason = corrected_mean(queue, own)
    if mean is None or headline is None:
        return None, reason or "The form has no question that measures."
    said = {item.item_id: final_answer(headline, item.reviews) for item in own}
    judged = {
        item.item_id: item.judge.value
        for item in own
        if item.judge is not None and isinstance(item.judge.value, float)
    }
    try:
        values = calibrate([Rated(judge=judged.get(key), human=human) for key, human in said.items()])
    except InputError as error:
        return None, f"{error}."
    settled = [
        item.item_id
        for item in own
        if item.item_id in judged
        and said[item.item_id] is not None
        and not unsettled(queue.form, item.reviews)
    ]
    passes = None
    if len(settled) > 1:
        # People's side is decided here: the threshold is the judge's alone.
        passes = calibrate(
            [
                Rated(judge=float(judged[key] >= threshold), human=float((said[key] or 0.0) >= GOOD))
                for key in settled
            ],
            threshold=GOOD,
        )
    both = [(judged[key], human) for key, human in said.items() if key in judged and human is not None]
    return AgainstPeople(
        values=values,
        mean=mean,
        passes=passes,
        sides=_sides(settled, judged, said, threshold),
        bins=_bins(both),
        disputed=sum(unsettled(queue.form, item.reviews) for item in own),
    ), ""


def _sides(
    settled: Sequence[str], judged: dict[str, float], said: dict[str, float | None], threshold: float
) -> Sides:
    found: dict[Side, list[str]] = {"true_good": [], "false_bad": [], "false_good": [], "true_bad": []}
    for key in sorted(settled, key=lambda key: (-judged[key], key)):
        people_good, judge_good = (said[key] or 0.0) >= GOOD, judged[key] >= threshold
        if people_good:
            found["true_good" if judge_good else "false_bad"].append(key)
        else:
            found["false_good" if judge_good else "true_bad"].append(key)
    return Sides(**found)


def _bins(both: Sequence[tuple[float, float]]) -> list[Bin]:
    """By the judge's value, in stretches of equal width."""
    groups: dict[int, list[tuple[float, float]]] = {}
    for judge, human in both:
        groups.setdefault(min(int(judge * BINS), BINS - 1), []).append((judge, human))
    found = []
    for _, pairs in sorted(groups.items()):
        people = np.array([human for _, human in pairs])
        interval = _interval(people)
        found.append(
            Bin(
                judge=float(np.mean([judge for judge, _ in pairs])),
                people=float(people.mean()),
                low=None if interval is None else interval.ci_lower,
                high=None if interval is None else interval.ci_upper,
                count=len(pairs),
            )
        )
    return found


def _interval(values: np.ndarray) -> Interval | None:
    try:
        return mean_interval(values)
    except NoSpread:
        return None  # one value other than 0 and 1
