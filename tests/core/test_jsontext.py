"""Strict JSON: hostile text ends in `InputError`, sound text round-trips."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core import jsontext
from evenhand.core.errors import InputError

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(alphabet=st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NaN", "invalid JSON"),
        ("[Infinity]", "invalid JSON"),
        ("-Infinity", "invalid JSON"),
        ("1e400", "out of range"),
        ("1" * 5000, "out of range"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a":' * 101 + "1" + "}" * 101, "nested too deeply"),
        ('"\\ud800"', "lone surrogate"),
        ('["\\ud83d\\ude00", "\\uDC00"]', "lone surrogate"),
        ('["\\ud83d\\ude00", NaN]', "invalid character"),
        ('"\ud800"', "lone surrogate"),
        ("", "invalid JSON"),
        ("{'a': 1}", "invalid JSON"),
        (b'"\xff"', "UTF-8"),
    ],
)
def test_hostile_text_is_an_input_error_with_a_reason(text: str | bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        jsontext.decode(text)


def test_depth_limit_counts_levels_not_brackets() -> None:
    """200 brackets side by side are one level; brackets inside strings are none."""
    assert jsontext.decode("[" + ",".join(["[]"] * 200) + "]") == [[]] * 200
    assert jsontext.decode('["' + "[" * 500 + '\\""]') == ["[" * 500 + '"']
    assert jsontext.decode("[" * 100 + "]" * 100) is not None


@pytest.mark.parametrize("filling", ["plain", '[\\"[\\\\', "{\\n"])
def test_depth_is_counted_in_long_texts_too_whatever_their_strings_hold(filling: str) -> None:
    text = '["' + filling * 30_000 + '",%s]'
    jsontext.check_depth((text % ("[" * 99 + "]" * 99)).encode())
    with pytest.raises(InputError, match="nested too deeply"):
        jsontext.check_depth((text % ("[" * 100 + "]" * 100)).encode())


@given(JSON_VALUES)
def test_every_json_value_round_trips_and_agrees_with_the_standard_library(value: object) -> None:
    assert jsontext.decode(jsontext.encode(value)) == value
    assert json.loads(jsontext.canonical(value)) == value


@given(st.text())
def test_no_text_raises_anything_but_input_error(text: str) -> None:
    with contextlib.suppress(InputError):
        jsontext.decode(text)


@given(st.dictionaries(st.text(alphabet="abc"), st.integers(0, 9)))
def test_canonical_ignores_the_order_of_keys(value: dict[str, int]) -> None:
    shuffled = dict(reversed(value.items()))
    assert jsontext.canonical(value) == jsontext.canonical(shuffled)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_cannot_carry_never_leave(number: float) -> None:
    with pytest.raises(ValueError, match="NaN and Infinity"):
        jsontext.encode({"a": [number]})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"a": 1, "a": 1}', "a"),
        ('{"a": 1, "b": {"c": [{"d": 1, "d": 2}]}}', "d"),
        ('{"a": 1, "\\u0061": 2}', "a"),
        ('{"": 1, "": 2}', ""),
        # a colon that appears in decoding makes up for the one that a lost key takes away
        ('{"a": "\\u003a", "a": "\\u003A"}', "a"),
        ('{"a": "\\u003a", "b": 1, "b": "\\u003a"}', "b"),
        # a number that the encoder cannot write
        ('{"a": 123456789012345678901234567890, "a": 1}', "a"),
        ('[{"a": 1}, {"a": 2}]', None),
        ('{"a": {"a": {"a": 1}}}', None),
        ('{"a": "{\\"a\\": 1, \\"a\\": 2}"}', None),
        ('{"a:": ":::", "b": "\\u003a"}', None),
        ('"a"', None),
        ("12345678901234567890123", None),
        ("{}", None),
    ],
)
def test_a_key_that_is_given_twice_is_named(text: str, key: str | None) -> None:
    assert jsontext.repeated_key(text.encode()) == key


@pytest.mark.parametrize("number", ["1e400", "1" * 5_000])
def test_a_number_out_of_range_is_found_at_any_depth(number: str) -> None:
    for text in (number, f'{{"a": {{"b": {number}}}}}'):
        with pytest.raises(InputError, match="out of range"):
            jsontext.repeated_key(text.encode())


class _Doubled(Exception):
    pass


def _count_keys(pairs: list[tuple[str, object]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _Doubled


FEW_KEYS = st.recursive(
    st.integers() | st.text(alphabet=":a\\\"{", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc:", max_size=2), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(FEW_KEYS, st.booleans())
def test_a_count_of_colons_never_misses_a_key_that_the_standard_hook_finds(
    value: object, escaped: bool
) -> None:
    """Values with their keys renamed to few names: many are doubled, at any depth."""
    text = json.dumps(value, ensure_ascii=escaped)
    for name in ("b", "c", "0", ":"):
        text = text.replace(f'"{name}": ', '"a": ')
    try:
        json.loads(text, object_pairs_hook=_count_keys)
        expected = False
    except _Doubled:
        expected = True
    assert (jsontext.repeated_key(text.encode()) is not None) == expected
    decoded = json.loads(text)
    kept = jsontext.keeps_keys(text.encode(), json.dumps(decoded).encode())
    assert not (kept and expected)
    # Nothing was dropped and nothing is escaped that would spoil the count: then it decides by itself.
    assert kept or expected or "\\u003" in text


@given(st.text(alphabet="a\\u\ud83d\ude00d8", max_size=12))
def test_only_surrogates_without_a_partner_are_replaced(text: str) -> None:
    mended = jsontext.without_lone_surrogates(json.dumps(text).encode())
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert jsontext.decode(mended) == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in joined)
