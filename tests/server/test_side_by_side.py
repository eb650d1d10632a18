"""Several servers over one PostgreSQL database."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.ab_suites import wait_for
from tests.postgres import PostgresServer
from tests.server.test_experiments import Bench
from tests.service import Reply, ServiceUnderTest, running_service
from tests.service_harness import span

from evenhand.store.checking import check
from evenhand.store.database import open_database
from evenhand.store.jobs import open_job_count
from evenhand.store.migrations import known_migrations


@contextmanager
def two_servers(url: str) -> Iterator[Callable[[int], ServiceUnderTest]]:
    """The server for a caller's number."""
    with running_service(url) as first, running_service(url) as second:
        yield lambda n: (first, second)[n % 2]


@pytest.mark.xdist_group("postgresql")
def test_two_servers_take_turns_and_lose_nothing(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    with postgres_server.database(postgres_template) as url, two_servers(url) as server:
        bench = Bench(server(0), ["a", "b"])
        experiment = bench.experiment()
        run = bench.run(experiment, 0).body["run_ids"][0]

        def send(n: int) -> tuple[int, str]:
            key = {"Idempotency-Key": f"key-{n // 4}"}
            body = {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 0.1}
            reply = server(n).post("/v1/scores", body, headers=key)
            return reply.status, reply.body["id"]

        with ThreadPoolExecutor(12) as pool:
            replies = list(pool.map(send, range(80)))
        assert {status for status, _ in replies} == {201}
        # Four copies of each of twenty requests: twenty scores, and a sum of exactly 2.
        assert len({score_id for _, score_id in replies}) == 20
        summary = server(1).get(f"/v1/experiments/{experiment}/summary").body["scores_by_scorer"]["s"]
        assert (summary["score_count"], summary["mean"]) == (20, 0.1)
        assert server(0).database.read_now(lambda connection: list(check(connection))) == []


@pytest.mark.xdist_group("postgresql")
def test_two_servers_share_the_jobs_and_double_none(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    with postgres_server.database(postgres_template) as url, two_servers(url) as server:
        rule = {"project_id": "p", "name": "r", "scorer_name": "regex", "config": {"pattern": "x"}}
        assert server(0).post("/v1/rules", rule).status == 201
        made = [span(output="x") for _ in range(200)]

        def send(n: int) -> int:
            spans = made[n * 10 : n * 10 + 10]
            return server(n).post("/v1/traces/ingest", {"project_id": "p", "spans": spans}).status

        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(send, range(20))) == {201}

        def open_jobs() -> int:
            return server(0).database.read_now(open_job_count)

        wait_for(lambda: open_jobs() == 0)
        for one in made:
            scores = server(1).get("/v1/scores", target_id=one["id"], target_type="span").body["items"]
            assert [score["value"] for score in scores] == [1.0]


def at_once(send: Callable[[int], Reply], count: int = 12) -> list[tuple[int, str | None]]:
    """The status and error code of each of many calls."""
    with ThreadPoolExecutor(count) as pool:
        return sorted((reply.status, reply.code) for reply in pool.map(send, range(count)))


@pytest.mark.xdist_group("postgresql")
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_what_is_unique_is_made_by_one_of_two_servers(
    postgres_server: PostgresServer, postgres_template: str, isolation: str
) -> None:
    """Also where the database's own default is another isolation than ours."""
    with postgres_server.database(postgres_template) as url:
        name = url.rpartition("/")[2]
        postgres_server.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}").format(
                sql.Identifier(name), sql.Literal(isolation)
            )
        )
        with two_servers(url) as server:
            bench = Bench(server(0), ["a", "b"])
            experiment = bench.experiment()
            one, run = span(), {"dataset_item_id": bench.items[0], "output": 1}
            rule = {"project_id": "p", "name": "r", "scorer_name": "regex", "config": {"pattern": "x"}}
            calls: list[tuple[str, dict[str, Any], str]] = [
                ("/v1/projects", {"id": "new", "name": "new"}, "CONFLICT"),
                ("/v1/datasets", {"project_id": "p", "name": "new"}, "CONFLICT"),
                ("/v1/datasets", {"project_id": "made on the fly", "name": "d"}, "CONFLICT"),
                ("/v1/rules", rule, "CONFLICT"),
                (f"/v1/experiments/{experiment}/runs", {"runs": [run]}, "DUPLICATE_RUN"),
                ("/v1/traces/ingest", {"spans": [one]}, "DUPLICATE_SPAN"),
            ]
            for path, body, code in calls:
                replies = at_once(lambda n, path=path, body=body: server(n).post(path, body))  # type: ignore[misc]
                assert replies == [(201, None)] + [(409, code)] * 11, path
            assert server(1).database.read_now(lambda connection: list(check(connection))) == []


