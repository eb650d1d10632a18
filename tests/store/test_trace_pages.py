"""What the pages of traces ask the store, on both databases."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from tests.service import ADMIN, ServiceUnderTest
from tests.service_harness import Client, span

from evenhand.core.errors import Refusal
from evenhand.core.spans import microseconds
from evenhand.core.timestamps import as_of, now
from evenhand.server.demo import fill
from evenhand.store.trace_tree import list_span_rows, main_models
from evenhand.store.traces import (
    TraceFilter,
    get_span,
    get_trace_row,
    key_from,
    list_traces,
    newer_trace,
    root_values,
)
from evenhand.store.traffic import count_traffic


@pytest.fixture
def client(service: ServiceUnderTest) -> Client:
    made = Client(service.url, ADMIN, "p")
    made.made("/v1/projects", {"id": "p", "name": "p"})
    return made


def test_spans_without_their_texts_and_one_with_them(service: ServiceUnderTest, client: Client) -> None:
    root = span(id="r", trace_id="t", name="root", input="in", tokens_input=1, tokens_output=2, model="m")
    child = span(
        id="c", trace_id="t", parent_span_id="r", name="child", model="k", error={"message": "x"},
        start_time="2026-02-21T22:00:01.000Z", end_time="2026-02-21T22:00:02.500Z",
        scores=[{"scorer_name": "s", "value": 0.5}],
    )  # fmt: skip
    client.spans(root, child)
    key, row = service.database.read_now(lambda c: get_trace_row(c, "t", scope="p", project_id="p"))
    assert (row.span_count, row.error_count) == (2, 1)
    first, second = service.database.read_now(lambda c: list_span_rows(c, key))
    assert (first.id, first.parent_span_id, first.tokens, first.failed) == ("r", None, 3, False)
    assert (second.id, second.parent_span_id, second.duration_ms, second.failed) == ("c", "r", 1500.0, True)
    found = service.database.read_now(lambda c: get_span(c, key, "t", "c", root_id="r"))
    assert [score.value for score in found.scores] == [0.5]
    assert service.database.read_now(lambda c: main_models(c, [key])) == {key: "m"}
    assert bytes(service.database.read_now(lambda c: root_values(c, [key]))[key].input or b"") == b'"in"'
    with pytest.raises(Refusal, match="no span"):
        service.database.read_now(lambda c: get_span(c, key, "t", "nobody", root_id="r"))
    with pytest.raises(Refusal, match="no trace"):  # another project's
        service.database.read_now(lambda c: get_trace_row(c, "t", scope="q"))
    client.close()


def test_newer_and_older_are_the_neighbours_of_the_list(service: ServiceUnderTest, client: Client) -> None:
    for number in range(6):
        client.spans(span(trace_id=f"t{number}", **({"error": {"message": "x"}} if number % 2 else {})))
    narrow = TraceFilter(has_error=True)
    rows = service.database.read_now(
        lambda c: list_traces(c, project_id="p", narrow=narrow, before=None, limit=10)
    )
    assert [row.id for _, row in rows] == ["t5", "t3", "t1"]
    for (_, newer), (key, _) in pairwise(rows):
        found = service.database.read_now(
            lambda c, key=key: newer_trace(c, project_id="p", narrow=narrow, after=key)  # type: ignore[misc]
        )
        assert found == newer.id
    newest = rows[0][0]
    assert (
        service.database.read_now(lambda c: newer_trace(c, project_id="p", narrow=narrow, after=newest))
        is None
    )
    client.close()


def test_traffic_by_day_is_the_count_of_the_list(service: ServiceUnderTest) -> None:
    """The demonstration is stored with the dates of four weeks, on both databases."""
    service.database.write_now(fill)
    end = now() + timedelta(minutes=1)
    moments = [end - timedelta(days=ago) for ago in range(30, -1, -3)]
    keys = [key_from(microseconds(one) // 1000) for one in moments]
    found = service.database.read_now(lambda c: count_traffic(c, "demo", keys))
    for (start, until), traffic in zip(pairwise(keys), found, strict=True):
        narrow = TraceFilter(after=start, before=until)
        rows = service.database.read_now(
            lambda c, narrow=narrow: list_traces(c, project_id="demo", narrow=narrow, before=None, limit=1000)  # type: ignore[misc]
        )
        assert (traffic.count, traffic.error_count) == (
            len(rows),
            sum(row.error_count > 0 for _, row in rows),
        )
    assert sum(one.count for one in found) >= 400
    assert sum(one.error_count for one in found) >= 10


def test_as_of_dates_what_is_made_within_it() -> None:
    from evenhand.core.ids import new_id

    past = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    before = new_id()
    with as_of(past):
        assert now() == past
        ids = [new_id() for _ in range(5_000)]
    assert ids == sorted(set(ids))
    assert {one[:13] for one in ids[:4_000]} == {key_from(microseconds(past) // 1000)}
    assert before < new_id()
    assert abs((datetime.now(UTC) - now()).total_seconds()) < 60
