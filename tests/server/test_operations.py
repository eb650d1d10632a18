"""What an operator sees: metrics of jobs, request ids, access lines, the start; and what a stop does to who waits."""

import json
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.ab_suites import wait_for
from tests.postgres import PostgresServer
from tests.server.test_contract_jobs import CONFIG, JudgeModel, ask, judging
from tests.server.test_metrics_page import samples
from tests.service_harness import ADMIN_TOKEN, Client, ServerProcess, span

from evenhand.testing.faults import FaultPlan


def lines(server: ServerProcess) -> list[Any]:
    return [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]


@pytest.mark.parametrize("given", ["abc-123", "00-4bf92f3577b34da6/x=1", "a" * 200])
def test_a_request_id_comes_back(client: Client, given: str) -> None:
    for path in ("/v1/projects", "/v1/no-such", "/healthz"):
        assert client.request("GET", path, headers={"X-Request-Id": given}).headers["x-request-id"] == given
    assert "x-request-id" not in client.get("/v1/projects").headers


@pytest.mark.parametrize("given", ["", "a b", "<script>", "a" * 201, "é"])
def test_what_is_no_request_id_does_not_come_back(client: Client, given: str) -> None:
    reply = client.request("GET", "/v1/projects", headers={"X-Request-Id": given.encode().decode("latin-1")})
    assert (reply.status, reply.headers.get("x-request-id")) == (200, None)


def test_the_log_has_the_start_and_on_request_every_request(tmp_path: Path) -> None:
    server = ServerProcess(f"sqlite:///{tmp_path}/e.db", folder=tmp_path, options=["--access-log"])
    server.start()
    try:
        with closing(Client(server.address, ADMIN_TOKEN)) as client:
            client.request("GET", "/v1/projects", headers={"X-Request-Id": "mine"})
    finally:
        server.stop()
    said = lines(server)
    [start] = [line for line in said if line["message"] == "started"]
    assert (start["level"], start["address"]) == ("info", server.address)
    [request] = [line for line in said if line.get("request_id") == "mine"]
    assert (request["level"], request["method"], request["path"], request["status"]) == (
        "info",
        "GET",
        "/v1/projects",
        200,
    )
    assert ADMIN_TOKEN not in server.log()


def test_metrics_tell_of_jobs_and_judges(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, _):
        client.post("/v1/projects", {"id": client.project, "name": "judged"})
        assert ask(client, client.run("8")).status == 201
        found = samples(client.get("/metrics").raw.decode())
    assert found["evenhand_jobs"] == {
        'evenhand_jobs{status="pending"}': 0,
        'evenhand_jobs{status="running"}': 0,
    }
    assert found["evenhand_job_oldest_seconds"] == {"evenhand_job_oldest_seconds{}": 0}
    assert found["evenhand_jobs_worked_total"]['evenhand_jobs_worked_total{outcome="scored"}'] == 1
    for name, least in (
        ("requests", 1),
        ("errors", 0),
        ("input_tokens", 1),
        ("output_tokens", 1),
        ("cost_usd", 0),
    ):
        [value] = found[f"evenhand_judge_{name}_total"].values()
        assert value >= least, name
    assert found["evenhand_commit_seconds_total"]["evenhand_commit_seconds_total{}"] > 0


def with_models(tmp_path: Path, text: str) -> ServerProcess:
    config = tmp_path / "models.toml"
    config.write_text(text)
    return ServerProcess(f"sqlite:///{tmp_path}/e.db", folder=tmp_path, options=["--config", str(config)])


def test_a_spend_cap_survives_a_restart(tmp_path: Path) -> None:
    with JudgeModel("8") as model:
        server = with_models(
            tmp_path,
            f'[models.small]\nbase_url = "{model.url}"\nmodel = "m"\nallow_private = true\n'
            "input_usd = 1000000\noutput_usd = 0\nspend_cap_usd = 400\n",
        )
        for round_ in range(2):
            server.start()
            try:
                with closing(Client(server.address, ADMIN_TOKEN)) as client:
                    reply = ask(client, client.run("8"))
                    if round_ == 0:
                        assert reply.status == 201, reply.raw
                        spent = [model.requests]
                        # Until the next question could take the sum past the cap.
                        while ask(client, client.run("8")).status == 201:
                            spent.append(model.requests)
                        assert model.requests == spent[-1]
                    else:
                        assert reply.status == 200
                        assert "spend cap" in reply.body["message"]
                        assert model.requests == spent[-1]
            finally:
                server.stop()


def test_who_waits_for_a_job_of_a_stopping_server_gets_its_202(tmp_path: Path) -> None:
    with JudgeModel("8", latency=600) as model:
        server = with_models(
            tmp_path, f'[models.small]\nbase_url = "{model.url}"\nmodel = "m"\nallow_private = true\n'
        )
        server.start()
        replies: list[Any] = []
        with closing(Client(server.address, ADMIN_TOKEN)) as client:
            run = client.run("8")

            def wait() -> None:
                with closing(client.again()) as own:
                    replies.append(ask(own, run, wait=60))

            waiting = threading.Thread(target=wait)
            waiting.start()
            wait_for(lambda: model.requests > 0)
            assert server.stop() == 0
            waiting.join(120)
        [reply] = replies
        assert reply.status == 202
        assert reply.body["job_id"]


def test_an_outage_of_the_database_is_one_warning_and_its_end_one_line(tmp_path: Path) -> None:
    with PostgresServer() as postgres, postgres.database() as url:
        server = ServerProcess(url, folder=tmp_path)
        server.start()
        try:
            with closing(Client(server.address, ADMIN_TOKEN)) as client:
                assert client.spans(span()).status == 201
                with postgres.away():
                    for _ in range(20):
                        assert client.get("/readyz").status == 503
                        refused = client.spans(span())
                        assert (refused.status, refused.code) == (503, "UNAVAILABLE")
                        assert refused.headers["retry-after"]
                wait_for(lambda: client.get("/readyz").status == 200)
                assert client.spans(span()).status == 201
        finally:
            server.stop()
    said = [line for line in lines(server) if line["level"] != "info" and "gRPC" not in line["message"]]
    assert [(line["level"], line["message"]) for line in said] == [
        ("warning", "the database does not answer")
    ]
    assert said[0]["database"] == url.replace("postgres@", "")
    [back] = [line for line in lines(server) if line["message"] == "the database answers again"]
    assert back["seconds"] > 0


def test_a_judge_that_does_not_answer_is_a_warning(tmp_path: Path) -> None:
    with JudgeModel("8", faults=FaultPlan(rate=1.0, kinds=("unavailable",))) as model:
        server = with_models(
            tmp_path,
            f'[models.small]\nbase_url = "{model.url}"\nmodel = "m"\nallow_private = true\ntries = 1\n',
        )
        server.start()
        try:
            with closing(Client(server.address, ADMIN_TOKEN)) as client:
                for _ in range(2):
                    assert ask(client, client.run("8")).status == 200
        finally:
            server.stop()
    [line] = [line for line in lines(server) if line["message"] == "a judge model does not answer"]
    assert (line["level"], line["model"]) == ("warning", CONFIG["model"])
