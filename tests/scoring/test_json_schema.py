"""JSON in responses, and validation that is complete, closed to the network and bounded."""

import json
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import OptionError
from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.scoring.apply import score_sample
from evenhand.scoring.json_schema import json_schema, validate_json_schema
from evenhand.scoring.json_text import extract_json
from evenhand.scoring.types import ScorerInput

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from([0.0, 1.0, 1.5, -2.0, 1e300])
    | st.text("abé", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
LEAF_SCHEMAS = (
    st.booleans()
    | st.fixed_dictionaries({"type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True)})
    | st.fixed_dictionaries({"const": VALUES})
    | st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=3)})
    | st.fixed_dictionaries({"minimum": st.integers(-5, 5), "exclusiveMaximum": st.integers(-5, 9)})
    | st.fixed_dictionaries({"multipleOf": st.sampled_from([1, 2, 0.5])})
    | st.fixed_dictionaries(
        {"minLength": st.integers(0, 3), "pattern": st.sampled_from(["^a", "b$", "é", "[ab]{2}"])}
    )
    | st.fixed_dictionaries({"minItems": st.integers(0, 2), "uniqueItems": st.booleans()})
    | st.fixed_dictionaries({"required": st.lists(st.sampled_from("abc"), max_size=2, unique=True)})
)
SCHEMAS = st.recursive(
    LEAF_SCHEMAS,
    lambda inner: (
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"not": inner})
        | st.fixed_dictionaries({"if": inner, "then": inner, "else": inner})
        | st.fixed_dictionaries(
            {
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
                "additionalProperties": inner,
            }
        )
        | st.fixed_dictionaries({"prefixItems": st.lists(inner, min_size=1, max_size=2), "items": inner})
        | st.fixed_dictionaries({"contains": inner})
        | st.fixed_dictionaries(
            {"allOf": st.lists(inner, min_size=1, max_size=2), "unevaluatedProperties": inner}
        )
    ),
    max_leaves=6,
)


def valid(value: Any, schema: Any) -> bool:
    return bool(validate_json_schema(json.dumps(value), schema)["valid"])


def outcome(schema: Any, response: str) -> Outcome:
    return score_sample(json_schema.configure(schema=schema), ScorerInput(response=response))


REFERRING = SCHEMAS.map(
    lambda schema: {
        "$defs": {"x": schema},
        "anyOf": [{"$ref": "#/$defs/x"}, {"items": {"$ref": "#/$defs/x"}}],
    }
)


@given(VALUES, SCHEMAS | REFERRING)
def test_validation_agrees_with_the_reference_implementation(value: Any, schema: Any) -> None:
    assert valid(value, schema) == jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (1.0, {"type": "integer"}, True),
        (1.5, {"type": "integer"}, False),
        (True, {"type": "integer"}, False),
        (True, {"type": "number"}, False),
        (1, {"const": True}, False),
        (1, {"const": 1.0}, True),
        ("é", {"maxLength": 1}, True),
        ("😀", {"maxLength": 1}, True),
        ([1, True], {"uniqueItems": True}, True),
        ([1, 1.0], {"uniqueItems": True}, False),
        (0.3, {"multipleOf": 0.1}, True),
        ("x", {"format": "email"}, True),
        ({"a": 1}, {"$ref": "#/$defs/x", "$defs": {"x": {"required": ["b"]}}}, False),
        ([[[]]], {"type": "array", "items": {"$ref": "#"}}, True),
        ([["x"]], {"type": "array", "items": {"$ref": "#"}}, False),
        (1, {"$schema": "http://json-schema.org/draft-07/schema#", "type": "integer"}, True),
    ],
)
def test_the_traps_of_the_specification(value: Any, schema: Any, expected: bool) -> None:
    assert valid(value, schema) is expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("  42 ", 42),
        ('Sure!\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('```\n{"a": 1}\n```\nand\n```json\n{"a": 2}\n```', {"a": 2}),
        ('See [1]: the result is {"a": [1, 2]}.', {"a": [1, 2]}),
        ('He said 5" and {"a": "}"}', {"a": "}"}),
        ("use { to open, then [1, 2]", [1, 2]),
        ('{"a": 1} or rather {"a": 2}', {"a": 2}),
        ("nothing here", None),
        ("{not json}", None),
        ("", None),
    ],
)
def test_json_is_found(text: str, value: Any) -> None:
    assert extract_json(text) == value


@given(VALUES, st.text(alphabet="abc .,\n"), st.text(alphabet="abc .,\n"))
def test_any_object_is_found_in_any_prose(value: Any, before: str, after: str) -> None:
    value = {"value": value}
    text = json.dumps(value)
    assert extract_json(f"{before}{text}{after}") == value
    assert extract_json(f"{before}\n```json\n{text}\n```\n{after}") == value


@given(st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    result = validate_json_schema(text, {"type": "object"})
    assert result["valid"] is (result["score"] == 1.0)
    assert result["valid"] or result["errors"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("{" * 100_000, "invalid JSON"),
        ('{"answer": ' + "9" * 5_000 + "}", "out of range"),
        ('{"answer": NaN}', "malformed"),
        ('{"answer": 1e999}', "out of range"),
        ('{"answer": "\ud800"}', "lone surrogate"),
        ('{"answer": "\\ud800"}', "invalid JSON"),
        ("x" * 5_000_000, "characters"),
    ],
)
def test_a_hostile_output_is_invalid_with_a_reason(text: str, reason: str) -> None:
    result = validate_json_schema(text, {"required": ["answer"]})
    assert (result["valid"], result["score"], result["extracted"]) == (False, 0.0, None)
    assert reason in result["errors"][0]


