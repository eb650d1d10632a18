"""Ties are exact: what is equal on paper is equal here, whatever binary floats make of it."""

import json
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ab_rows import row, write_rows

from evenhand.ab import analyze, load_records
from evenhand.ab.decimals import Decimals


def _rows(field: str, treatment: list[Any], control: list[Any]) -> list[dict[str, Any]]:
    return [
        row("t", arm, n, **{field: value})
        for arm, values in (("with_a", treatment), ("without_a", control))
        for n, value in enumerate(values, start=1)
    ]


def test_the_mean_of_two_durations_is_a_tie() -> None:
    """(0.1 + 0.2)/2 is 0.15000000000000002 in floats."""
    report = analyze(_rows("duration_seconds", [0.1, 0.2], [0.15, 0.15]), n_resamples=10)
    assert report.gates[1].standing == "equal"
    assert report.decision == "prefer with_a"
    assert report.arm_summaries[0].median_duration_seconds == 0.15
    delta = report.deltas["duration_delta_seconds"]
    assert (delta.mean, delta.median) == (0.0, 0.0)


def test_sums_of_fractional_tokens_are_a_tie() -> None:
    """0.1 + 0.2 tokens against 0.3: some logs count tokens in thousands."""
    rows = [row("t", "with_a", 1, input_tokens=0.1, output_tokens=0.2)]
    rows += [row("t", "without_a", 1, input_tokens=0.3, output_tokens=0)]
    report = analyze(rows, n_resamples=10)
    assert report.gates[2].standing == "equal"
    assert report.deltas["non_cache_token_delta"].mean == 0.0
    assert report.deltas["token_delta"].median == 0.0


def test_random_ties_are_ties() -> None:
    """c − d and c + d have the median c, for 1,000 decimals of up to three places; floats break one in four of these."""
    rng = random.Random(3)
    broken = 0
    for _ in range(1_000):
        centre, step = rng.randrange(1, 5_000), rng.randrange(1, 500)
        low, high = (Decimal(max(centre - step, 0)).scaleb(-3), Decimal(centre + step).scaleb(-3))
        middle = (low + high) / 2
        broken += (float(low) + float(high)) / 2 != float(middle)
        report = analyze(
            _rows("duration_seconds", [float(low), float(high)], [float(middle), float(middle)]),
            n_resamples=1,
        )
        assert report.gates[1].standing == "equal", (low, high)
        assert report.tests["duration_delta_seconds"].by_task_p_value == 1.0
    assert broken > 150  # the test would see floats at work


@pytest.mark.parametrize(
    ("written", "other", "standing"),
    [
        ("0.1000000000000000001", "0.1", "worse"),
        ("0.0999999999999999999", "0.1", "better"),
        ("0.10000000000000000000", "0.1", "equal"),
        ("0.30000000000000004", "0.3", "worse"),
        ("123456789.123456789123456789", "123456789.123456789123456788", "worse"),
        ("1e-1", "0.1", "equal"),
        ("1.00000000000000000e-1", "0.1", "equal"),
        ("100000000000000.25", "100000000000000.2500000000000001", "better"),
        ("0." + "0" * 390 + "1", "0", "worse"),
    ],
)
def test_the_text_of_a_number_counts(tmp_path: Path, written: str, other: str, standing: str) -> None:
    """Numbers with more digits than a float holds are read from their text."""
    path = tmp_path / "c.jsonl"
    lines = [
        json.dumps(row("t", arm, 1, duration_seconds=77.5)).replace("77.5", text)
        for arm, text in (("with_a", written), ("without_a", other))
    ]
    path.write_text("\n".join(lines))
    report = analyze(load_records(path), n_resamples=1)
    assert report.gates[1].standing == standing
    swapped = analyze(load_records(path), "without_a", "with_a", n_resamples=1)
    mirrored = {"worse": "better", "better": "worse", "equal": "equal"}
    assert swapped.gates[1].standing == mirrored[standing]


