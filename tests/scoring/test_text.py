"""Text scorers: what normalisation drops and what it must not, the quick path against the plain one."""

import re
import string
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.growth import grows_no_faster_than_linearly

from evenhand.scoring.normal import normalize_text, same_normal_form
from evenhand.scoring.text import exact_match, fuzzy_match, includes_all, includes_any
from evenhand.scoring.types import ScorerInput

ANY_TEXT = st.text() | st.text(alphabet=st.sampled_from("aAnNtThHeE .,!?-_'\"\t\n\x1c\u00a0\u0301ﬁİẞßΣ+$"))
# Lone surrogates are text to Python.
WILD_TEXT = ANY_TEXT | st.text(alphabet=st.characters(exclude_categories=[]))


def plain_normal_form(text: str) -> str:
    """The definition, written with nothing but `unicodedata` and `re`."""
    lowered = unicodedata.normalize("NFKC", text).lower()
    bare = "".join(
        char for char in lowered if char not in string.punctuation and unicodedata.category(char)[0] != "P"
    )
    words = unicodedata.normalize("NFKC", bare).split()
    if not words:
        return " ".join(unicodedata.normalize("NFKC", lowered).split())
    without = [word for word in words if not re.fullmatch("a|an|the", word)]
    return " ".join(without or words)


def exact(response: str, target: object) -> bool:
    result = exact_match(ScorerInput(response=response, target=target))
    assert set(result) == {"correct"}
    return bool(result["correct"])


def fuzzy(response: str, target: object, **metadata: object) -> bool:
    return bool(fuzzy_match(ScorerInput(response=response, target=target, metadata=metadata))["correct"])


@pytest.mark.parametrize(
    ("response", "target", "same"),
    [
        ("  Paris.  ", "paris", True),
        ("The Beatles", "beatles", True),
        ("an  apple\n", "Apple", True),
        ("Ｐａｒｉｓ", "paris", True),
        ("ﬁne", "fine", True),
        ("“Paris”…", "paris", True),
        ("café", "cafe\u0301", True),
        ("Paris", "London", False),
        ("theatre", "atre", False),
        ("42", 42, True),
        ("true", True, True),
        # Nothing but articles or punctuation must not become equal to everything of that kind.
        ("A", "A.", True),
        ("the", "A", False),
        ("", "A", False),
        ("?", "!", False),
        ("", "", True),
        ("", "...", False),
    ],
)
def test_exact_match(response: str, target: object, same: bool) -> None:
    assert exact(response, target) is same


@given(WILD_TEXT)
@example("e.\u0301")
@example("A")
@example("\x1c a \x1c")
def test_the_quick_normal_form_is_the_plain_one_and_is_stable(text: str) -> None:
    assert normalize_text(text) == plain_normal_form(text)


@given(ANY_TEXT)
@example("e.\u0301")
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalize_text(text)
    assert normalize_text(once) == once


@given(WILD_TEXT, WILD_TEXT)
def test_exact_match_is_symmetric_and_reflexive(first: str, second: str) -> None:
    assert exact(first, second) == exact(second, first) == same_normal_form(first, second)
    assert exact(first, first)


@given(WILD_TEXT, WILD_TEXT)
def test_fuzzy_match_is_symmetric_and_follows_from_exact_match(first: str, second: str) -> None:
    assert fuzzy(first, second) == fuzzy(second, first)
    if exact(first, second) and normalize_text(first):
        assert fuzzy(first, second)


@pytest.mark.parametrize(
    ("response", "target", "metadata", "correct"),
    [
        ("The capital is Canberra.", "Canberra", {}, True),
        ("Canberra", "the city of Canberra", {}, True),
        ("", "Canberra", {}, False),
        ("   ", "", {}, False),
        ("Sydney", "", {}, False),
        ("Sydney", "Canberra", {"correct_answers": ["Melbourne", "sydney"]}, True),
        ("Sydney", "Canberra", {"correct_answers": "sydney"}, True),
        ("Sydney", "Canberra", {"correct_answers": [""]}, False),
        ("It was 1984", None, {"correct_answers": [1984]}, True),
    ],
)
def test_fuzzy_match(response: str, target: object, metadata: dict[str, object], correct: bool) -> None:
    assert fuzzy(response, target, **metadata) is correct


def test_a_million_combining_marks_take_no_quadratic_time() -> None:
    def compare(pairs: int) -> None:
        marks = "a" + "\u0301\u0323" * pairs
        assert exact(marks, marks + "b") is False

    assert grows_no_faster_than_linearly(compare, 250_000)


def test_includes() -> None:
    sample = ScorerInput(response="Red,  green and BLUE", target=["red", "blue"])
    assert includes_all(sample) == {"correct": True, "missing": []}
    assert includes_any(sample, values=["x", "green"]) == {"correct": True, "extracted": "green"}
    assert includes_all(sample, values=["red", "pink"]) == {"correct": False, "missing": ["pink"]}
    assert includes_any(sample, values=["RED"], case_sensitive=True)["correct"] is False
    assert includes_all(sample, values=[])["correct"] is False
    assert includes_any(sample, values=[""])["correct"] is False


def test_includes_needs_a_target_only_without_values() -> None:
    sample = ScorerInput(response="red", target=None)
    assert includes_any(sample, values=["red"])["correct"] is True
    assert includes_all(sample, values=["red"])["correct"] is True
    assert includes_any(sample) == includes_all(sample) == {"unscored": "no_expected_output"}
