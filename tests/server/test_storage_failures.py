"""Storage and overload (section 5 of the failure cases), and what a server process does with secrets and memory."""

import gzip
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import LiteralString

import psutil
import psycopg
import pytest
from psycopg import sql
from tests.ab_suites import wait_for
from tests.postgres import PostgresServer
from tests.real_parts import need
from tests.server.test_overload import until
from tests.service import ADMIN, running_service
from tests.service_harness import ADMIN_TOKEN, Client, ServerProcess, in_parallel, running, span

from evenhand.core.ids import new_id
from evenhand.server.config import RequestLimits
from evenhand.store.database import READERS


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], capture_output=True
    )
    need(mounted.returncode == 0, "the right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def otlp(client: Client, size: int) -> int:
    attribute = f'{{"key": "x", "value": {{"stringValue": "{"y" * size}"}}}}'
    one = f'{{"traceId": "{os.urandom(16).hex()}", "spanId": "{os.urandom(8).hex()}", "startTimeUnixNano": "1", "attributes": [{attribute}]}}'
    body = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{one}]}}]}}]}}'
    reply = client.post_raw("/v1/traces", body.encode(), "application/json")
    if reply.status == 503:
        assert int(reply.headers["retry-after"]) > 0
        assert reply.body["code"] == 14
    return reply.status


def test_case_56_a_full_disk_is_507_reads_go_on_and_it_recovers(small_disk: Path) -> None:
    path = small_disk / "evenhand.db"
    with running_service(f"sqlite:///{path}") as service:
        client = Client(service.url, ADMIN)
        kept = client.trace()[0]
        filler = small_disk / "filler"
        filler.write_bytes(b"x" * max(0, _free(small_disk) - 300_000))
        stored, statuses = [], []
        for _ in range(30):
            one = span(input="y" * 60_000)
            reply = client.spans(one)
            statuses.append(reply.status)
            if reply.status == 201:
                stored.append(one["trace_id"])
            else:
                assert (reply.status, reply.code) == (507, "INSUFFICIENT_STORAGE")
        assert 507 in statuses
        # an exporter would throw away what is refused with 507
        assert otlp(client, 200_000) == 503
        assert client.get(f"/v1/traces/{kept}").status == 200
        assert client.get("/v1/traces", project_id="default").status == 200
        filler.unlink()
        after = client.spans(span(input="y" * 60_000))
        assert after.status == 201, after.raw
        assert otlp(client, 1000) == 200
        for trace in stored:
            assert client.get(f"/v1/traces/{trace}").status == 200
        client.close()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def test_case_57_a_full_queue_refuses_before_accepting(tmp_path: Path) -> None:
    limits = RequestLimits(waiting_writes=2)
    with running_service(f"sqlite:///{tmp_path / 'evenhand.db'}", limits=limits) as service:
        client = Client(service.url, ADMIN)
        dataset, _ = client.dataset()

        def write(_: int) -> list[tuple[int, str]]:
            own = client.again()
            done = []
            for _ in range(10):
                key = new_id()
                reply = own.post(f"/v1/datasets/{dataset}/items", {"input": key})
                if reply.status == 503:
                    assert (reply.code, int(reply.headers["retry-after"]) > 0) == ("OVERLOADED", True)
                done.append((reply.status, key))
            own.close()
            return done

        results = [pair for done in in_parallel(24, write) for pair in done]
        assert {status for status, _ in results} <= {201, 503}
        there = {item["input"] for item in client.pages(f"/v1/datasets/{dataset}/items", limit=200)}
        assert there == {key for status, key in results if status == 201}
        assert b"evenhand_writes_refused_total" in client.get("/metrics").raw
        client.close()