def test_long_numbers_stay_with_their_run(tmp_path: Path) -> None:
    """Lines are sorted, a bad one is skipped and blank ones are passed over: each text still finds its own run."""
    texts = {"b": "0.2000000000000000001", "a": "0.1", "c": "0.1999999999999999999"}
    lines = ["", "not JSON"]
    for task, text in texts.items():
        lines.append(json.dumps(row(task, "with_a", 1, duration_seconds=77.5)).replace("77.5", text))
        lines.append(json.dumps(row(task, "without_a", 1, duration_seconds=0.2)))
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(lines))
    table = load_records(path, skip_invalid=True)
    assert table.tasks == ("a", "b", "c")
    assert table.long["duration_seconds"] == {2: Decimal(texts["b"]), 4: Decimal(texts["c"])}
    assert analyze(table, n_resamples=1).gates[1].standing == "better"  # the middle one is 0.1999…, below 0.2


def test_texts_that_would_build_giant_numbers_are_taken_as_floats(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "c.jsonl", _rows("duration_seconds", [77.5], [1.0]))
    path.write_text(path.read_text().replace("77.5", "0.1" + "1" * 5_000))
    report = analyze(load_records(path), n_resamples=1)
    assert report.arm_summaries[0].median_duration_seconds == pytest.approx(1 / 9)
    path.write_text(path.read_text().replace("0.1" + "1" * 5_000, "1.11111111111111111111e-999999999"))
    assert analyze(load_records(path), n_resamples=1).arm_summaries[0].median_duration_seconds == 0.0


amounts = st.one_of(
    st.floats(0, 1e15, allow_subnormal=True),
    st.integers(0, 10**15).map(float),
    st.decimals(0, 1000, places=3).map(float),
    st.just(float("nan")),
)


def _fractions(values: list[float]) -> list[Fraction | None]:
    return [None if value != value else Fraction(Decimal(repr(value))) for value in values]


@given(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=8))
def test_columns_of_decimals_agree_with_fractions(pairs: list[tuple[float, float]]) -> None:
    """Sum, mean, median, plus, minus and grouped sums against the standard library's fractions."""
    left, right = [list(side) for side in zip(*pairs, strict=True)]
    column, other = Decimals.from_floats(np.array(left)), Decimals.from_floats(np.array(right))
    np.testing.assert_array_equal(column.floats(), np.array(left) + 0.0)
    for found, sign in ((column + other, 1), (column - other, -1)):
        expected = [
            None if a is None or b is None else a + sign * b
            for a, b in zip(_fractions(left), _fractions(right), strict=True)
        ]
        known = sorted(value for value in expected if value is not None)
        assert found.sum() == sum(known)
        assert found.mean() == (sum(known) / len(known) if known else None)
        middle = len(known) // 2
        assert found.median() == ((known[middle] + known[~middle]) / 2 if known else None)
        floats = [float("nan") if value is None else float(value) for value in expected]
        np.testing.assert_array_equal(found.floats(), np.array(floats))
        only = found.known_only()
        groups = np.arange(len(only)) % 2
        sums = [float(sum(known_in, Fraction(0))) for known_in in _halves(expected)]
        np.testing.assert_array_equal(only.sums(groups, 2), np.array(sums))


def _halves(values: list[Fraction | None]) -> tuple[list[Fraction], list[Fraction]]:
    known = [value for value in values if value is not None]
    return known[::2], known[1::2]


def test_sums_beyond_64_bits_are_exact() -> None:
    """10¹⁵ with three places is 10¹⁸ units: one fits into 64 bits, ten do not, in a sum, in groups and in a chain."""
    column = Decimals.from_floats(np.array([1e15] * 10 + [0.001]))
    assert column.units.dtype == np.int64
    assert column.sum() == 10**16 + Fraction(1, 1000)
    assert column.sums(np.array([0] * 10 + [1]), 2).tolist() == [1e16, 0.001]
    chained = column
    for _ in range(5):
        chained = chained + chained
    assert chained.sum() == 32 * column.sum()
    assert (chained - chained).sum() == 0
    assert chained.median() == 32 * 10**15
    tiny = Decimals.from_floats(np.array([1e-20, 1e15]))
    assert tiny.sum() == 10**15 + Fraction(1, 10**20)
    assert tiny.floats().tolist() == [1e-20, 1e15]


def test_columns_of_nothing() -> None:
    empty = Decimals.from_floats(np.zeros(0))
    assert empty.sum() == 0
    assert empty.mean() is None
    assert empty.median() is None
    assert len(empty) == 0
    assert (empty + empty).floats().tolist() == []
    missing = Decimals.from_floats(np.array([np.nan, np.nan]))
    assert (missing.mean(), missing.median()) == (None, None)
    assert missing.known_only().sums(np.zeros(0, np.int64), 0).tolist() == []
