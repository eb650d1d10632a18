"""Kill the server in the middle of deletions, retention, backfills and retries: each goes on, nothing is doubled."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.ab_suites import wait_for
from tests.postgres import PostgresServer
from tests.reliability.test_crash import check_database
from tests.service_harness import Client, ServerProcess, span

from evenhand.store.connection import Connection
from evenhand.store.database import changing, reading
from evenhand.store.deleting import ROWS

KILLS = 4
SPANS = 600
SHORT_LEASES = "[jobs]\nlease_seconds = 1\n"


@contextmanager
def server_on(kind: str, folder: Path) -> Iterator[ServerProcess]:
    if kind == "sqlite":
        yield ServerProcess(
            f"sqlite:///{folder / 'evenhand.db'}", folder=folder, EVENHAND_MODELS=SHORT_LEASES
        )
        return
    with PostgresServer(durable=True) as postgres, postgres.database() as url:
        yield ServerProcess(url, folder=folder, EVENHAND_MODELS=SHORT_LEASES)


@pytest.fixture(params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    with server_on(request.param, tmp_path) as one:
        one.start()
        yield one
        one.stop()
        check_database(one.database)


def kill_until(server: ServerProcess, done: Callable[[Client], bool]) -> None:
    """Kill and start again a few times, then wait for the work to end."""
    for _ in range(KILLS):
        server.kill()
        server.start()
    client = server.client()
    wait_for(lambda: done(client), 240)
    client.close()


def count(server: ServerProcess, table: str) -> int:
    with reading(server.database) as connection:
        [(found,)] = connection.all(f"SELECT COUNT(*) FROM {table}")
    return int(found)


def ingest(client: Client, number: int) -> list[str]:
    spans = [span(output="x") for _ in range(number)]
    assert client.spans(*spans).status == 201
    return [one["id"] for one in spans]


def test_a_backfill_and_retries_survive_kills(server: ServerProcess) -> None:
    client = server.client()
    wanted = ingest(client, SPANS)
    body = {"project_id": "default", "scorer_name": "regex", "config": {"pattern": "x"}}
    good = client.made("/v1/rules", {**body, "name": "good"})["id"]
    # A rule without anything to compare with: each of its jobs ends as failed, and can be tried again.
    bad = client.made("/v1/rules", {**body, "name": "bad", "scorer_name": "exact_match", "config": {}})["id"]
    paths = [
        f"/v1/rules/{rule}/backfills/{client.made(f'/v1/rules/{rule}/backfills', {})['id']}"
        for rule in (good, bad)
    ]
    client.close()
    kill_until(server, lambda c: all(c.get(path).body["status"] == "completed" for path in paths))
    client = server.client()
    wait_for(lambda: not client.get("/v1/jobs", project_id="default", status="pending").body["items"], 240)
    wait_for(lambda: not client.get("/v1/jobs", project_id="default", status="running").body["items"], 240)
    answer = client.post("/v1/jobs/retry", {"project_id": "default", "rule_id": bad}).body
    assert answer["retried_count"] == SPANS
    client.close()

    def ended(client: Client) -> bool:
        return all(
            not client.get("/v1/jobs", project_id="default", status=status, limit=1).body["items"]
            for status in ("pending", "running")
        )

    kill_until(server, ended)
    client = server.client()
    jobs = Counter(
        (job["rule_id"], job["target_id"])
        for job in client.pages("/v1/jobs", project_id="default", limit=200)
    )
    assert jobs == Counter({(rule, span_id): 1 for rule in (good, bad) for span_id in wanted})
    scores = Counter(
        score["target_id"] for score in client.pages("/v1/scores", project_id="default", limit=200)
    )
    assert scores == Counter(wanted)
    client.close()


def test_deletions_survive_kills(server: ServerProcess) -> None:
    client = server.client()
    ingest(client, SPANS)
    dataset, [item] = client.dataset("a")
    kept, doomed = (client.experiment(dataset, auto_complete=False) for _ in range(2))
    scores = [{"scorer_name": "s", "value": 1}]
    runs = [{"dataset_item_id": item, "output": 1, "repeat": n, "scores": scores} for n in range(14 * ROWS)]
    client.runs(doomed, runs)
    client.runs(kept, runs[:3])
    other = client.again(project="other")
    other.made("/v1/projects", {"id": "other", "name": "other"})
    ingest(other, SPANS)
    assert client.delete(f"/v1/experiments/{doomed}").status == 200
    assert client.delete("/v1/projects/other").status == 200
    other.close()
    client.close()
    kill_until(server, lambda _: count(server, "removals") == 0)
    client = server.client()
    assert client.get(f"/v1/experiments/{doomed}").status == 404
    assert client.get("/v1/projects/other").status == 404
    assert (count(server, "runs"), count(server, "scores")) == (3, 3)
    assert (count(server, "traces"), count(server, "spans")) == (SPANS, SPANS)
    [entry] = client.get("/v1/audit", project_id="other").body["items"]
    assert entry["object_type"] == "project"
    client.close()


def test_logins_and_reviews_survive_kills(server: ServerProcess) -> None:
    """Kill the server after each step: a session, a used link, a reservation and a review are as they were."""

    def kill_and_start() -> None:
        server.kill()
        server.start()

    with closing(server.client()) as client:
        trace_id, _ = client.trace(input="q", output="a")
        queue = client.made("/v1/queues", {"project_id": "default", "name": "q", "reviewers_per_item": 2})[
            "id"
        ]
        client.post(f"/v1/queues/{queue}/items", {"trace_ids": [trace_id]})
        person = client.made("/v1/people", {"name": "Ana", "project_id": "default"})
        token = client.made("/v1/tokens", {"name": "Li", "role": "review", "project_id": "default"})["token"]
    with closing(server.client(token=None)) as browser:
        opened = browser.get(person["login_path"])
        assert opened.status == 303
        cookie = {"Cookie": opened.headers["set-cookie"].partition(";")[0]}
    page = f"/projects/default/queues/{queue}"
    kill_and_start()
    with closing(server.client(token=None)) as browser, closing(server.client(token=token)) as reviewer:
        assert browser.request("GET", page, headers=cookie).status == 200
        assert browser.get(person["login_path"]).status == 401  # it works once
        item = reviewer.post(f"/v1/queues/{queue}/next", {}).body["item"]["id"]
    kill_and_start()
    path = f"/v1/queues/{queue}/items/{item}/review"
    with closing(server.client(token=token)) as reviewer:
        assert reviewer.post(f"/v1/queues/{queue}/next", {}).body["item"]["id"] == item
        assert reviewer.post(path, {"answers": {"label": "correct"}}).status == 201
    kill_and_start()
    with closing(server.client(token=token)) as reviewer, closing(server.client()) as client:
        assert reviewer.post(path, {"answers": {"label": "other"}}).code == "CONFLICT"
        [review] = client.get(f"/v1/queues/{queue}/items/{item}").body["reviews"]
        assert (review["annotator"], review["answers"]) == ("Li", {"label": "correct"})
        assert len(client.get("/v1/annotations", trace_id=trace_id).body["items"]) == 1
        assert client.delete(f"/v1/people/{person['id']}").status == 200
    kill_and_start()
    with closing(server.client(token=None)) as browser:
        assert browser.request("GET", page, headers=cookie).status == 401


def test_retention_survives_kills(server: ServerProcess) -> None:
    client = server.client()
    ingest(client, 3 * SPANS)
    client.close()
    server.stop()

    def age(connection: Connection) -> None:
        """Traces of years ago: their keys hold the instant."""
        for table in ("spans", "traces"):
            connection.run(f"UPDATE {table} SET trace_key = '0180' || SUBSTR(trace_key, 5)")
        connection.run("UPDATE trace_totals SET stretch = '0180' || SUBSTR(stretch, 5)")

    with changing(server.database) as connection:
        age(connection)
    server.start()
    client = server.client()
    young = ingest(client, 5)
    body = b'{"retain_days": 1}'
    kind = {"Content-Type": "application/json"}
    assert client.request("PATCH", "/v1/projects/default", body, kind).status == 200
    client.close()
    kill_until(server, lambda _: count(server, "traces") == len(young))
    client = server.client()
    assert count(server, "spans") == len(young)
    found = client.pages("/v1/audit", project_id="default", limit=200)
    assert sum(entry["details"]["trace_count"] for entry in found) == 3 * SPANS
    client.close()
