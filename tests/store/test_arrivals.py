"""Batches of spans made ready for the writer, and rows that go in many at once, on both databases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import StoreError
from evenhand.core.spans import SpanRecord, cycle_members
from evenhand.store.arrivals import SPAN_COLUMNS, Batch, prepare
from evenhand.store.connection import Connection
from evenhand.store.database import open_database
from evenhand.store.projects import create_project
from evenhand.store.spans import check, look, write
from evenhand.store.sqlite import MAX_ROWS
from evenhand.store.traces import get_trace

IDS = st.text(alphabet="abc", min_size=1, max_size=1)
SPANS = st.lists(
    st.builds(
        SpanRecord,
        id=IDS,
        trace_id=st.sampled_from(["t", "u"]),
        parent_span_id=IDS | st.none(),
        name=st.just("n"),
        start_us=st.just(0),
        tokens_input=st.integers(0, 9) | st.none(),
        model=st.sampled_from(["m", "o", None]),
        error=st.sampled_from(["{}", None]),
    ),
    max_size=12,
)


def numbered(count: int) -> list[SpanRecord]:
    """A trace whose first span is the root of the others."""
    return [
        SpanRecord(
            id=f"s{n}", trace_id="t", parent_span_id="s0" if n else None, name=f"n{n}", start_us=n, clock_skew=n % 2
        )
        for n in range(count)
    ]  # fmt: skip


def store(connection: Connection, batch: Batch) -> dict[str, str]:
    return write(connection, check(connection, batch, look(connection, batch), resend=False)).keys


@given(SPANS)
def test_what_is_known_of_a_batch_is_what_its_spans_say(spans: list[SpanRecord]) -> None:
    batch = prepare("p", spans)
    assert [s for arriving in batch.by_trace.values() for s in arriving.spans] == sorted(
        spans, key=lambda s: list(batch.by_trace).index(s.trace_id)
    )
    for trace_id, arriving in batch.by_trace.items():
        own = [s for s in spans if s.trace_id == trace_id]
        assert arriving.counts == (
            len(own),
            sum(s.error is not None for s in own),
            sum(s.tokens_input or 0 for s in own),
        )
        assert list(arriving.models) == list(dict.fromkeys(s.model for s in own if s.model))
        last = {s.id: s.parent_span_id for s in own}
        assert arriving.root_count == sum(parent is None for parent in last.values())
        assert arriving.missing_parents == {parent for parent in last.values() if parent is not None} - set(
            last
        )
        first = next((s.id for s in own if s.parent_span_id is None), None)
        assert (arriving.root and arriving.root.root_span_id) == first
        assert {s for t, s in batch.cyclic if t == trace_id} == cycle_members(last)
    assert len(batch.values) == len(spans) * len(SPAN_COLUMNS)


COUNTS = [1, 2, 3, 5, MAX_ROWS - 1, MAX_ROWS, MAX_ROWS + 1, 2 * MAX_ROWS + 3]


@pytest.mark.parametrize("count", COUNTS)
def test_any_number_of_rows_is_inserted_or_updated_by_one_call(service_url: str, count: int) -> None:
    database = open_database(service_url)
    upsert = """INSERT INTO projects (id, name, created_at) VALUES (?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name"""

    def work(connection: Connection) -> None:
        for name in ("first", "second"):
            connection.run_many(upsert, [(f"p{n}", name, "2026-01-01T00:00:00.000Z") for n in range(count)])
        connection.run_many("DELETE FROM projects WHERE id = ?", [("p0",)])

    try:
        database.write_now(work)
        rows = database.read_now(lambda c: c.all("SELECT id, name FROM projects"))
        assert sorted(rows) == sorted((f"p{n}", "second") for n in range(1, count))
    finally:
        database.close()


@pytest.mark.parametrize("count", COUNTS)
def test_any_number_of_rows_goes_in_whole(service_url: str, count: int) -> None:
    """The statements are made for powers of two: what fills them up must not get in."""
    database = open_database(service_url)

    def work(connection: Connection) -> None:
        create_project(connection, project_id="p", name="p")
        store(connection, prepare("p", numbered(count)))

    try:
        database.write_now(work)
        trace = database.read_now(lambda c: get_trace(c, "t", scope=None))
        rows = database.read_now(lambda c: c.one("SELECT count(*) FROM spans"))
    finally:
        database.close()
    assert rows == (count,)
    assert [(s.id, s.name, s.clock_skew) for s in trace.spans] == [
        (f"s{n}", f"n{n}", bool(n % 2)) for n in range(count)
    ]
    assert trace.span_count == count


def test_a_batch_can_be_written_again_after_a_rollback(service_url: str) -> None:
    """The writer tries again after a conflict with another server: the batch is the same object then."""
    database = open_database(service_url)
    batch = prepare("p", numbered(3))
    keys: list[dict[str, str]] = []

    class Undone(StoreError):
        pass

    def work(connection: Connection) -> None:
        create_project(connection, project_id="p", name="p")
        keys.append(store(connection, batch))
        if len(keys) == 1:
            raise Undone("once")

    try:
        with pytest.raises(Undone):
            database.write_now(work)
        database.write_now(work)
        trace = database.read_now(lambda c: get_trace(c, "t", scope=None))
        rows = database.read_now(lambda c: c.all("SELECT DISTINCT trace_key FROM spans"))
    finally:
        database.close()
    assert keys[0] != keys[1]
    assert rows == [(keys[1]["t"],)]
    assert len(trace.spans) == 3
