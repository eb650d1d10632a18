"""`llm_judge` and online rules, with a real (scripted) model over HTTP, on both databases."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.ab_suites import wait_for
from tests.service import ADMIN, running_service
from tests.service_harness import ADMIN_TOKEN, Client, Reply, ServerProcess, span

from evenhand.core.errors import EvenhandError
from evenhand.server.jobs.judge_models import JudgeModels
from evenhand.store.connection import Connection
from evenhand.store.jobs import NewJob, add_jobs
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall

TEMPLATE = "Grade this.\nQuestion: {{input}}\nAnswer: {{output}}\nReference: {{expected_output}}"
CONFIG = {"model": "small", "prompt_template": TEMPLATE, "score_range": {"min": 0, "max": 10}}


class JudgeModel(MockModel):
    """The scripted model, and the configuration that makes it known to the server."""

    def config(self, folder: Path, *, private: bool = True, tries: int = 6) -> Path:
        path = folder / "models.toml"
        path.write_text(
            f'[models.small]\nbase_url = "{self.url}"\nmodel = "mock-1"\ntries = {tries}\n'
            f"allow_private = {str(private).lower()}\n"
        )
        return path


def grade(call: MockCall) -> MockAnswer | str:
    """The number after 'Answer: ' in the prompt, or the text itself."""
    return call.prompt.split("Answer: ", 1)[1].split("\n", 1)[0]


@contextmanager
def judging(
    database_url: str, folder: Path, answer: Any = grade, **more: Any
) -> Iterator[tuple[Client, JudgeModel]]:
    with (
        JudgeModel(answer) as model,
        running_service(database_url, models_file=model.config(folder, **more)) as service,
    ):
        client = Client(service.url, ADMIN, "judged")
        yield client, model
        client.close()


def ask(
    client: Client, target: str, *, wait: float | str | None = 60, kind: str = "run", **config: Any
) -> Reply:
    body = {
        "target_id": target,
        "target_type": kind,
        "scorer_name": "llm_judge",
        "config": {**CONFIG, **config},
    }
    return client.post("/v1/scores" + ("" if wait is None else f"?wait={wait}"), body)


def ended(client: Client, job_id: str) -> Any:
    job: Any = {}

    def has_ended() -> bool:
        nonlocal job
        job = client.get(f"/v1/jobs/{job_id}").body
        return job["status"] in ("completed", "failed")

    wait_for(has_ended, 120)
    return job


def test_a_batch_takes_llm_judge_beside_values_and_rules(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, _):
        run = client.run("8", "8")
        one = {"target_id": run, "target_type": "run"}
        judge = {**one, "scorer_name": "llm_judge", "config": CONFIG}
        reply = client.post(
            "/v1/scores/batch",
            {
                "scores": [
                    judge,
                    {**one, "scorer_name": "exact_match"},
                    {**one, "scorer_name": "x", "value": 0.5},
                    judge,
                ]
            },
        )
        assert reply.status == 201, reply.raw
        assert (reply.body["accepted"], [job["index"] for job in reply.body["jobs"]]) == (2, [0, 3])
        assert [score is None for score in reply.body["score_ids"]] == [True, False, False, True]
        jobs = [ended(client, job["job_id"]) for job in reply.body["jobs"]]
        assert [job["status"] for job in jobs] == ["completed", "completed"]
        scores = client.get("/v1/scores", target_id=run).body["items"]
        assert sorted(score["scorer_name"] for score in scores) == [
            "exact_match",
            "llm_judge",
            "llm_judge",
            "x",
        ]


def test_a_batch_with_a_bad_judge_or_a_lost_target_changes_nothing(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, _):
        run = client.run("8", "8")
        good = {"target_id": run, "target_type": "run", "scorer_name": "x", "value": 0.5}
        judge = {"target_id": run, "target_type": "run", "scorer_name": "llm_judge", "config": CONFIG}
        for bad, status, code in (
            ({**judge, "config": {}}, 400, "INVALID_SCORER_CONFIG"),
            ({**judge, "config": {**CONFIG, "model": "http://evil"}}, 400, "INVALID_SCORER_CONFIG"),
            ({**judge, "target_id": "lost"}, 404, "NOT_FOUND"),
        ):
            reply = client.post("/v1/scores/batch", {"scores": [good, judge, bad]})
            assert (reply.status, reply.code) == (status, code), reply.raw
        assert client.get("/v1/scores", target_id=run).body["items"] == []
        assert client.get("/v1/jobs", project_id="judged").body["items"] == []


def test_llm_judge_answers_202_and_the_score_follows(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, model):
        run = client.run("I give it 8 of 10", "reference")
        reply = ask(client, run, wait=None)
        assert (reply.status, reply.body["status"]) == (202, "pending")
        job = ended(client, reply.body["job_id"])
        assert (job["status"], job["error"], job["attempts"]) == ("completed", None, 1)
        [score] = client.get("/v1/scores", target_id=run).body["items"]
        # the first number, normalised from 0..10
        assert (score["value"], score["scorer_name"], score["source"]) == (0.8, "llm_judge", "judge")
        assert score["rationale"] == "I give it 8 of 10"
        assert score["id"] == job["score_id"]
        assert score["metadata"]["model"] == "mock-1"
        assert score["config"]["model"] == "small"
        prompt = model.calls[0].prompt
        assert "Question: q" in prompt
        assert "Reference: reference" in prompt


def test_wait_answers_the_score(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, _):
        reply = ask(client, client.run("10"))
        assert (reply.status, reply.body["value"]) == (201, 1.0)
        _, span_id = client.trace(input="q", output="5 points")
        assert ask(client, span_id, kind="span").body["value"] == 0.5
        for wrong in (-1, 61, "x", "nan"):
            assert ask(client, span_id, kind="span", wait=wrong).code == "INVALID_REQUEST"


def test_label_takes_the_trimmed_reply(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path, answer="  relevant\n") as (client, _):
        reply = ask(client, client.run("some output"), score_extraction="label")
        assert (reply.status, reply.body["value"]) == (201, "relevant")


@pytest.mark.parametrize("text", ["no number here", "11 points", "-3"])
def test_no_verdict_is_no_score_and_no_error(database_url: str, tmp_path: Path, text: str) -> None:
    with judging(database_url, tmp_path) as (client, _):
        run = client.run(text)
        reply = ask(client, run)
        assert (reply.status, reply.body["score"]) == (200, None)
        assert reply.body["reason"]
        assert client.get("/v1/scores", target_id=run).body["items"] == []
        [job] = client.get("/v1/jobs", project_id="judged", status="failed").body["items"]
        assert (job["error"], job["reply"], job["score_id"]) == (reply.body["reason"], text, None)


def test_a_bad_configuration_is_INVALID_SCORER_CONFIG(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, _):
        run = client.run("8")
        for more in (
            {"model": "http://169.254.169.254/v1"},
            {"model": "unknown"},
            {"model": ""},
            {"prompt_template": "no places"},
            {"prompt_template": "{{input}} only"},
            {"score_extraction": "both"},
            {"score_range": {"min": 5, "max": 5}},
            {"score_range": "wide"},
        ):
            reply = ask(client, run, **more)
            assert (reply.status, reply.code) == (400, "INVALID_SCORER_CONFIG"), more
        assert ask(client, "no-such").code == "NOT_FOUND"
        assert client.get("/v1/jobs", project_id="judged").body["items"] == []


def test_case_32_a_private_address_is_refused_unless_allowed(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path, private=False) as (client, model):
        reply = ask(client, client.run("8"))
        assert (reply.status, reply.code) == (400, "INVALID_SCORER_CONFIG")
        assert model.requests == 0


def test_inline_llm_judge_of_runs_and_spans(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, _):
        inline = [{"scorer_name": "llm_judge", "config": CONFIG}]
        run = client.run("6", scores=inline)
        _, span_id = client.trace(output="7", input="q", scores=inline)
        jobs = client.get("/v1/jobs", project_id="judged").body["items"]
        for job in jobs:
            ended(client, job["job_id"])
        assert [s["value"] for s in client.get("/v1/scores", target_id=run).body["items"]] == [0.6]
        rows = client.get("/v1/scores", target_id=span_id, target_type="span").body["items"]
        assert [s["value"] for s in rows] == [0.7]


def test_a_deleted_target_ends_its_job(database_url: str, tmp_path: Path) -> None:
    deleted = threading.Event()

    def wait_and_grade(call: MockCall) -> MockAnswer | str:
        assert deleted.wait(60)
        return grade(call)

    with JudgeModel(wait_and_grade) as model:
        config = model.config(tmp_path)
        with running_service(database_url, models_file=config) as service:
            client = Client(service.url, ADMIN, "judged")
            trace_id, span_id = client.trace(output="8", input="q")
            job_id = ask(client, span_id, kind="span", wait=None).body["job_id"]
            client.delete(f"/v1/traces/{trace_id}")
            deleted.set()
            assert ended(client, job_id)["error"] == "target_gone"
            client.close()


def test_rules_score_matching_spans_as_they_come_in(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, _):
        rules: list[dict[str, Any]] = [
            {
                "name": "polite",
                "scorer_name": "regex",
                "config": {"pattern": "please"},
                "filter": {"name": "chat"},
            },
            {
                "name": "judge",
                "scorer_name": "llm_judge",
                "config": CONFIG,
                "filter": {"model": "m", "has_error": False},
            },
            {"name": "never", "scorer_name": "regex", "config": {"pattern": "x"}, "sample_rate": 0},
        ]
        for rule in rules:
            made = client.made("/v1/rules", {"project_id": "judged", **rule})
            assert client.get(f"/v1/rules/{made['id']}").body == made
        chat, other = span(name="chat", output="please"), span(name="other", output="9", model="m", input="q")
        failed = span(name="other", output="9", model="m", error={"message": "x"})
        assert client.spans(chat, other, failed).status == 201
        jobs = client.get("/v1/jobs", project_id="judged").body["items"]
        assert {(job["target_id"], job["scorer_name"]) for job in jobs} == {
            (chat["id"], "regex"),
            (other["id"], "llm_judge"),
        }
        for job in jobs:
            assert ended(client, job["job_id"])["status"] == "completed"
        rows = client.get("/v1/scores", target_id=chat["id"], target_type="span").body["items"]
        assert [(row["value"], row["source"]) for row in rows] == [(1.0, "rule")]
        rows = client.get("/v1/scores", target_id=other["id"], target_type="span").body["items"]
        assert [(row["value"], row["source"]) for row in rows] == [(0.9, "judge")]
        listed = client.get("/v1/rules", project_id="judged").body["items"]
        assert [row["name"] for row in listed] == ["never", "judge", "polite"]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"sample_rate": 1.5}, "INVALID_REQUEST"),
        ({"sample_rate": -0.1}, "INVALID_REQUEST"),
        ({"scorer_name": "unknown"}, "INVALID_REQUEST"),
        ({"config": {"pattern": "["}}, "INVALID_SCORER_CONFIG"),
        ({"scorer_name": "llm_judge", "config": CONFIG}, "INVALID_SCORER_CONFIG"),
        ({"filter": {"no_such": 1}}, "INVALID_REQUEST"),
        ({"filter": {"metadata": {"k": [1]}}}, "INVALID_REQUEST"),
        ({"name": " "}, "INVALID_REQUEST"),
    ],
)
def test_a_bad_rule_is_refused(client: Client, more: dict[str, Any], code: str) -> None:
    body = {
        "project_id": client.project,
        "name": "r",
        "scorer_name": "regex",
        "config": {"pattern": "a"},
        **more,
    }
    reply = client.post("/v1/rules", body)
    assert (reply.status, reply.code) == (400, code)
    assert client.get("/v1/rules", project_id=client.project).body["items"] == []


def test_a_rules_name_is_unique_and_a_deleted_rule_scores_no_more(client: Client) -> None:
    body = {"project_id": client.project, "name": "r", "scorer_name": "regex", "config": {"pattern": "a"}}
    made = client.made("/v1/rules", body)
    assert client.post("/v1/rules", body).code == "CONFLICT"
    assert client.delete(f"/v1/rules/{made['id']}").body == {"deleted": True, "id": made["id"]}
    assert client.get(f"/v1/rules/{made['id']}").code == "NOT_FOUND"
    client.trace(output="a")
    assert client.get("/v1/jobs", project_id=client.project).body["items"] == []


def test_a_judge_that_is_down_is_tried_again(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, model):
        model.answer = _broken
        job_id = ask(client, client.run("8"), wait=None).body["job_id"]

        def waits_for_the_next_try() -> bool:
            job = client.get(f"/v1/jobs/{job_id}").body
            return (job["status"], job["error"]) == ("pending", "judge_unavailable")

        wait_for(waits_for_the_next_try)
        assert model.requests > 0
        model.answer = grade
        assert ended(client, job_id)["status"] == "completed"


def test_a_job_has_one_budget_of_requests_and_tells_the_models_error(
    database_url: str, tmp_path: Path
) -> None:
    """Two requests by the configuration, the second a second after the first; six at most by any configuration."""
    with judging(database_url, tmp_path, _broken, tries=2) as (client, model):
        job = ended(client, ask(client, client.run("8"), wait=None).body["job_id"])
        assert (job["status"], job["error"], job["attempts"]) == ("failed", "judge_unavailable", 2)
        assert job["message"] == "the endpoint answered 503: down · mock_error"
        assert model.requests == 2


@pytest.mark.parametrize(("status", "error"), [(400, "judge_refused"), (401, "judge_rejected")])
def test_a_request_that_cannot_succeed_is_sent_once(
    database_url: str, tmp_path: Path, status: int, error: str
) -> None:
    def refuse(call: MockCall) -> MockAnswer:
        return MockAnswer(text="the prompt is not welcome", status=status)

    with judging(database_url, tmp_path, refuse) as (client, model):
        job = ended(client, ask(client, client.run("8"), wait=None).body["job_id"])
        assert (job["status"], job["error"], job["attempts"]) == ("failed", error, 1)
        assert "the prompt is not welcome" in job["message"]
        assert model.requests == 1


def test_an_empty_output_goes_to_the_judge(database_url: str, tmp_path: Path) -> None:
    """So do white space, an empty list, and one that was cut off inside its thinking, of which nothing is left."""
    with judging(database_url, tmp_path, lambda call: "3") as (client, model):
        for count, output in enumerate(("", " \n", ":", [], "<think>It may be Lima"), start=1):
            assert ask(client, client.run(output)).body["value"] == 0.3
            assert model.requests == count
        assert not any("Lima" in call.prompt for call in model.calls)
        model.answer = lambda _: "no idea"
        job = ask(client, client.run("")).body
        assert (job.get("value"), job["error"]) == (None, "grade_parse_failure"), "no score is made up"


def test_a_key_that_a_judge_does_not_have_is_refused(database_url: str, tmp_path: Path) -> None:
    with judging(database_url, tmp_path) as (client, model):
        reply = ask(client, client.run("8"), api_key="sk-1")
        assert (reply.status, reply.code) == (400, "INVALID_SCORER_CONFIG")
        assert b"api_key" in reply.raw
        assert b"sk-1" not in reply.raw
        assert model.requests == 0


def test_the_key_of_the_judges_fence_is_the_databases(database_url: str, tmp_path: Path) -> None:
    """The same run judged by two servers in turn: the same code fences the same output."""
    codes = []
    with JudgeModel(grade) as model:
        model.answer = lambda _: "5"
        for _ in range(2):
            with running_service(database_url, models_file=model.config(tmp_path)) as service:
                client = Client(service.url, ADMIN, "judged")
                assert ask(client, client.run("8"), delimit=True).body["value"] == 0.5
                client.close()
        codes = [re.findall(r"<<<OUTPUT ([0-9a-f]{16})>>>", call.prompt) for call in model.calls]
    assert codes[0] == codes[1] != []


def test_a_server_that_does_not_know_the_model_leaves_the_job_to_one_that_does(
    database_url: str, tmp_path: Path
) -> None:
    """The first server is stopped while the model thinks: it gives the job back, long before its lease ends."""
    with JudgeModel(grade, latency=300.0) as model:
        config = model.config(tmp_path)
        config.write_text(config.read_text() + "\n[jobs]\nlease_seconds = 3600\n")
        with running_service(database_url, models_file=config) as service:
            client = Client(service.url, ADMIN, "judged")
            job_id = ask(client, client.run("8"), wait=None).body["job_id"]
            wait_for(lambda: model.in_flight > 0)
            client.close()
        with running_service(database_url) as service:
            client = Client(service.url, ADMIN, "judged")
            wait_for(lambda: client.get(f"/v1/jobs/{job_id}").body["error"] == "unknown_model")
            assert client.get(f"/v1/jobs/{job_id}").body["status"] in ("pending", "running")
            client.close()
        model.latency = 0.0
        with running_service(database_url, models_file=config) as service:
            client = Client(service.url, ADMIN, "judged")
            assert ended(client, job_id)["status"] == "completed"
            client.close()


def test_a_job_whose_configuration_is_not_right_any_more_ends(database_url: str) -> None:
    with running_service(database_url) as service:
        client = Client(service.url, ADMIN, "judged")
        client.trace(id="s", output="x")

        def work(connection: Connection) -> str:
            row = connection.one("SELECT trace_key FROM spans WHERE id = 's'")
            assert row is not None
            job = NewJob(
                project_id="judged",
                target_type="span",
                target_id="s",
                trace_key=row[0],
                scorer_name="regex",
                config='{"pattern": "["}',
            )
            return add_jobs(connection, [job])[0]

        job_id = service.database.write_now(work)
        assert ended(client, job_id)["error"] == "invalid_config"
        client.close()


def _broken(_: MockCall) -> MockAnswer:
    return MockAnswer(text="down", status=503)


@pytest.mark.parametrize("kills", [2])
def test_jobs_survive_SIGKILL_and_none_is_doubled(database_url: str, tmp_path: Path, kills: int) -> None:
    """The server is killed while jobs wait for the model, again and again."""
    with JudgeModel(grade, latency=300.0) as model:
        config = model.config(tmp_path)
        config.write_text(config.read_text() + "\n[jobs]\nlease_seconds = 2\nconcurrency = 4\n")
        server = ServerProcess(database_url, folder=tmp_path, options=["--config", str(config)])
        server.start()
        try:
            client = Client(server.address, ADMIN_TOKEN, "judged")
            runs = [client.run(str(number % 11)) for number in range(30)]
            jobs = {ask(client, run, wait=None).body["job_id"]: run for run in runs}
            for left in reversed(range(kills)):
                wait_for(lambda: model.in_flight > 0)
                server.kill()
                model.latency = 300.0 if left else 0.05
                server.start()
            client.close()
            client = Client(server.address, ADMIN_TOKEN, "judged")
            for job_id in jobs:
                assert ended(client, job_id)["status"] == "completed"
            for number, run in enumerate(runs):
                values = [row["value"] for row in client.get("/v1/scores", target_id=run).body["items"]]
                assert values == [number % 11 / 10]
            client.close()
        finally:
            server.stop()


def test_the_model_file_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    for text in (
        "not toml [",
        "[models.a]\nmodel = 'x'",
        "[models.a]\nbase_url='http://h/v1'\nmodel='x'\nurl=1",
        "[other]",
    ):
        path.write_text(text)
        with pytest.raises(EvenhandError, match=r"models\.toml"):
            JudgeModels.configured(path)
    path.write_text("[models.a]\nbase_url='http://h/v1'\nmodel='x'\nkey_variable='EVENHAND_NO_SUCH_KEY'")
    with pytest.raises(EvenhandError, match="EVENHAND_NO_SUCH_KEY"):
        JudgeModels.configured(path)
    with pytest.raises(EvenhandError, match="cannot be read"):
        JudgeModels.configured(tmp_path / "missing.toml")
    assert JudgeModels.configured(None).names == []
