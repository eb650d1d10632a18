"""Several servers over one PostgreSQL database."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.ab_suites import wait_for
from tests.postgres import PostgresServer
from tests.server.test_experiments import Bench
from tests.service import running_service
from tests.service_harness import span

from evenhand.store.checking import check
from evenhand.store.jobs import open_job_count


@pytest.mark.xdist_group("postgresql")
def test_two_servers_take_turns_and_lose_nothing(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    with (
        postgres_server.database(postgres_template) as url,
        running_service(url) as first,
        running_service(url) as second,
    ):
        bench = Bench(first, ["a", "b"])
        experiment = bench.experiment()
        run = bench.run(experiment, 0).body["run_ids"][0]

        def send(n: int) -> tuple[int, str]:
            server = (first, second)[n % 2]
            key = {"Idempotency-Key": f"key-{n // 4}"}
            body = {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 0.1}
            reply = server.post("/v1/scores", body, headers=key)
            return reply.status, reply.body["id"]

        with ThreadPoolExecutor(12) as pool:
            replies = list(pool.map(send, range(80)))
        assert {status for status, _ in replies} == {201}
        # Four copies of each of twenty requests: twenty scores, and a sum of exactly 2.
        assert len({score_id for _, score_id in replies}) == 20
        summary = second.get(f"/v1/experiments/{experiment}/summary").body["scores_by_scorer"]["s"]
        assert (summary["score_count"], summary["mean"]) == (20, 0.1)
        assert first.database.read_now(lambda connection: list(check(connection))) == []


@pytest.mark.xdist_group("postgresql")
def test_two_servers_share_the_jobs_and_double_none(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    with (
        postgres_server.database(postgres_template) as url,
        running_service(url) as first,
        running_service(url) as second,
    ):
        rule = {"project_id": "p", "name": "r", "scorer_name": "regex", "config": {"pattern": "x"}}
        assert first.post("/v1/rules", rule).status == 201
        made = [span(output="x") for _ in range(200)]

        def send(n: int) -> int:
            server, spans = (first, second)[n % 2], made[n * 10 : n * 10 + 10]
            return server.post("/v1/traces/ingest", {"project_id": "p", "spans": spans}).status

        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(send, range(20))) == {201}

        def open_jobs() -> int:
            return first.database.read_now(open_job_count)

        wait_for(lambda: open_jobs() == 0)
        for one in made:
            scores = second.get("/v1/scores", target_id=one["id"], target_type="span").body["items"]
            assert [score["value"] for score in scores] == [1.0]
