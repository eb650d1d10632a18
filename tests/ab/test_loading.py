"""Reading collected.jsonl: line-exact errors, duplicates, and agreement with the shipped JSON Schema."""

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ab_rows import row, worked_example, write_rows

from evenhand.ab import analyze, load_records
from evenhand.ab.record import (
    AMOUNTS,
    RULES,
    RunRecord,
    generated_schema,
    parse_record,
    record_fields,
    schema_text,
)
from evenhand.core.errors import InputError

VALIDATOR = jsonschema_rs.validator_for(json.loads(schema_text()))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "invalid JSON"),
        ("", None),
        ("[]", "a run record is a JSON object, not an array"),
        ("7", "a run record is a JSON object, not 7"),
        ('{"task_id": "t"}', "field 'arm': is missing"),
        (
            row(task=""),
            "field 'task_id': must be a non-empty string of at most 1,000 characters, not an empty string",
        ),
        (
            row(arm=""),
            "field 'arm': must be a non-empty string of at most 1,000 characters, not an empty string",
        ),
        (row(repeat=0), "field 'repeat': must be an integer from 1 to 2147483647, not 0"),
        (row(repeat=1.5), "field 'repeat': must be an integer"),
        (row(repeat=2.0), None),
        (row(success="yes"), "field 'success': must be true or false, not \"yes\""),
        (row(success=1), "field 'success': must be true or false, not 1"),
        (row(duration_seconds=None), "field 'duration_seconds': must be a number from 0 to 1e15, not null"),
        (row(duration_seconds=-1), "field 'duration_seconds': must be a number from 0 to 1e15, not -1"),
        (row(duration_seconds=1e16), "field 'duration_seconds': must be a number from 0 to 1e15"),
        (row(total_cost_usd=None), None),
        (row(total_cost_usd="0.1"), "field 'total_cost_usd': must be a number from 0 to 1e15, or null"),
        (
            row(total_cost_usd=True),
            "field 'total_cost_usd': must be a number from 0 to 1e15, or null, not true",
        ),
        (row(input_tokens=-3), "field 'input_tokens'"),
        (row(step_count=[1]), "field 'step_count': must be a number from 0 to 1e15, or null, not an array"),
        (row(acceptance_first_pass=0), "field 'acceptance_first_pass': must be true, false or null"),
        (row(agent_exit_code=0.5), "field 'agent_exit_code': must be an integer or null"),
        (row(run_id=7), "field 'run_id': must be a string or null, not 7"),
        (row(infra_failure="no"), "field 'infra_failure'"),
        (row(task="t" * 1_001), "field 'task_id': must be a non-empty string of at most 1,000 characters"),
        (row(task="t" * 1_000), None),
        (row(note="half an emoji \ud83d"), None),
        (row(anything={"else": [1, None]}), None),
        (json.dumps(row()).replace("1.0", "NaN"), "invalid JSON"),
        (json.dumps(row()).replace("1.0", "1e999"), "out of range"),
        (json.dumps(row())[:-1] + ', "x": ' + "[" * 300 + "]" * 300 + "}", "nested too deeply"),
        (json.dumps(row(x="Z")).encode().replace(b"Z", b"\xff"), "is not UTF-8 text"),
    ],
)
def test_a_bad_line_is_named_with_field_and_reason(tmp_path: Path, line: Any, reason: str | None) -> None:
    text = json.dumps(line) if isinstance(line, dict) else line
    data = text if isinstance(text, bytes) else text.encode()
    path = tmp_path / "collected.jsonl"
    path.write_bytes(
        json.dumps(row("first")).encode() + b"\n\n" + data + b"\n" + json.dumps(row("last")).encode()
    )
    if reason is None:
        assert len(load_records(path)) == (3 if line else 2)
        return
    with pytest.raises(InputError) as caught:
        load_records(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert reason in str(caught.value)
    table = load_records(path, skip_invalid=True)
    assert (len(table), table.invalid_count) == (2, 1)
    assert reason in table.invalid[0]


@pytest.mark.parametrize(
    ("more", "key"),
    [
        (', "success": false', "success"),
        (', "success": true', "success"),
        (', "arm" : "b"', "arm"),
        (', "\\u0061rm": "b"', "arm"),
        # A colon that is escaped must not make up for the one that was lost.
        (', "workspace": "C\\u003a", "success": false', "success"),
        (', "step_count": null, "step_count": null', "step_count"),
        (', "own": {"a": 1, "b": {"a": 2, "a": 3}}', "a"),
        (', "own": 1, "own": 2', "own"),
        (', "own": "\\u003a", "step_count": null, "times": ["3:04", {"a": "a:"}]', None),
    ],
)
def test_a_record_that_names_a_key_twice_is_a_bad_line(tmp_path: Path, more: str, key: str | None) -> None:
    """Whichever value were kept, the other would be lost, and with it perhaps the decision."""
    lines = [json.dumps(row("t", "a", n)) for n in range(1, 6)]
    lines[3] = lines[3][:-1] + more + "}"
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(lines))
    if key is None:
        assert len(load_records(path)) == 5
        return
    with pytest.raises(InputError) as caught:
        load_records(path)
    assert str(caught.value) == f"{path}:4: duplicate key '{key}'"
    table = load_records(path, skip_invalid=True)
    assert (len(table), table.invalid) == (4, (str(caught.value),))


