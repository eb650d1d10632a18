"""User patterns mean what Python's `re` means by them, whichever engine runs them."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import ScorerTimeout
from evenhand.scoring.bounded_regex import compile_bounded

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
