"""What people would say about the difference of two systems, from many judge scores and a few human ones."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from evenhand.core.errors import InputError
from evenhand.judging.calibration import FEWEST, Rated, as_number, scale_of
from evenhand.metrics.correction import ppi_difference
from evenhand.metrics.differences import seen_scale
from evenhand.metrics.paired import paired_difference
from evenhand.metrics.types import FloatArray, Interval

Items = Mapping[str, Sequence[Rated]]
"""Item → the answers to it with their scores."""


class JudgedDifference(Struct, frozen=True, kw_only=True):
    """Candidate minus base, three ways. Every item of both sides is in exactly one of the counts."""

    items: int
    """Items of either side."""
    compared: int
    """Items that the judge scored on both sides."""
    labelled: int
    """Those of them whose judged answers all have human scores, on both sides."""
    one_side_only: int
    """Items that only one side has: left out."""
    no_judge_score: int
    """Items of both sides that the judge scored on one side or neither: left out."""
    partly_labelled: int
    """Compared items with some human scores but not on every judged answer of both sides: those are not used."""
    confidence_level: float
    """Of every interval here."""
    judge_only: Interval
    """By the judge over all compared items: what one would report without people."""
    human_only: Interval
    """By people over the labelled items."""
    corrected: Interval
    """What people would say over all compared items (PPI++ on paired differences)."""
    judge_bias: Interval
    """Judge's difference minus people's on the labelled items: how much the judge favours the candidate."""
    sentence: str
    """The conclusion in words."""


def judged_difference(
    base: Items,
    candidate: Items,
    *,
    threshold: float | None = None,
    positive: Sequence[str] = (),
    confidence_level: float = 0.95,
) -> JudgedDifference:
    """Compare two systems that one judge scored and people looked at in part.

    The difference is taken item by item; repeats of an item are averaged. The correction holds if the labelled items
    were drawn at random from the compared ones.
    """
    everything = [rated for side in (base, candidate) for answers in side.values() for rated in answers]
    scale_of([rated for rated in everything if rated.judge is not None], threshold, positive)
    shared = sorted(base.keys() & candidate.keys())
    columns: dict[str, list[list[float]]] = {"labelled": [], "rest": []}
    partly = unjudged = 0
    for item in shared:
        sides = [
            [rated for rated in answers if rated.judge is not None]
            for answers in (base[item], candidate[item])
        ]
        if not all(sides):
            unjudged += 1
            continue
        labels = [rated.human is not None for side in sides for rated in side]
        judged = [_mean([rated.judge for rated in side], threshold, positive) for side in sides]
        if all(labels):
            human = [_mean([rated.human for rated in side], threshold, positive) for side in sides]
            columns["labelled"].append([*human, *judged])
        else:
            partly += any(labels)
            columns["rest"].append(judged)
    labelled = np.array(columns["labelled"]).reshape(-1, 4)
    rest = np.array(columns["rest"]).reshape(-1, 2)
    if len(labelled) < 2:
        raise InputError(
            f"at least 2 items need scores of the judge and of a person on both sides; {len(labelled)} have them"
        )
    return _found(
        labelled,
        rest,
        confidence_level,
        items=len(base.keys() | candidate.keys()),
        one_side_only=len(base.keys() ^ candidate.keys()),
        no_judge_score=unjudged,
        partly_labelled=partly,
    )


def _mean(values: Sequence[float | str | None], threshold: float | None, positive: Sequence[str]) -> float:
    return float(np.mean([as_number(value, threshold, positive) for value in values]))


def _found(labelled: FloatArray, rest: FloatArray, level: float, **counts: int) -> JudgedDifference:
    human_base, human_candidate, judge_base, judge_candidate = labelled.T
    scale = seen_scale(labelled.ravel(), rest.ravel())
    human_only = paired_difference(human_base, human_candidate, confidence_level=level, scale=scale)
    corrected = human_only
    if len(rest) >= 2:
        corrected = ppi_difference(
            human_base=human_base,
            human_candidate=human_candidate,
            judge_base_on_human=judge_base,
            judge_candidate_on_human=judge_candidate,
            judge_base_on_rest=rest[:, 0],
            judge_candidate_on_rest=rest[:, 1],
            confidence_level=level,
            scale=scale,
        )
    everything = np.concatenate([labelled[:, 2:], rest])
    judge_only = paired_difference(everything[:, 0], everything[:, 1], confidence_level=level, scale=scale)
    bias = paired_difference(
        human_candidate - human_base, judge_candidate - judge_base, confidence_level=level, scale=2 * scale
    )
    return JudgedDifference(
        compared=len(everything),
        labelled=len(labelled),
        confidence_level=level,
        judge_only=judge_only,
        human_only=human_only,
        corrected=corrected,
        judge_bias=bias,
        sentence=_sentence(judge_only, corrected, len(labelled)),
        **counts,
    )


def _sentence(judge: Interval, corrected: Interval, labelled: int) -> str:
    ends = f"{corrected.value:+.3f} [{corrected.ci_lower:+.3f}, {corrected.ci_upper:+.3f}]"
    if corrected.ci_lower > 0.0:
        said = f"People would score the candidate higher: by {ends}."
    elif corrected.ci_upper < 0.0:
        said = f"People would score the candidate lower: by {ends}."
    else:
        said = f"A difference that people would see is not shown: {ends}."
    if not judge.contains(0.0) and corrected.contains(0.0):
        said += f" The judge alone would claim {judge.value:+.3f}."
    if labelled < FEWEST:
        said += f" Only {labelled} items are labelled; at least {FEWEST} are needed to rely on this."
    return said
