"""Comparing a response as it is: nothing is normalised but what an option says.

These are the rules of the scoring service's contract. On the wire `strict_match` is called `exact_match`.
"""

from typing import Any

from evenhand.scoring.bounded_regex import compile_bounded
from evenhand.scoring.definition import scorer
from evenhand.scoring.normal import text_of
from evenhand.scoring.types import ScorerInput

NO_TARGET = {"unscored": "no_expected_output"}
"""The contract knows one expected output: other accepted answers do not stand in for it."""


@scorer(needs_target=True, as_stored=True)
def strict_match(
    sample: ScorerInput, case_sensitive: bool = True, strip_whitespace: bool = True
) -> dict[str, Any]:
    """Equal to the target, character by character; other JSON values are compared in their canonical spelling."""
    if sample.target is None:
        return dict(NO_TARGET)
    response, target = sample.response, text_of(sample.target)
    if strip_whitespace:
        response, target = response.strip(), target.strip()
    if not case_sensitive:
        response, target = response.casefold(), target.casefold()
    return {"correct": response == target}


@scorer(needs_target=True, as_stored=True)
def contains(sample: ScorerInput, case_sensitive: bool = True) -> dict[str, Any]:
    """The target stands in the response, character by character."""
    if sample.target is None:
        return dict(NO_TARGET)
    response, target = sample.response, text_of(sample.target)
    if not case_sensitive:
        response, target = response.casefold(), target.casefold()
    return {"correct": target in response}


@scorer(as_stored=True)
def regex(sample: ScorerInput, pattern: str, flags: str = "") -> dict[str, Any]:
    """The pattern matches somewhere in the response; `flags` are letters of i, m, s, x. No target is needed."""
    return {"correct": bool(compile_bounded(pattern, flags).search(sample.response))}
