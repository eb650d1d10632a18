"""Case 58: the connection to PostgreSQL is lost while a transaction is committed, and nobody knows whether it was."""

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from tests.broken_wire import BrokenWire, broken_wire
from tests.postgres import PostgresServer
from tests.service import ADMIN, running_service
from tests.service_harness import Client, Reply

from evenhand.core.ids import new_id
from evenhand.store.postgresql import WRITER_LOCK

pytestmark = pytest.mark.xdist_group("postgresql")


@pytest.fixture
def name(postgres_server: PostgresServer) -> Iterator[str]:
    database = postgres_server.create_database()
    yield database
    postgres_server.drop_database(database)


@pytest.fixture
def wire(postgres_server: PostgresServer) -> Iterator[BrokenWire]:
    with broken_wire(postgres_server.port) as found:
        yield found


def through(wire: BrokenWire, name: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{wire.port}/{name}"


def test_with_a_key_the_server_finds_out_itself_and_stores_once(wire: BrokenWire, name: str) -> None:
    with running_service(through(wire, name)) as service:
        client = Client(service.url, ADMIN)
        dataset, _ = client.dataset()
        body, key = {"input": new_id()}, new_id()
        wire.arm()
        first = client.post(f"/v1/datasets/{dataset}/items", body, Idempotency_Key=key)
        assert wire.broken == 1
        assert first.status == 201, first.raw
        again = client.post(f"/v1/datasets/{dataset}/items", body, Idempotency_Key=key)
        assert (again.status, again.raw, again.headers["idempotent-replayed"]) == (201, first.raw, "true")
        assert client.get(f"/v1/datasets/{dataset}").body["item_count"] == 1
        client.close()


def test_without_a_key_the_answer_is_503_and_the_next_write_works(wire: BrokenWire, name: str) -> None:
    with running_service(through(wire, name)) as service:
        client = Client(service.url, ADMIN)
        dataset, _ = client.dataset()
        wire.arm()
        reply = client.post(f"/v1/datasets/{dataset}/items", {"input": 1})
        assert wire.broken == 1
        assert (reply.status, reply.code) == (503, "UNAVAILABLE")
        assert int(reply.headers["retry-after"]) > 0
        assert client.post(f"/v1/datasets/{dataset}/items", {"input": 2}).status == 201
        # the first one was committed before the wire broke: 503 means "unknown", not "no"
        got = client.get(f"/v1/datasets/{dataset}").body
        assert (got["item_count"], got["version"]) == (2, 3)
        client.close()


def test_scores_with_keys_get_their_answers_and_none_is_there_twice(wire: BrokenWire, name: str) -> None:
    with running_service(through(wire, name)) as service:
        client = Client(service.url, ADMIN)
        run = client.run("a")
        wire.arm()
        score = {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 0.5}
        replies = [client.post("/v1/scores", score, Idempotency_Key=new_id()) for _ in range(5)]
        assert {reply.status for reply in replies} == {201}
        assert wire.broken == 1
        ids = [reply.body["id"] for reply in replies]
        stored = [row["id"] for row in client.pages("/v1/scores", target_id=run, target_type="run")]
        assert sorted(stored) == sorted(ids)
        client.close()


def test_a_backend_that_is_ended_before_the_commit_is_asked_again(
    postgres_server: PostgresServer, name: str
) -> None:
    with running_service(postgres_server.url(name)) as service:
        client = Client(service.url, ADMIN)
        dataset, _ = client.dataset()
        with psycopg.connect(postgres_server.url(name), autocommit=True) as other:
            # The writer waits for its turn inside its transaction; there it is ended.
            other.execute("SELECT pg_advisory_lock(%s)", [WRITER_LOCK])
            end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"

            def ended() -> bool:
                return other.execute(end, [name]).fetchone() is not None

            replies: list[Reply] = []

            def write() -> None:
                own = client.again()
                replies.append(
                    own.post(f"/v1/datasets/{dataset}/items", {"input": 1}, Idempotency_Key=new_id())
                )
                own.close()

            thread = threading.Thread(target=write)
            thread.start()
            deadline = time.monotonic() + 60
            while not ended():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            other.execute("SELECT pg_advisory_unlock(%s)", [WRITER_LOCK])
            thread.join(timeout=300)
        assert [reply.status for reply in replies] == [201]
        assert client.get(f"/v1/datasets/{dataset}").body["item_count"] == 1
        client.close()
