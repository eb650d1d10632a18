"""The kept totals of traces are those of a recount after late spans and deletes, on both databases."""

import random
from datetime import timedelta

from tests.service import ADMIN, ServiceUnderTest
from tests.service_harness import Client, span

from evenhand.core.spans import MAX_COST_PICO, PICO, SpanRecord, microseconds
from evenhand.core.timestamps import as_of, now
from evenhand.store.arrivals import prepare
from evenhand.store.checking import check
from evenhand.store.connection import Connection
from evenhand.store.database import Database
from evenhand.store.ingest import Sender, store_spans
from evenhand.store.trace_totals import STRETCH, TraceTotals, totals_between, totals_of
from evenhand.store.traces import key_from


def some_span(source: random.Random, trace: int, number: int) -> SpanRecord:
    return SpanRecord(
        trace_id=f"t{trace}",
        id=f"{number}",
        # The root may come first, last or never.
        parent_span_id=None if number == trace % 4 else f"{trace % 4}",
        name="n",
        start_us=0,
        duration_ms=source.choice([None, 0.1, 1e12]),
        error=source.choice([None, None, '{"message": "x"}']),
        tokens_input=source.choice([None, 7]),
        cost_pico=source.choice([None, 0, PICO // 3, MAX_COST_PICO]),
        is_total=source.choice([0, 0, 1]),
    )


def store_late(database: Database, seed: int) -> None:
    """Forty traces over several minutes, their spans in three batches with minutes between them."""
    source = random.Random(seed)
    begin = now() - timedelta(hours=1)
    spans = [some_span(source, trace, number) for trace in range(40) for number in range(3)]
    source.shuffle(spans)
    for part in range(12):
        moment = begin + timedelta(seconds=50 * part)
        batch = prepare("default", spans[part::12])

        def work(connection: Connection, batch=batch, moment=moment) -> None:  # type: ignore[no-untyped-def]
            with as_of(moment):
                store_spans(connection, Sender(None, True), batch, resend=True)

        database.write_now(work)


def recount(connection: Connection, start: str, end: str) -> TraceTotals:
    rows = connection.all(
        "SELECT trace_key, span_count, error_count, root_duration_ms, tokens, cost_pico, cost_known, cost_unknown"
        " FROM traces WHERE project_id = 'default'"
    )
    total = TraceTotals()
    for row in rows:
        if start <= row[0] < end:
            total = total.plus(totals_of(row))
    return total


def same(one: TraceTotals, other: TraceTotals) -> bool:
    # Dollars and picodollars mean their sum.
    plain = [
        found._replace(cost_usd=found.total_pico, cost_pico=0, duration_ms=0.0) for found in (one, other)
    ]
    return plain[0] == plain[1] and abs(one.duration_ms - other.duration_ms) <= 1e-6 * other.duration_ms


def test_any_window_has_the_totals_of_a_recount(service: ServiceUnderTest) -> None:
    database = service.database
    store_late(database, 1)
    assert database.read_now(lambda c: list(check(c))) == []
    stretches = database.read_now(lambda c: c.all("SELECT stretch FROM trace_totals"))
    assert len(stretches) > 3  # windows end inside of some and hold others whole
    middle = microseconds(now() - timedelta(hours=1)) // 1000
    source = random.Random(2)
    for _ in range(100):
        moments = [middle + source.randrange(-20_000, 700_000) for _ in range(2)]
        if source.random() < 0.3:
            moments[0] = moments[0] // 65_536 * 65_536  # where a stretch begins
        start, end = sorted(map(key_from, moments))
        found, counted = database.read_now(
            lambda c, s=start, e=end: (totals_between(c, "default", s, e), recount(c, s, e))  # type: ignore[misc]
        )
        assert same(found, counted), (start, end, found, counted)
    everything = database.read_now(lambda c: totals_between(c, "default", key_from(0)))
    assert everything.trace_count == 40
    assert everything.span_count == 120


def test_deleted_traces_are_taken_out_again(service: ServiceUnderTest) -> None:
    store_late(service.database, 3)
    client = Client(service.url, ADMIN)
    for trace in range(40):
        assert client.delete(f"/v1/traces/t{trace}").status == 200
        if trace in (5, 20):
            assert service.database.read_now(lambda c: list(check(c))) == []
    client.close()
    assert service.database.read_now(lambda c: c.all("SELECT * FROM trace_totals")) == []


def test_wrong_totals_and_lost_blocks_are_found(service: ServiceUnderTest) -> None:
    client = Client(service.url, ADMIN)
    client.spans(span(tokens_input=3), span())
    client.close()
    database = service.database
    database.write_now(lambda c: c.run("UPDATE trace_totals SET tokens = 4, duration_ms = 5"))
    database.write_now(lambda c: c.run("UPDATE span_blocks SET span_count = 1"))
    totals, block = database.read_now(lambda c: list(check(c)))
    assert "duration_ms is 5.0, counted 0.0 (and 1 more like it)" in totals
    assert block == "block 0: span_count is 1, counted 2"
    database.write_now(lambda c: c.run("DELETE FROM span_blocks"))
    assert "2 spans are in block 0, which is not listed" in database.read_now(lambda c: list(check(c)))


def test_a_stretch_is_about_a_minute() -> None:
    # Eight hexadecimal digits of a number of milliseconds with twelve: 16**4 milliseconds.
    first, later = key_from(65_536 * 5), key_from(65_536 * 6)
    assert first[:STRETCH] == "00000005"
    assert later[:STRETCH] == "00000006"
    assert key_from(65_536 * 6 - 1)[:STRETCH] == "00000005"
