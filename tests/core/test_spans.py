"""The shape of a trace."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.spans import cycle_members, instant, microseconds


def test_chains_that_end_have_no_cycle() -> None:
    assert cycle_members({"a": None, "b": "a", "c": "b", "d": "not-seen"}) == set()


def test_a_span_that_is_its_own_parent_is_a_cycle() -> None:
    assert cycle_members({"a": "a"}) == {"a"}


def test_spans_below_a_cycle_are_not_in_it() -> None:
    assert cycle_members({"below": "a", "a": "b", "b": "c", "c": "a", "other": None}) == {"a", "b", "c"}


def test_a_chain_of_100000_spans_is_no_problem() -> None:
    parents: dict[str, str | None] = {str(i): str(i + 1) for i in range(100_000)}
    assert cycle_members(parents) == set()
    assert len(cycle_members({**parents, "100000": "0"})) == 100_001


def _own_ancestors(parents: dict[int, int]) -> set[str]:
    # The plain definition: a span that meets itself within as many steps as there are spans.
    found = set()
    for start in parents:
        node = start
        for _ in range(len(parents)):
            if node not in parents:
                break
            node = parents[node]
            if node == start:
                found.add(str(start))
    return found


@given(st.dictionaries(st.integers(0, 12), st.integers(0, 14)))
def test_it_agrees_with_the_plain_definition(parents: dict[int, int]) -> None:
    named: dict[str, str | None] = {str(child): str(parent) for child, parent in parents.items()}
    assert cycle_members(named) == _own_ancestors(parents)


@given(st.datetimes(timezones=st.just(UTC)))
def test_microseconds_are_exact_over_the_whole_range_of_dates(moment: datetime) -> None:
    assert instant(microseconds(moment)) == moment
