"""Spans are found by their ids in whichever block they are, on both databases."""

import pytest
from tests.service import ADMIN, ServiceUnderTest
from tests.service_harness import Client, span

from evenhand.store.checking import check
from evenhand.store.connection import Connection
from evenhand.store.span_blocks import BLOCK


@pytest.fixture
def client(service: ServiceUnderTest):  # type: ignore[no-untyped-def]
    made = Client(service.url, ADMIN)
    yield made
    made.close()


def begin_block(connection: Connection) -> None:
    """As if the newest block had been filled."""
    connection.run("UPDATE span_blocks SET span_count = ?", BLOCK)


def blocks(connection: Connection) -> list[tuple[int, int]]:
    return [
        (row[0], row[1]) for row in connection.all("SELECT block, COUNT(*) FROM spans GROUP BY 1 ORDER BY 1")
    ]


def score(client: Client, span_id: str, **more: str):  # type: ignore[no-untyped-def]
    body = {"target_type": "span", "target_id": span_id, "scorer_name": "s", "value": 1} | more
    return client.post("/v1/scores", body)


def test_a_full_block_is_followed_by_the_next(service: ServiceUnderTest, client: Client) -> None:
    for number in range(3):
        client.spans(span(id=f"a{number}"), span(id=f"b{number}"))
        service.database.write_now(begin_block)
    client.spans(span(id="last"))
    assert service.database.read_now(blocks) == [(0, 2), (1, 2), (2, 2), (3, 1)]
    for span_id in ("a0", "b0", "a1", "b2", "last"):
        assert score(client, span_id).status == 201
    assert score(client, "nobody").status == 404
    assert service.database.read_now(lambda c: list(check(c))) == []


def test_an_id_in_two_blocks_is_ambiguous(service: ServiceUnderTest, client: Client) -> None:
    client.spans(span(trace_id="one", id="twin"))
    service.database.write_now(begin_block)
    client.spans(span(trace_id="two", id="twin"))
    assert score(client, "twin").code == "AMBIGUOUS_TARGET"
    assert score(client, "twin", trace_id="one").status == 201


def test_a_parent_of_an_earlier_block_in_another_trace_is_refused(
    service: ServiceUnderTest, client: Client
) -> None:
    client.spans(span(trace_id="one", id="root"))
    service.database.write_now(begin_block)
    refused = client.post("/v1/traces/ingest", {"spans": [span(trace_id="two", parent_span_id="root")]})
    assert refused.code == "INVALID_SPAN_PARENT"
    assert client.spans(span(trace_id="one", parent_span_id="root")).status == 201


def test_a_block_goes_with_its_last_span_but_the_newest_counts_on(
    service: ServiceUnderTest, client: Client
) -> None:
    def listed() -> list[int]:
        rows = service.database.read_now(lambda c: c.all("SELECT number FROM span_blocks ORDER BY number"))
        return [row[0] for row in rows]

    client.spans(span(trace_id="one"))
    client.spans(span(trace_id="two"))
    service.database.write_now(begin_block)
    client.spans(span(trace_id="three"))
    client.delete("/v1/traces/one")
    assert listed() == [0, 1]
    client.delete("/v1/traces/two")
    client.delete("/v1/traces/three")
    assert listed() == [1]
    client.spans(span(trace_id="four"))
    assert service.database.read_now(blocks) == [(1, 1)]