def test_nul_is_a_character_like_any_other() -> None:
    assert validate_json_schema('{"answer": "a\\u0000b"}', {"required": ["answer"]})["valid"] is True


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "nope"}, "invalid JSON schema"),
        ({"minimum": "x"}, "invalid JSON schema"),
        ({"$schema": "https://example.com/unknown"}, "Unknown meta-schema"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "Retrieval is disabled"),
        ({"$ref": "file:///etc/passwd"}, "Retrieval is disabled"),
        ({"$ref": "#/$defs/missing"}, "does not exist"),
        ({"pattern": "("}, "invalid JSON schema"),
        ([], "an object or a truth value, not list"),
        ({"const": "x" * 70_000}, "bytes; at most 65,536"),
        ({"anyOf": [{"const": i} for i in range(10_000)]}, "at most"),
        ({"const": float("nan")}, "null"),
    ],
)
def test_an_invalid_schema_is_an_error(schema: Any, message: str) -> None:
    if message == "null":
        # msgspec writes NaN as null: such a schema cannot come out of JSON, and means null here.
        assert validate_json_schema("null", schema)["valid"] is True
        return
    with pytest.raises(OptionError) as caught:
        validate_json_schema("{}", schema)
    assert message in str(caught.value)


def test_a_schema_nested_too_deeply_is_an_error() -> None:
    schema: Any = {}
    for _ in range(40):
        schema = {"not": schema}
    with pytest.raises(OptionError, match="nested too deeply"):
        validate_json_schema("{}", schema)


def doubling(levels: int) -> Any:
    """A schema of a few hundred bytes that asks the same question 2^levels times."""
    defs: Any = {
        f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}, {"$ref": f"#/$defs/a{i + 1}"}]}
        for i in range(levels)
    }
    defs[f"a{levels}"] = {"type": "string"}
    return {"$defs": defs, "$ref": "#/$defs/a0"}


def test_a_schema_bomb_is_cut_off() -> None:
    found = outcome(doubling(40), '"x"')  # uncut it would take days
    assert isinstance(found, Failed)
    assert found.error == "scorer_timeout"
    assert "timed out" in found.message
    assert outcome(doubling(3), '"x"') == Scored(value=1.0, extracted="x")


def test_recursion_that_multiplies_is_cut_off_or_decided() -> None:
    either = [{"properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["c", key]} for key in "yz"]
    schema = {"$defs": {"n": {"anyOf": [*either, {"type": "string"}]}}, "$ref": "#/$defs/n"}
    found = outcome(schema, '{"c":' * 40 + "1" + "}" * 40)
    assert isinstance(found, Scored)
    assert found.value == 0.0
    assert outcome(schema, '"fine"') == Scored(value=1.0, extracted="fine")


def test_patterns_in_a_schema_are_bounded() -> None:
    assert valid("a" * 50_000 + "b", {"pattern": "^(a+)+$"}) is False
    assert valid("abc", {"pattern": "^(?!x)a"}) is True


@pytest.mark.parametrize("around", ["pattern", "not"])
def test_a_pattern_that_cannot_be_decided_is_neither_right_nor_wrong(around: str) -> None:
    # Forty letters are 2**40 ways to fail: no machine decides that within the limit.
    endless = {"pattern": "^(a|a)*\\1b$(?!x)"}
    found = outcome(endless if around == "pattern" else {"not": endless}, json.dumps("a" * 40))
    assert isinstance(found, Failed)
    assert found.error == "scorer_timeout"


def test_a_pattern_with_look_around_that_takes_long_is_still_decided() -> None:
    # 2**17 ways: past any small count of steps, far below the limit of time.
    slow = {"pattern": "^(a|a)*\\1b$(?!x)"}
    assert valid("a" * 17, slow) is False
    assert valid("a" * 17, {"not": slow}) is True


def test_no_schema_opens_a_socket() -> None:
    program = """
import socket, sys
def refuse(event, args):
    if event.startswith("socket."):
        raise RuntimeError("a socket was opened: " + event)
sys.addaudithook(refuse)
from evenhand.core.errors import OptionError
from evenhand.scoring.schema_check import SchemaCheck
for ref in ("http://127.0.0.1:9/x", "https://example.com/x", "file:///etc/passwd", "//127.0.0.1/x"):
    try:
        SchemaCheck({"$ref": ref})
    except OptionError:
        print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert done.stdout.split() == ["refused"] * 4, done.stderr


def test_the_scorer_takes_its_schema_from_the_option_or_the_metadata() -> None:
    sample = ScorerInput(response='{"a": 1}', metadata={"schema": {"required": ["b"]}})
    assert json_schema(sample) == {
        "correct": False,
        "extracted": {"a": 1},
        "errors": ['the value: "b" is a required property'],
    }
    assert json_schema(sample, schema={"required": ["a"]}) == {"correct": True, "extracted": {"a": 1}}
    assert isinstance(score_sample(json_schema, ScorerInput(response="{}")), Failed)


def test_errors_say_where_and_stay_few() -> None:
    result = validate_json_schema(
        json.dumps({"rows": [{"n": "x"}] * 50}),
        {"properties": {"rows": {"items": {"properties": {"n": {"type": "integer"}}}}}},
    )
    assert result["errors"][0] == 'rows[0].n: "x" is not of type "integer"'
    assert len(result["errors"]) == 11
    assert result["errors"][-1] == "and more"
