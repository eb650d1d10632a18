"""User patterns mean what Python's `re` means by them, whichever engine runs them."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import OptionError, ScorerTimeout
from evenhand.scoring.bounded_regex import MAX_STEPS, compile_bounded

PATTERNS = [
    r"\d+", r"\w+\b", r"\s", r"^a", r"a$", r"b\Z", r"(?i)straße", r"[^\w]", r"a|b|", r"(a)(b)?", r"x*",
    r"(?m)^b$", r"(?s)a.b", r"\bé", r"[[:x]", r"a{2,3}", r"(?i:k)", r"(?=a)a", r"(a)\1", r"\$", r"[$]", r"\.", r"é+",
]  # fmt: skip
TEXTS = st.text(alphabet=st.sampled_from("ab1 \n\x0b\x85éÉßſKk٣$.xX\u2003\ud800\x00[:"), max_size=12)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
@given(text=TEXTS)
def test_the_same_as_re(pattern: str, text: str) -> None:
    ours = compile_bounded(pattern)
    theirs = list(re.finditer(pattern, text))
    assert ours.search(text) == bool(theirs)
    expected = (theirs[-1].group(), *theirs[-1].groups()) if theirs else None
    assert ours.last(text) == expected


def test_many_empty_matches_are_cut_off_rather_than_counted_for_ever() -> None:
    with suppress(ScorerTimeout):  # either answer is within the stated limit
        assert compile_bounded("").last("a" * 1_000_000) == ("",)


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1000000}",
        "((a{1000}){1000}){1000}",
        "(?:(?:(?:a{99}b){99}c){99}d){99}",
        "(?=(a{200}){200})",
        "(?:x|(a{150}){150})*",
        "(?:a?){99999}?b",
        f"a{{{MAX_STEPS}}}",
    ],
)
def test_a_few_characters_that_stand_for_millions_of_steps_are_refused(pattern: str) -> None:
    with pytest.raises(OptionError, match="steps"):
        compile_bounded(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["a{999}", "(ab{9}){99}", "a{0,1000000}b", "a{3,}", "[a-z]{500}" * 9, "(" * 99 + "a" + ")" * 99],
)
def test_what_people_write_is_not_refused(pattern: str) -> None:
    compile_bounded(pattern).search("é" + "ab" * 10)