@pytest.mark.xdist_group("postgresql")
def test_the_last_runs_complete_an_experiment_once(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    """Every item once, over both servers at once; whoever comes with the last of them completes it."""
    with postgres_server.database(postgres_template) as url, two_servers(url) as server:
        bench = Bench(server(0), [str(n) for n in range(12)])
        for _ in range(5):
            experiment = bench.experiment()
            path = f"/v1/experiments/{experiment}"

            def send(n: int, path: str = path) -> Reply:
                return server(n).post(
                    f"{path}/runs", {"runs": [{"dataset_item_id": bench.items[n], "output": 1}]}
                )

            assert at_once(send) == [(201, None)] * 12
            found = server(1).get(path).body
            assert (found["status"], found["run_count"]) == ("completed", 12)
            again = server(0).post(f"{path}/complete")
            assert (again.status, again.code) == (422, "EXPERIMENT_COMPLETED")
        assert server(1).database.read_now(lambda connection: list(check(connection))) == []


@pytest.mark.xdist_group("postgresql")
def test_servers_that_start_together_make_the_schema_once(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        with ThreadPoolExecutor(6) as pool:
            databases = list(pool.map(lambda _: open_database(url), range(6)))
        try:
            applied = [name for database in databases for name in database.migrated]
            assert sorted(applied) == [migration.name for migration in known_migrations()]
            assert databases[0].read_now(lambda connection: list(check(connection))) == []
        finally:
            for database in databases:
                database.close()


@pytest.mark.xdist_group("postgresql")
def test_a_deadlock_with_somebody_else_is_tried_again(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    """Somebody holds the dataset and wants its items, while we have deleted the items and want the dataset."""
    with (
        postgres_server.database(postgres_template) as url,
        # Ours looks for a deadlock first, so that it is the one to give way.
        psycopg.connect(url, options="-c deadlock_timeout=120s") as somebody,
        running_service(f"{url}?options=-c%20deadlock_timeout%3D3s") as service,
        ThreadPoolExecutor(1) as pool,
    ):
        bench = Bench(service, ["a"])
        somebody.execute("SELECT 1 FROM datasets FOR UPDATE")
        deleted = pool.submit(service.delete, f"/v1/datasets/{bench.dataset}")
        waiting = (
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'evenhand'"
        )
        wait_for(lambda: bool(postgres_server.query(waiting)))
        somebody.execute("SELECT 1 FROM dataset_items FOR UPDATE")
        somebody.commit()
        assert deleted.result().status == 200
        assert service.get(f"/v1/datasets/{bench.dataset}").status == 404


@pytest.mark.xdist_group("postgresql")
def test_a_key_that_two_servers_are_sent_at_once_is_used_once(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    with postgres_server.database(postgres_template) as url, two_servers(url) as server:

        def make(n: int, key: str, name: str) -> Reply:
            body = {"project_id": "p", "name": name}
            return server(n).post("/v1/datasets", body, headers={"Idempotency-Key": key})

        with ThreadPoolExecutor(12) as pool:
            same = list(pool.map(lambda n: make(n, "one", "d"), range(12)))
        # The name is unique: without the key eleven of them would be refused.
        assert [reply.status for reply in same] == [201] * 12
        assert len({reply.body["id"] for reply in same}) == 1
        assert [reply.headers.get("idempotent-replayed") for reply in same].count("true") == 11
        assert at_once(lambda n: make(n, "other", f"d{n}")) == [(201, None)] + [(409, "CONFLICT")] * 11
        assert len(server(0).get("/v1/datasets", project_id="p").body["items"]) == 2
