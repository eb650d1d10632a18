"""Comparing a response with the expected text."""

from typing import Any

from evenhand.scoring.definition import scorer
from evenhand.scoring.normal import normalize_text, same_normal_form, spaced_text, text_of
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
    """Every answer that counts as right: the metadata's `correct_answers`, else the target or, of a list, its items."""
    listed = sample.metadata.get("correct_answers") if sample.metadata else None
    if not listed:
        listed = sample.target
    if isinstance(listed, list | tuple):
        return [text_of(answer) for answer in listed]
    return [text_of(listed)]


@scorer
def includes_any(
    sample: ScorerInput, values: list[str] | None = None, case_sensitive: bool = False
) -> dict[str, Any]:
    """At least one of `values` (else of the accepted answers) stands in the response."""
    found = _included(sample, values, case_sensitive)
    if found is None:
        return {"unscored": "no_expected_output"}
    return {
        "correct": any(found.values()),
        "extracted": next((v for v, there in found.items() if there), None),
    }


@scorer
def includes_all(
    sample: ScorerInput, values: list[str] | None = None, case_sensitive: bool = False
) -> dict[str, Any]:
    """All of `values` (else of the accepted answers) stand in the response."""
    found = _included(sample, values, case_sensitive)
    if found is None:
        return {"unscored": "no_expected_output"}
    missing = [value for value, there in found.items() if not there]
    return {"correct": bool(found) and not missing, "missing": missing}


def _included(sample: ScorerInput, values: list[str] | None, case_sensitive: bool) -> dict[str, bool] | None:
    """Each wanted text and whether it is there; white space and Unicode's compatible spellings do not count."""
    if values is None and sample.target is None and not sample.metadata.get("correct_answers"):
        return None
    wanted = values if values is not None else accepted_answers(sample)
    response = spaced_text(sample.response, case_sensitive)
    found = {}
    for value in wanted:
        plain = spaced_text(value, case_sensitive)
        found[value] = bool(plain) and plain in response
    return found
