"""How far reviewers agree with each other, and what their answers make of the judge's mean."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.core.objects.reviews import (
    Agreement,
    CorrectedMean,
    Estimate,
    FieldAgreement,
    FormField,
    PairAgreement,
    Review,
    Reviewed,
    ReviewQueue,
    as_number,
    unsettled,
)
from evenhand.judging.calibration import corrected_means
from evenhand.metrics.agreement import cohen_kappa, krippendorff_alpha
from evenhand.metrics.priority_sampling import corrected_by_sample
from evenhand.metrics.types import Interval

MAX_DISAGREEMENTS = 200
MAX_PAIRS = 45
"""Pairs of reviewers that are compared: ten reviewers."""


def agreement(queue: ReviewQueue, items: Sequence[Reviewed]) -> Agreement:
    """Everything that the queue's lead wants to know."""
    differing = [item.item_id for item in items if unsettled(queue.form, item.reviews)]
    corrected, reason = corrected_mean(queue, items)
    return Agreement(
        queue_id=queue.id,
        fields=[_field(field, items) for field in queue.form.fields if field.kind != "text"],
        disagreements=differing[:MAX_DISAGREEMENTS],
        disagreement_count=len(differing),
        corrected=corrected,
        no_correction=reason,
    )


def _field(field: FormField, items: Sequence[Reviewed]) -> FieldAgreement:
    answers: list[dict[str, Any]] = []
    for item in items:
        said = {
            review.annotator: review.answers[field.name]
            for review in item.reviews
            if not review.adjudication and field.name in review.answers
        }
        if len(said) >= 2:
            answers.append(said)
    reviewers = sorted({name for said in answers for name in said})
    alpha, reason = None, None
    try:
        ratings = [[said.get(name) for said in answers] for name in reviewers]
        level = "interval" if field.kind == "scale" else "nominal"
        alpha = _estimate(krippendorff_alpha(ratings, level=level))
    except ValueError as error:
        reason = _plain(str(error)) if answers else "No item has two reviews yet."
    pairs = [_pair(field, first, second, answers) for first, second in combinations(reviewers, 2)]
    return FieldAgreement(
        name=field.name,
        items=len(answers),
        alpha=alpha,
        reason=reason,
        pairs=[pair for pair in pairs if pair is not None][:MAX_PAIRS],
    )


def _plain(message: str) -> str:
    """A statistic's refusal without the name of its argument."""
    text = message.partition(": ")[2] or message
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _pair(
    field: FormField, first: str, second: str, answers: Sequence[dict[str, Any]]
) -> PairAgreement | None:
    both = [(said[first], said[second]) for said in answers if first in said and second in said]
    if not both:
        return None
    weights = "quadratic" if field.kind == "scale" else None
    kappa = None
    try:
        kappa = _estimate(cohen_kappa([a for a, _ in both], [b for _, b in both], weights=weights))
    except ValueError:
        kappa = None  # one item, or everybody always says the same: agreement beyond chance is undefined
    seen = {answer for pair in both for answer in pair}
    known = [label for label in field.labels if label in seen]
    known += sorted(seen - set(known), key=lambda answer: (isinstance(answer, str), answer))
    place = {label: position for position, label in enumerate(known)}
    table = [[0] * len(known) for _ in known]
    for a, b in both:
        table[place[a]][place[b]] += 1
    return PairAgreement(
        first=first,
        second=second,
        items=len(both),
        agreed=sum(a == b for a, b in both),
        kappa=kappa,
        labels=[str(label) for label in known],
        confusion=table,
    )


def final_answer(field: FormField, reviews: Sequence[Review]) -> float | None:
    """What people say about an item, from 0 to 1: the settling answer, else the mean of the reviewers'."""
    settled = [review for review in reviews if review.adjudication] or reviews
    numbers = [
        number
        for review in settled
        if (number := as_number(field, review.answers.get(field.name))) is not None
    ]
    return float(np.mean(numbers)) if numbers else None


def corrected_mean(queue: ReviewQueue, items: Sequence[Reviewed]) -> tuple[CorrectedMean | None, str | None]:
    """The judge's mean corrected by people, or why there is none."""
    headline = queue.form.headline
    if queue.judge_scorer is None:
        return None, "The queue names no judge."
    if headline is None or (headline.kind == "label" and not headline.good):
        return None, "The form does not say which answers are good."
    judged = [
        (item, item.judge.value)
        for item in items
        if item.judge is not None and isinstance(item.judge.value, float)
    ]
    if len(judged) < 2:
        return None, f"'{queue.judge_scorer}' has scored fewer than two items of the queue with a number."
    values = [value for _, value in judged]
    said = [final_answer(headline, item.reviews) for item, _ in judged]
    human = np.array([value for value in said if value is not None])
    on_human = np.array([value for value, label in zip(values, said, strict=True) if label is not None])
    rest = np.array([value for value, label in zip(values, said, strict=True) if label is None])
    corrected = None
    judge_only = corrected_means(np.array(values), np.array(values), np.array([])).judge_only
    if human.size >= 2:
        if queue.pick == "informative":
            corrected = _by_sample(values, said, judged)
        else:
            corrected = corrected_means(human, on_human, rest).corrected
    found = CorrectedMean(
        scorer_name=queue.judge_scorer,
        items=len(judged),
        labelled=int(human.size),
        judge_only=_estimate(judge_only),
        corrected=None if corrected is None else _estimate(corrected),
        sentence="",
    )
    return CorrectedMean(
        **{
            **{name: getattr(found, name) for name in CorrectedMean.__struct_fields__},
            "sentence": _sentence(found),
        }
    ), None


def _by_sample(
    values: list[float], said: list[float | None], judged: Sequence[tuple[Reviewed, float]]
) -> Interval | None:
    try:
        return corrected_by_sample(
            values,
            said,
            ranks=[item.rank for item, _ in judged],
            weights=[item.weight for item, _ in judged],
        )
    except ValueError:
        return None  # the first items of the order are still with their reviewers


def _sentence(found: CorrectedMean) -> str:
    labels = f"{found.labelled} label{'s' * (found.labelled != 1)}"
    if found.corrected is None:
        return (
            f"{labels} so far: at least two are needed to correct the judge's {found.judge_only.value:.2f}."
        )
    now = found.corrected
    start = (
        f"{labels} moved the judge's {found.judge_only.value:.2f} to a corrected {now.value:.2f} "
        f"({now.ci_lower:.2f} to {now.ci_upper:.2f})"
    )
    left = found.items - found.labelled
    if left < 1:
        return f"{start}; every item has a label."
    more = min(left, max(10, 10 * round(found.labelled * 0.7 / 10)))
    # The half-width shrinks with the square root of the number of labels.
    half = (now.ci_upper - now.ci_lower) / 2 * (found.labelled / (found.labelled + more)) ** 0.5
    return f"{start}; {more} more would narrow it to about ±{half:.2f}."


def _estimate(found: Interval) -> Estimate:
    return Estimate(
        value=found.value,
        ci_lower=found.ci_lower,
        ci_upper=found.ci_upper,
        method=found.method,
        n=found.n,
    )
