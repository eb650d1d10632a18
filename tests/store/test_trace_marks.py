"""Filters find what a look at every trace finds, whichever stretch it is in, on both databases."""

import json
import random
from typing import Any

from tests.service import ADMIN, ServiceUnderTest
from tests.service_harness import Client, span

from evenhand.store.checking import check
from evenhand.store.connection import Connection
from evenhand.store.trace_marks import LENGTH, power_of
from evenhand.store.traces import TraceFilter, list_traces

NAMES, MODELS = ("a", "b", "rare"), ("m", "n")


def one(source: random.Random, number: int) -> dict[str, Any]:
    name = "rare" if number == 7 else source.choice("ab")
    return span(
        name=name,
        model=source.choice(MODELS),
        metadata={"k": source.randrange(3), "id": number},
        duration_ms=source.choice([0.2, 3, 500, 70_000]),
    )


def asked(source: random.Random) -> TraceFilter:
    metadata = source.choice([(), (("k", "1"),), (("k", "2"), ("id", "9")), (("k", "nothing"),)])
    return TraceFilter(
        name=source.choice([None, *NAMES, "nobody"]),
        model=source.choice([None, *MODELS]),
        min_duration_ms=source.choice([None, 0.0, 2.5, 499.0, 501.0, 1e9]),
        metadata=metadata,
    )


def apart(connection: Connection, moved: int) -> None:
    """Put the traces into stretches of their own: as if hours lay between them. Some came before there were marks."""
    keys = [row[0] for row in connection.all("SELECT trace_key FROM traces ORDER BY trace_key")]
    for number, key in enumerate(keys):
        fresh = f"{0x01800000 + number // 3:08x}-{number % 3}{key[10:]}"
        for table in ("traces", "spans"):
            connection.run(f"UPDATE {table} SET trace_key = ? WHERE trace_key = ?", fresh, key)
    marks = connection.all("SELECT project_id, mark FROM trace_marks")
    connection.run("DELETE FROM trace_marks")
    rows = connection.all("SELECT trace_key, project_id FROM traces ORDER BY trace_key")
    for key, project_id in rows[moved:]:
        for _, mark in marks:
            connection.run(
                "INSERT INTO trace_marks (project_id, mark, stretch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                project_id,
                mark,
                key[:LENGTH],
            )
    connection.run("UPDATE trace_marks_start SET last_key = ?", rows[moved - 1][0] if moved else "")


def pages(connection: Connection, narrow: TraceFilter, limit: int) -> list[str]:
    found: list[str] = []
    before: str | None = None
    while True:
        rows = list_traces(connection, project_id="default", narrow=narrow, before=before, limit=limit + 1)
        found += [row.id for _, row in rows[:limit]]
        if len(rows) <= limit:
            return found
        before = rows[limit - 1][0]


def plain(connection: Connection, narrow: TraceFilter) -> list[str]:
    """Every trace, looked at."""
    found = []
    for _, row in list_traces(
        connection, project_id="default", narrow=TraceFilter(), before=None, limit=1_000
    ):
        entries = {name: str(value) for name, value in json.loads(bytes(row.metadata)).items()}
        if (
            narrow.name in (None, row.name)
            and (narrow.model is None or narrow.model in row.models)
            and (narrow.min_duration_ms is None or (row.duration_ms or 0) >= narrow.min_duration_ms)
            and all(entries.get(name) == text for name, text in narrow.metadata)
        ):
            found.append(row.id)
    return found


def test_filters_find_what_a_look_at_every_trace_finds(service: ServiceUnderTest) -> None:
    source = random.Random(3)
    client = Client(service.url, ADMIN)
    for number in range(40):
        assert client.spans(one(source, number)).status == 201
    client.close()
    database = service.database
    assert database.read_now(lambda c: list(check(c))) == []
    for moved in (None, 0, 15, 40):
        if moved is not None:
            database.write_now(lambda c, moved=moved: apart(c, moved))  # type: ignore[misc]
        for _ in range(60):
            narrow, limit = asked(source), source.choice([1, 2, 7, 50])
            expected = database.read_now(lambda c, n=narrow: plain(c, n))  # type: ignore[misc]
            assert database.read_now(lambda c, n=narrow, m=limit: pages(c, n, m)) == expected, narrow  # type: ignore[misc]


def test_a_missing_mark_is_found(service: ServiceUnderTest) -> None:
    client = Client(service.url, ADMIN)
    client.trace(name="n")
    service.database.write_now(lambda c: c.run("DELETE FROM trace_marks"))
    [fault] = service.database.read_now(lambda c: list(check(c)))
    assert "lack a mark that filters look for" in fault
    trace_id, _ = client.trace(name="n")
    client.close()
    assert trace_id


def test_marks_go_with_the_last_trace_of_their_stretch(service: ServiceUnderTest) -> None:
    client = Client(service.url, ADMIN)
    for _ in range(3):
        trace_id, _ = client.trace(name="n", metadata={"k": 1})
        client.delete(f"/v1/traces/{trace_id}")
    client.close()
    assert service.database.read_now(lambda c: c.all("SELECT * FROM trace_marks")) == []


def test_powers_of_two() -> None:
    assert [power_of(ms) for ms in (0, 0.5, 1, 1.9, 2, 3.99, 4, 1024, 1e30)] == [0, 0, 0, 0, 1, 1, 2, 10, 50]
