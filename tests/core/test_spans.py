"""The shape of a trace."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.spans import find_cycle, instant, microseconds


def test_chains_that_end_have_no_cycle() -> None:
    assert find_cycle({"a": None, "b": "a", "c": "b", "d": "not-seen"}, ["c", "d", "b"]) is None


def test_a_span_that_is_its_own_parent_is_a_cycle() -> None:
    assert find_cycle({"a": "a"}, ["a"]) == "a"


def test_a_longer_cycle_is_found_from_below_it_too() -> None:
    parents = {"a": "b", "b": "c", "c": "a", "below": "a"}
    assert find_cycle(parents, ["b"]) == "b"
    assert find_cycle(parents, ["below"]) in parents


def test_a_chain_of_100000_spans_is_no_problem() -> None:
    parents = {str(i): str(i + 1) for i in range(100_000)}
    assert find_cycle(parents, parents) is None
    assert find_cycle({**parents, "100000": "0"}, ["5"]) is not None


def _has_cycle(parents: dict[int, int]) -> bool:
    # The plain definition: some span meets itself within as many steps as there are spans.
    for start in parents:
        node = start
        for _ in range(len(parents)):
            if node not in parents:
                break
            node = parents[node]
            if node == start:
                return True
    return False


@given(st.dictionaries(st.integers(0, 12), st.integers(0, 14)))
def test_it_agrees_with_the_plain_definition(parents: dict[int, int]) -> None:
    named: dict[str, str | None] = {str(child): str(parent) for child, parent in parents.items()}
    assert (find_cycle(named, named) is not None) == _has_cycle(parents)


@given(st.datetimes(timezones=st.just(UTC)))
def test_microseconds_are_exact_over_the_whole_range_of_dates(moment: datetime) -> None:
    assert instant(microseconds(moment)) == moment
