"""Comparing a response with the expected text."""

from typing import Any

from evenhand.scoring.definition import scorer
from evenhand.scoring.normal import normalize_text, same_normal_form, text_of
from evenhand.scoring.types import ScorerInput


@scorer(needs_target=True)
def exact_match(sample: ScorerInput) -> dict[str, Any]:
    """Equal to the target after normalisation: NFKC, case, punctuation, articles and spacing do not count."""
    target = sample.target
    return {
        "correct": same_normal_form(sample.response, target if isinstance(target, str) else text_of(target))
    }


@scorer(needs_target=True)
def fuzzy_match(sample: ScorerInput) -> dict[str, Any]:
    """One normalised text contains the other; any of `metadata["correct_answers"]` will do, else the target.

    An empty response or an empty answer matches nothing.
    """
    response = normalize_text(sample.response)
    correct = bool(response) and any(
        answer in response or response in answer
        for answer in map(normalize_text, accepted_answers(sample))
        if answer
    )
    return {"correct": correct, "extracted": sample.response}


def accepted_answers(sample: ScorerInput) -> list[str]:
    """Every answer that counts as right: the metadata's `correct_answers`, else the target."""
    listed = sample.metadata.get("correct_answers")
    if isinstance(listed, str):
        listed = [listed]
    if not listed:
        return [text_of(sample.target)]
    return [text_of(answer) for answer in listed]