def test_skipped_lines_are_counted_in_the_report(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    rows = "".join(json.dumps(one) + "\nnot JSON\n" for one in worked_example())
    path.write_text(rows)
    quality = analyze(load_records(path, skip_invalid=True)).data_quality
    assert (quality.records, quality.invalid_lines, len(quality.invalid_examples)) == (19, 19, 19)


def test_the_first_twenty_reasons_are_kept(tmp_path: Path) -> None:
    """Two megabytes, so several blocks, with fifteen bad lines early and fifteen late."""
    good = [json.dumps(row("t", "a", n, note="x" * 5_000)) for n in range(1, 401)]
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(["early"] * 15 + good + ["late"] * 15))
    table = load_records(path, skip_invalid=True)
    assert (len(table), table.invalid_count, len(table.invalid)) == (400, 30, 20)
    assert table.invalid[14].startswith(f"{path}:15: ")
    assert table.invalid[15].startswith(f"{path}:416: ")


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz"])
def test_line_ends_byte_order_marks_and_compression_do_not_matter(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = b"\xef\xbb\xbf" + b"\r\n".join(json.dumps(one).encode() for one in worked_example())
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert len(load_records(path)) == 19


@pytest.mark.parametrize("kind", ["missing", "folder", "cut", "no gzip"])
def test_files_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "c.jsonl.gz"
    if kind == "folder":
        path = tmp_path
    elif kind == "cut":
        path.write_bytes(gzip.compress(b"x" * 100_000)[:60])
    elif kind == "no gzip":
        path.write_bytes(b"plain")
    with pytest.raises(InputError, match=str(path)):
        load_records(path)


def test_duplicates_are_listed_with_their_lines(tmp_path: Path) -> None:
    rows = [row("t", "a", 1), row("t", "b", 1), row("u", "a", 2), row("t", "a", 1), row("u", "a", 2)]
    path = write_rows(tmp_path / "c.jsonl", rows)
    with pytest.raises(InputError) as caught:
        load_records(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: 2 duplicate runs")
    assert "task t, arm a, repeat 1: lines 1 and 4" in text
    assert "task u, arm a, repeat 2: lines 3 and 5" in text
    with pytest.raises(InputError, match="task t, arm a, repeat 1: records 1 and 4"):
        analyze(rows, "a", "b")


def test_many_duplicates_are_counted() -> None:
    with pytest.raises(InputError, match="and 30 more"):
        analyze([row("t", "a", 1 + n // 2) for n in range(100)])


def test_twenty_duplicates_are_all_listed() -> None:
    with pytest.raises(InputError) as caught:
        analyze([row("t", "a", 1 + n // 2) for n in range(40)])
    assert str(caught.value).count("repeat") == 21  # the sentence names the word once
    assert "more" not in str(caught.value)


def test_a_bad_mapping_is_named_by_its_number() -> None:
    with pytest.raises(InputError, match="record:2: field 'repeat'"):
        analyze([row(), row(repeat=-1)])


def test_an_empty_file_is_insufficient_data(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "c.jsonl", [])
    report = analyze(load_records(path))
    assert report.decision == "insufficient data"
    assert "there are no records" in report.to_markdown()


def test_blocks_keep_their_line_numbers(tmp_path: Path) -> None:
    """Many blocks, a blank line early, the bad line late."""
    path = tmp_path / "c.jsonl"
    padding = "x" * 5_000
    lines = [json.dumps(row("t", "a", n, note=padding)) for n in range(1, 3_001)]
    lines[7] = ""
    lines[2_500] = "{"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"c\.jsonl:2501: invalid JSON"):
        load_records(path)
    lines[2_500] = lines[2_499]
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="lines 2500 and 2501"):
        load_records(path)


def test_the_schema_is_a_schema_and_knows_every_field() -> None:
    schema = json.loads(schema_text())
    assert schema["$schema"].endswith("2020-12/schema")
    assert jsonschema_rs.meta.is_valid(schema)
    assert set(schema["properties"]) == set(RunRecord.__struct_fields__)
    required = {field.name for field in msgspec.structs.fields(RunRecord) if field.required}
    assert set(schema["required"]) == required


def test_the_shipped_schema_is_the_one_made_from_the_type() -> None:
    """To change a field, change `RunRecord` and run `python -m evenhand.ab.record > src/evenhand/ab/run_record.schema.json`."""
    assert schema_text() == generated_schema()


def test_rules_follow_the_type() -> None:
    """Every rule, its bounds at both ends, and its words."""
    assert RULES.keys() == set(RunRecord.__struct_fields__)
    assert [name for name, rule in RULES.items() if rule.kind == "number"] == list(AMOUNTS)
    name, amount, cost, repeat = (
        RULES[field] for field in ("arm", "duration_seconds", "total_cost_usd", "repeat")
    )
    code, flag, text = RULES["agent_exit_code"], RULES["infra_failure"], RULES["run_id"]
    for rule, good, bad in (
        (name, ["a", "a" * 1_000], ["", "a" * 1_001, None, 1]),
        (amount, [0, 0.0, 1e15, 3], [-1e-9, 1.0000001e15, None, True, "1", float("nan")]),
        (cost, [0, None], [-1, False]),
        (repeat, [1, 2.0, 2**31 - 1], [0, 2**31, 1.5, True, None]),
        (code, [0, -9, None, 2**31 - 1, -(2**31 - 1)], [2**31, -(2**31), 0.5]),
        (flag, [True, False, None], [0, "no"]),
        (text, ["", "x", None], [0]),
    ):
        assert all(rule.accepts(value) for value in good), rule
        assert not any(rule.accepts(value) for value in bad), rule
    assert name.expectation == "a non-empty string of at most 1,000 characters"
    assert amount.expectation == "a number from 0 to 1e15"
    assert cost.expectation == "a number from 0 to 1e15, or null"
    assert repeat.expectation == "an integer from 1 to 2147483647"
    assert (code.expectation, flag.expectation) == ("an integer or null", "true, false or null")
    assert (RULES["success"].expectation, text.expectation) == ("true or false", "a string or null")


def test_a_record_is_written_as_it_is_read() -> None:
    record = parse_record(row(step_count=3, infra_failure=False))
    fields = record_fields(record)
    assert parse_record(fields) == record
    assert VALIDATOR.is_valid(fields)
    assert "session_id" not in fields  # optional and not known
    assert fields["infra_failure"] is False


odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([1e15, 1.0000001e15, 2**31 - 1, 2**31, -(2**31), 0.5, -0.0, 1e300, 2.0]),
    st.sampled_from(["", "a", "1"]),
    st.just([]),
    st.just({}),
)


@given(
    st.dictionaries(st.sampled_from(RunRecord.__struct_fields__), odd, max_size=3),
    st.sets(st.sampled_from(RunRecord.__struct_fields__), max_size=1),
)
@settings(max_examples=400)
def test_schema_and_both_readers_agree(changes: dict[str, Any], left_out: set[str]) -> None:
    """The JSON Schema, the field-by-field check and the quick decoder accept the same records."""
    record = {name: value for name, value in {**row(), **changes}.items() if name not in left_out}
    by_schema = VALIDATOR.is_valid(record)
    try:
        parsed = parse_record(record)
    except InputError:
        parsed = None
    assert (parsed is not None) == by_schema
    try:
        quick = msgspec.json.decode(json.dumps(record), type=RunRecord)
    except msgspec.ValidationError:
        quick = None
    whole = any(isinstance(value, float) for value in record.values())
    if not whole or quick is not None:
        assert quick == parsed
