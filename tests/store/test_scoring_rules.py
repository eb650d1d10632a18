"""Which spans an online rule scores: pure functions of the rule and the span."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.objects.jobs import RuleFilter
from evenhand.core.spans import SpanRecord
from evenhand.store.scoring_rules import matches, sampled


def span(**more: object) -> SpanRecord:
    fields: dict[str, object] = {"id": "s", "trace_id": "t", "name": "chat", "start_us": 0, **more}
    return SpanRecord(**fields)  # type: ignore[arg-type]  # the tests give the right types


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_smaller_sample_is_part_of_a_larger_one(trace_id: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert not sampled(trace_id, low) or sampled(trace_id, high)
    assert sampled(trace_id, 1.0)
    assert not sampled(trace_id, 0.0)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_the_share_of_traces_is_the_rate(rate: float) -> None:
    n = 20_000
    hits = sum(sampled(f"trace-{number}", rate) for number in range(n))
    # a binomial count; six standard deviations are missed once in a thousand million
    assert abs(hits - n * rate) < 6 * math.sqrt(n * rate * (1 - rate))


@pytest.mark.parametrize(
    ("narrow", "expected"),
    [
        (RuleFilter(), True),
        (RuleFilter(name="chat"), True),
        (RuleFilter(name="Chat"), False),
        (RuleFilter(model="m"), True),
        (RuleFilter(model="n"), False),
        (RuleFilter(has_error=False), True),
        (RuleFilter(has_error=True), False),
        (RuleFilter(is_root=True), True),
        (RuleFilter(is_root=False), False),
        (RuleFilter(min_duration_ms=10), True),
        (RuleFilter(min_duration_ms=10.5), False),
        (RuleFilter(metadata={"a": 1}), True),
        (RuleFilter(metadata={"a": True}), False),
        (RuleFilter(metadata={"a": "1"}), False),
        (RuleFilter(metadata={"none": None}), True),
        (RuleFilter(metadata={"missing": None}), False),
        (RuleFilter(name="chat", model="n"), False),
    ],
)
def test_every_field_that_is_given_must_match(narrow: RuleFilter, expected: bool) -> None:
    one = span(model="m", duration_ms=10.0, metadata='{"a": 1, "none": null}')
    assert matches(narrow, one) is expected
