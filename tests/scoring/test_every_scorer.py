"""What holds for every built-in scorer: it never raises on any text, and its options survive a round trip."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.outcome import Failed, Scored, Unscored
from evenhand.scoring.apply import score_sample
from evenhand.scoring.registry import BUILT_IN, get_scorer
from evenhand.scoring.types import ScorerInput

# What a scorer cannot do without, and another value for every option that there is.
NEEDED: dict[str, dict[str, Any]] = {
    "embedding_similarity": {"embed": "char_ngrams"},
    "json_schema": {"schema": {"type": "object"}},
    "regex": {"pattern": r"\w+$"},
    "regex_match": {"pattern": r"(\w+)\s*$"},
}
OTHER: dict[str, dict[str, Any]] = {
    "bleu": {"max_n": 2},
    "contains": {"case_sensitive": False},
    "embedding_similarity": {"embed": "char_ngrams", "threshold": 0.5},
    "exact_match": {"strict": True},
    "fuzzy_match": {"whole_words": False, "either_way": True},
    "includes_all": {"values": ["a", "b, c"], "case_sensitive": True},
    "includes_any": {"values": ["a|b"], "case_sensitive": True},
    "json_schema": {"schema": {"type": "object", "required": ["a", "b"]}},
    "levenshtein": {"case_sensitive": False},
    "list_match": {"ordered": True, "partial": True},
    "multichoice_regex": {"pattern": r"\(([A-J])\)", "letters": "ABCD"},
    "numeric_match": {"which": "answer", "percent": True},
    "numeric_tolerance": {"abs": 0.5, "rel": 0.0, "which": "first", "percent": True},
    "regex": {"pattern": r"a{1,2}", "flags": "i"},
    "regex_match": {"pattern": r"a{1,2}", "flags": "i"},
    "strict_match": {"case_sensitive": False, "strip_whitespace": False},
    "tool_call_match": {"ordered": False, "arguments": "subset", "extra": True},
}
# Running programs and symbolic algebra have tests of their own: each sample costs milliseconds there.
SLOW = {"code_sandbox", "math_equal"}
WILD = (
    st.text()
    | st.text(alphabet=st.characters(exclude_categories=[]))
    | st.text(alphabet='{}[]",:0123456789 \\-.eE\n')
)
TARGETS = WILD | st.none() | st.integers() | st.floats() | st.booleans() | st.lists(WILD, max_size=3)


@pytest.mark.parametrize("name", sorted(set(BUILT_IN) - SLOW))
@given(response=WILD, target=TARGETS, answers=st.none() | st.lists(WILD, max_size=2))
@settings(max_examples=60)
def test_no_text_makes_a_scorer_raise(
    name: str, response: str, target: Any, answers: list[str] | None
) -> None:
    scorer = get_scorer(name).with_options(NEEDED.get(name, {}))
    metadata = {} if answers is None else {"correct_answers": answers}
    outcome = score_sample(scorer, ScorerInput(response=response, target=target, metadata=metadata))
    if isinstance(outcome, Failed):
        # NaN, and lone surrogates within a list, cannot be spelled as text to compare with.
        assert isinstance(target, float | list), outcome
    else:
        assert isinstance(outcome, Scored | Unscored)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_options_survive_a_round_trip_through_json_and_through_text(name: str) -> None:
    scorer = get_scorer(name)
    if name in SLOW:
        return
    assert set(OTHER.get(name, {})) == set(scorer.options)
    configured = scorer.with_options(OTHER.get(name, {}))
    through_json = json.loads(json.dumps(configured.identity["options"]))
    assert scorer.with_options(through_json).identity == configured.identity
    typed = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in through_json.items()
    }
    assert scorer.configure_from_text(typed).identity == configured.identity
    assert scorer.configure_from_json(through_json).identity == configured.identity


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_schema_of_the_options_accepts_what_the_scorer_accepts(name: str) -> None:
    """jsonschema-rs reads the schema; nothing of ours decides."""
    schema = get_scorer(name).options_schema
    check = jsonschema_rs.Draft202012Validator(schema)
    assert check.is_valid(OTHER.get(name, {}))
    assert check.is_valid({}) == (not schema["required"])
    assert not check.is_valid({**OTHER.get(name, {}), "no_such_option": 1})
    for option, value in OTHER.get(name, {}).items():
        assert not check.is_valid(
            {**OTHER[name], option: {"no": "such"} if value is not dict else 1}
        ) or isinstance(value, dict)
