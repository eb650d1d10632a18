"""Comparing a response with the expected text."""

from typing import Any

from evenhand.scoring.definition import scorer
from evenhand.scoring.normal import normalize_text, same_normal_form, spaced_text, text_of
from evenhand.scoring.types import ScorerInput
from evenhand.scoring.words import WholeWords


@scorer(version="3", needs_target=True)
def exact_match(sample: ScorerInput, strict: bool = False) -> dict[str, Any]:
    """Equal to the target after normalisation: NFKC, case, punctuation, articles and spacing do not count.

    Numbers keep their values (-5 is not 5, 3.5 is not 35). `strict` compares the texts as they are.
    """
    target = sample.target
    expected = target if isinstance(target, str) else text_of(target)
    if strict:
        return {"correct": sample.response == expected}
    return {"correct": same_normal_form(sample.response, expected)}


@scorer(version="3", needs_target=True)
def fuzzy_match(sample: ScorerInput, whole_words: bool = True, either_way: bool = False) -> dict[str, Any]:
    """The response contains an accepted answer (`metadata["correct_answers"]`, else the target) after normalisation.

    As whole words, unless `whole_words` is off; with `either_way` the response may stand in the answer too. An empty
    response or an empty answer matches nothing.
    """
    contain = _contains_words if whole_words else _contains_text
    answers = accepted_answers(sample)
    correct = contain(sample.response, answers)
    if not correct and either_way:
        correct = any(contain(answer, [sample.response]) for answer in answers)
    return {"correct": correct, "extracted": sample.response}


def _contains_words(text: str, answers: list[str]) -> bool:
    words = WholeWords(text)
    return any(words.contain(answer) for answer in answers)


def _contains_text(text: str, answers: list[str]) -> bool:
    normal = normalize_text(text)
    return any(answer in normal for answer in map(normalize_text, answers) if answer)


def accepted_answers(sample: ScorerInput) -> list[str]:
    """Every answer that counts as right: the metadata's `correct_answers`, else the target or, of a list, its items."""
    listed = sample.metadata.get("correct_answers") if sample.metadata else None
    if not listed:
        listed = sample.target
    if isinstance(listed, list | tuple):
        return [text_of(answer) for answer in listed]
    return [text_of(listed)]


@scorer(version="2")
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


@scorer(version="2")
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
    if not any(spaced_text(value, case_sensitive) for value in wanted):
        return None
    response = spaced_text(sample.response, case_sensitive)
    found = {}
    for value in wanted:
        plain = spaced_text(value, case_sensitive)
        found[value] = bool(plain) and plain in response
    return found