def test_case_59_a_second_server_on_the_same_file_refuses_to_start(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'evenhand.db'}"
    with running(url, tmp_path):
        second = subprocess.run(
            [sys.executable, "-m", "evenhand", "serve", "--port", "0", "--database", url],
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert second.returncode != 0
    assert "in use by another server" in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.xdist_group("postgresql")
def test_case_61_two_servers_that_start_together_migrate_once(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    with postgres_server.database() as url:
        servers = [ServerProcess(url, folder=tmp_path) for _ in range(2)]
        try:
            in_parallel(2, lambda index: servers[index].start())
            clients = [server.client() for server in servers]
            dataset, _ = clients[0].dataset(["a"])
            assert clients[1].get(f"/v1/datasets/{dataset}").body["item_count"] == 1
            for client in clients:
                client.close()
        finally:
            for server in servers:
                server.stop()


@pytest.mark.xdist_group("postgresql")
def test_case_61_a_newer_schema_is_refused_with_78(tmp_path: Path, postgres_server: PostgresServer) -> None:
    name = postgres_server.create_database()
    url = postgres_server.url(name)
    with running(url, tmp_path):
        pass
    newer = sql.SQL("INSERT INTO schema_migrations VALUES ({}, {}, {}, {})").format(
        sql.Literal(9999), sql.Literal("9999_future.sql"), sql.Literal("x"), sql.Literal("x")
    )
    postgres_server.execute(newer, name)
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "serve", "--port", "0", "--database", url],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 78
    assert "9999_future.sql" in done.stderr
    postgres_server.drop_database(name)


def too_little_time(database_url: str) -> RequestLimits:
    """For SQLite, which looks at the clock after thousands of steps, none; for PostgreSQL enough to find a lock."""
    return RequestLimits(query_seconds=1.0 if database_url.startswith("postgresql") else 1e-9)


@contextmanager
def locked(database_url: str, tables: LiteralString) -> Iterator[None]:
    """In PostgreSQL a query of these tables waits, so that the quickest machine does not answer in time."""
    if not database_url.startswith("postgresql"):
        yield
        return
    with psycopg.connect(database_url) as other:
        other.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
        yield


def test_case_63_a_query_that_takes_too_long_is_503(database_url: str) -> None:
    with running_service(database_url, limits=too_little_time(database_url)) as service:
        client = Client(service.url, ADMIN)
        for _ in range(2):
            batch = [span(metadata={"k": new_id(), "filler": "x" * 300}) for _ in range(4000)]
            assert client.spans(*batch).status == 201
        with locked(database_url, "traces, spans"):
            reply = client.get("/v1/search", project_id="default", q="no such words")
        assert (reply.status, reply.code) == (503, "QUERY_TIMEOUT")
        assert int(reply.headers["retry-after"]) > 0
        client.close()


def test_case_63_runs_by_value_are_stopped_in_time_too(database_url: str) -> None:
    with running_service(database_url) as service:
        client = Client(service.url, ADMIN)
        dataset, _ = client.dataset()
        lines = b'{"input": 1}\n' * 3000
        assert (
            client.post_raw(f"/v1/datasets/{dataset}/items/import", lines, "application/jsonl").status == 200
        )
        items = [item["id"] for item in client.pages(f"/v1/datasets/{dataset}/items", limit=200)]
        experiment = client.experiment(dataset)
        scores = [{"scorer_name": "s", "value": 0.25}]
        client.runs(experiment, [{"dataset_item_id": item, "output": 1, "scores": scores} for item in items])
        client.close()
    limits = too_little_time(database_url)
    with running_service(database_url, limits=limits) as service, locked(database_url, "runs, scores"):
        client = Client(service.url, ADMIN)
        for query in ("sort=value", "sort=-value", "min_value=0.5", "max_value=0.1"):
            reply = client.get(f"/v1/experiments/{experiment}/runs?scorer_name=s&{query}")
            assert (reply.status, reply.code) == (503, "QUERY_TIMEOUT"), query
            assert int(reply.headers["retry-after"]) > 0
        client.close()


@pytest.mark.xdist_group("postgresql")
def test_case_63_nobody_else_waits_for_long_queries(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    """More of them than there are readers; a token of a project has to be read before anything is answered."""
    with postgres_server.database(postgres_template) as url, running_service(url) as service:
        assert service.post("/v1/projects", {"id": "p", "name": "p"}).status == 201
        token = service.token("p")
        asked = 2 * READERS
        with ThreadPoolExecutor(asked) as pool:
            with locked(url, "traces, trace_marks, trace_marks_start"):
                waiting = [
                    pool.submit(service.get, "/v1/traces", project_id="p", name="rare") for _ in range(asked)
                ]
                line = f"evenhand_requests_under_way {asked + 1}".encode()
                until(lambda: line in service.get("/metrics").body)
                assert service.get("/v1/experiments", token=token, project_id="p").status == 200
                dataset = {"project_id": "p", "name": "d"}
                assert service.post("/v1/datasets", dataset, token=token).status == 201
                assert not any(one.done() for one in waiting)
            assert [one.result().status for one in waiting] == [200] * asked


def test_case_1_a_bomb_does_not_fill_the_memory(tmp_path: Path) -> None:
    bomb = gzip.compress(b"\x00" * (256 * 1024 * 1024), 1)
    with running(f"sqlite:///{tmp_path / 'evenhand.db'}", tmp_path) as server:
        client = server.client()
        client.get("/v1/projects")
        process = psutil.Process(server.pid)
        before = process.memory_info().rss
        for path, content_type, cap in (
            ("/v1/datasets", "application/json", 16),
            ("/v1/traces", "application/x-protobuf", 64),
        ):
            reply = client.post_raw(path, bomb, content_type, Content_Encoding="gzip")
            assert reply.status == 413
            assert process.memory_info().rss - before < 2 * cap * 1024 * 1024
            assert client.get("/v1/projects").status == 200
        client.close()


def most_memory(pid: int) -> int:
    """The most bytes that a process ever had in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def test_an_import_needs_a_fraction_of_its_size_in_memory(tmp_path: Path, database_url: str) -> None:
    lines, piece = 256, (b'{"input": "' + b"x" * (1024 * 1024) + b'"}\n')
    with running(database_url, tmp_path) as server:
        client = server.client()
        dataset, _ = client.dataset(["warm"])
        before = most_memory(server.pid)
        path = f"/v1/datasets/{dataset}/items/import"
        reply = client.request("POST", path, iter([piece] * lines), {"Content-Type": "application/x-ndjson"})
        assert reply.body["imported_count"] == lines
        assert most_memory(server.pid) - before < lines * len(piece) // 2
        client.close()


def test_case_24_secrets_are_in_no_log_no_database_and_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "evenhand.db"
    key = "canary-" + new_id()
    config = tmp_path / "models.toml"
    config.write_text(
        '[models.m]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "x"\nkey_variable = "MODEL_KEY"\n'
    )
    server = ServerProcess(
        f"sqlite:///{path}",
        folder=tmp_path,
        options=["--config", str(config), "--log-level", "debug"],
        MODEL_KEY=key,
    )
    server.start()
    try:
        client = server.client()
        token = client.made("/v1/tokens", {"name": "t", "role": "write", "project_id": "default"})["token"]
        own, wrong = client.again(token=token), client.again(token=token + "wrong")
        answers = [
            own.get("/v1/datasets").raw,
            own.post("/v1/datasets", {"project_id": "default", "name": 5}).raw,
            own.get(f"/v1/traces/x?token={token}").raw,
            own.post(
                "/v1/scores",
                {"target_id": "x", "target_type": "run", "scorer_name": "llm_judge", "config": {}},
            ).raw,
            own.get("/v1/tokens").raw,
            client.get("/v1/tokens").raw,
            client.get("/metrics").raw,
            wrong.get("/v1/datasets").raw,
        ]
        own.close()
        wrong.close()
        client.close()
    finally:
        server.stop()
    secrets = [token, ADMIN_TOKEN, key]
    everything = {"log": server.log().encode(), "answers": b"".join(answers)}
    everything |= {file.name: file.read_bytes() for file in tmp_path.glob("evenhand.db*")}
    for place, content in everything.items():
        for secret in secrets:
            assert secret.encode() not in content, f"{place} holds a secret"


def test_case_24_guessing_tokens_is_slowed_down(tmp_path: Path) -> None:
    limits = RequestLimits(wrong_tokens_per_minute=5)
    with running_service(f"sqlite:///{tmp_path / 'evenhand.db'}", limits=limits) as service:
        good, guesser = Client(service.url, ADMIN), Client(service.url, "evh_x_guess")
        replies = [guesser.get("/v1/projects") for _ in range(8)]
        assert [reply.status for reply in replies] == [401] * 5 + [429] * 3
        assert int(replies[-1].headers["retry-after"]) > 0
        assert good.get("/v1/projects").status == 200
        good.close()
        guesser.close()


def test_while_the_database_is_away_it_is_up_but_not_ready_and_comes_back_by_itself(tmp_path: Path) -> None:
    with PostgresServer() as postgres:
        url = postgres.url(postgres.create_database())
        with running(url, tmp_path) as server:
            client = server.client()
            dataset, _ = client.dataset()
            with postgres.away():
                assert client.get("/healthz").status == 200
                assert client.get("/metrics").status == 200
                for reply in (
                    client.get("/readyz"),
                    client.get(f"/v1/datasets/{dataset}"),
                    client.post("/v1/datasets", {"project_id": "p", "name": "d"}),
                ):
                    assert (reply.status, reply.code) == (503, "UNAVAILABLE")
                    assert int(reply.headers["retry-after"]) > 0
            wait_for(lambda: client.get("/readyz").status == 200)
            assert client.get(f"/v1/datasets/{dataset}").status == 200
            wait_for(lambda: client.post("/v1/datasets", {"project_id": "p", "name": new_id()}).status == 201)
            client.close()


def test_after_a_graceful_stop_everything_is_in_the_one_file(tmp_path: Path) -> None:
    path, copy = tmp_path / "evenhand.db", tmp_path / "copy.db"
    server = ServerProcess(f"sqlite:///{path}", folder=tmp_path)
    server.start()
    client = server.client()
    dataset, _ = client.dataset()
    assert client.get(f"/v1/datasets/{dataset}").status == 200
    client.close()
    assert server.stop() == 0
    assert not list(tmp_path.glob("evenhand.db-*"))
    shutil.copyfile(path, copy)
    with closing(sqlite3.connect(copy)) as opened:
        assert opened.execute("SELECT id FROM datasets").fetchall() == [(dataset,)]


def test_a_graceful_stop_finishes_what_was_started(tmp_path: Path) -> None:
    server = ServerProcess(f"sqlite:///{tmp_path / 'evenhand.db'}", folder=tmp_path)
    server.start()
    client = server.client()
    client.trace()
    client.close()
    assert server.stop() == 0
    assert "Traceback" not in server.log()
