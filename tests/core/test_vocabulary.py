"""Outcomes, errors, ids, instants, secrets and terminal text."""

import copy
import time
import uuid
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import InputError, MissingExtra, UnknownName, UserError
from evenhand.core.ids import new_id
from evenhand.core.outcome import Failed, Outcome, Scored, Tally, Unscored
from evenhand.core.secret import Secret
from evenhand.core.terminal import preview, printable
from evenhand.core.timestamps import format_instant, parse_instant


def test_outcomes_are_told_apart_on_the_wire() -> None:
    outcomes: list[Outcome] = [
        Scored(value=0.0),
        Unscored(reason="no_expected_output"),
        Failed(error="scorer_timeout", message="took too long"),
    ]
    text = msgspec.json.encode(outcomes)
    assert msgspec.json.decode(text, type=list[Outcome]) == outcomes
    assert [row["status"] for row in msgspec.json.decode(text)] == ["scored", "unscored", "failed"]


def test_a_tally_is_closed() -> None:
    tally = Tally()
    for outcome in (
        Scored(value=1.0),
        Scored(value="pass"),
        Unscored(reason="x"),
        Failed(error="e", message="m"),
    ):
        tally.add(outcome)
    assert (tally.scored, tally.unscored, tally.failed, tally.total) == (2, 1, 1, 4)


def test_input_errors_name_file_line_and_field() -> None:
    error = InputError("is not a number", path="runs.jsonl", line=7, field="cost")
    assert str(error) == "runs.jsonl:7: field 'cost': is not a number"
    assert isinstance(error, UserError)
    assert error.exit_status == 65


def test_unknown_names_suggest_the_nearest() -> None:
    assert "did you mean exact_match?" in str(UnknownName("scorer", "exat_match", ["exact_match", "regex"]))
    assert "known: exact_match, regex" in str(UnknownName("scorer", "zzz", ["regex", "exact_match"]))


def test_a_missing_extra_says_how_to_get_it() -> None:
    assert "pip install 'evenhand[parquet]'" in str(MissingExtra("pyarrow", "parquet", "reading Parquet"))


def test_ids_are_uuid_version_7_sort_by_time_and_never_repeat() -> None:
    ids = [new_id() for _ in range(20_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    one = uuid.UUID(ids[0])
    assert one.version == 7
    assert one.variant == uuid.RFC_4122
    assert abs((one.int >> 80) / 1000 - time.time()) < 60


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(9000, 1, 1), timezones=st.timezones()))  # noqa: DTZ001  bounds are naive by Hypothesis's rule
def test_instants_round_trip_to_the_millisecond(instant: datetime) -> None:
    back = parse_instant(format_instant(instant))
    assert 0 <= (instant - back).total_seconds() < 0.001


def test_instants_have_one_spelling() -> None:
    assert format_instant(datetime(2026, 2, 21, 22, tzinfo=UTC)) == "2026-02-21T22:00:00.000Z"
    assert parse_instant("2026-02-21T23:00:00+01:00") == datetime(2026, 2, 21, 22, tzinfo=UTC)
    assert parse_instant("2026-02-21T22:00:00").tzinfo is UTC


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00"])
def test_other_texts_are_not_instants(text: str) -> None:
    with pytest.raises(InputError):
        parse_instant(text)


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret("sk-planted")
    assert "planted" not in f"{secret} {secret!r} {[secret]} {vars.__doc__}"
    assert secret.reveal() == "sk-planted"
    with pytest.raises(TypeError):
        copy.deepcopy(secret)


@given(st.text())
def test_printable_text_has_no_control_characters(text: str) -> None:
    assert not any((ord(c) < 32 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 for c in printable(text))


def test_escape_sequences_go_whole() -> None:
    assert printable("a\x1b[31mred\x1b[0m\x1b]0;title\x07b") == "aredb"
    assert preview("one\ntwo  three", 9) == "one two …"
