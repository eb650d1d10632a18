"""Scorers of installed packages, and code_sandbox: only where the administrator lists them. On both databases."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.scored_ways import job_end
from tests.service import ADMIN, running_service
from tests.service_harness import Client, Reply, ServerProcess, span
from tests.their_scorers import install, was_loaded

from evenhand.core.errors import OptionError, UnknownName
from evenhand.scoring.registry import BUILT_IN


@contextmanager
def serving(database: str, folder: Path, *listed: str, **environment: str) -> Iterator[Client]:
    """A server process beside the installed distribution, with scorers listed by option."""
    options = [part for name in listed for part in ("--scorer", name)]
    server = ServerProcess(database, folder=folder, options=options, **environment)
    server.start()
    try:
        client = Client(server.address, project="listed")
        yield client
        client.close()
    finally:
        server.stop()


@pytest.fixture
def theirs(tmp_path: Path) -> dict[str, str]:
    return install(tmp_path)


def ask(client: Client, target: str, name: str, *, wait: float | None = None, **config: Any) -> Reply:
    body = {"target_id": target, "target_type": "run", "scorer_name": name, "config": config}
    return client.post("/v1/scores" + ("" if wait is None else f"?wait={wait}"), body)


def listed(client: Client) -> dict[str, Any]:
    return {one["name"]: one for one in client.get("/v1/scorers").body["items"]}


def test_an_installed_scorer_runs_only_when_it_is_listed(
    service_url: str, tmp_path: Path, theirs: dict[str, str]
) -> None:
    with serving(service_url, tmp_path, **theirs) as client:
        run = client.run("yes please")
        refused = ask(client, run, "polite")
        assert (refused.status, refused.code) == (400, "INVALID_REQUEST")
        assert "not enabled" in refused.body["error"]["message"]
        assert "--scorer" in refused.body["error"]["message"]
        rule = {"project_id": client.project, "name": "r", "scorer_name": "polite"}
        assert client.post("/v1/rules", rule).code == "INVALID_REQUEST"
        inline = span(output="please", scores=[{"scorer_name": "polite"}])
        assert client.spans(inline).code == "INVALID_REQUEST"
        info = listed(client)["polite"]
        assert (info["enabled"], info["built_in"], info["version"], info["options"]) == (
            False,
            False,
            None,
            None,
        )
        # a value under its name is stored as any other
        assert client.post("/v1/scores", {**ask_body(run), "value": 0.5}).status == 201
        assert not was_loaded(tmp_path)
    with serving(service_url, tmp_path, "polite", **theirs) as client:
        run = client.run("yes please")
        reply = ask(client, run, "polite")
        assert (reply.status, reply.body["value"], reply.body["source"]) == (201, 1.0, "rule")
        assert (reply.body["canonical_name"], reply.body["scorer_version"]) == ("polite", "1")
        assert reply.body["scorer_options"] == {"word": "please", "key": None, "file": None}
        assert ask(client, run, "polite", word="thanks").body["value"] == 0.0
        info = listed(client)["polite"]
        assert (info["enabled"], info["version"], info["summary"]) == (True, "1", "The response is polite.")
        assert ask(client, run, "patient").code == "INVALID_REQUEST"
        assert client.made("/v1/rules", rule)["scorer_name"] == "polite"
        assert was_loaded(tmp_path)


def ask_body(run: str) -> dict[str, Any]:
    return {"target_id": run, "target_type": "run", "scorer_name": "polite"}


def test_scorers_are_listed_by_the_environment_and_the_file_too(
    tmp_path: Path, theirs: dict[str, str]
) -> None:
    file = tmp_path / "server.toml"
    file.write_text('scorers = ["patient"]\n')
    url = f"sqlite:///{tmp_path / 'evenhand.db'}"
    more = {"EVENHAND_SCORERS": "polite, code_sandbox", "EVENHAND_CONFIG": str(file)}
    with serving(url, tmp_path, **theirs, **more) as client:
        enabled = {name for name, one in listed(client).items() if one["enabled"]}
        assert {"polite", "patient", "code_sandbox"} <= enabled
        assert "wild" not in enabled


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such", "unknown scorer 'no_such'"),
        ("broken", "the scorer 'broken' cannot be loaded: AttributeError"),
        ("odd", "is not a scorer"),
    ],
)
def test_a_listed_name_that_is_no_scorer_stops_the_start(
    tmp_path: Path, theirs: dict[str, str], name: str, message: str
) -> None:
    server = ServerProcess(
        f"sqlite:///{tmp_path / 'evenhand.db'}", folder=tmp_path, options=["--scorer", name], **theirs
    )
    with pytest.raises(AssertionError, match="the server ended with 64"):
        server.start()
    assert message in server.log()


def test_options_that_are_functions_or_paths_are_refused(tmp_path: Path, theirs: dict[str, str]) -> None:
    with serving(f"sqlite:///{tmp_path / 'evenhand.db'}", tmp_path, "polite", **theirs) as client:
        run = client.run("x", "y")
        for config in ({"key": "os.getcwd"}, {"file": "/etc/passwd"}, {"key": None}, {"odd": 1}, {"word": 5}):
            reply = ask(client, run, "polite", **config)
            assert (reply.status, reply.code) == (400, "INVALID_SCORER_CONFIG"), config
        assert set(listed(client)["polite"]["options"]["properties"]) == {"word"}
        # the embedding of the library may be a function there; here it is a name
        assert ask(client, run, "embedding_similarity", embed="os.getcwd").code == "INVALID_SCORER_CONFIG"
        assert ask(client, run, "embedding_similarity").code == "INVALID_SCORER_CONFIG"
        assert list(client.pages("/v1/jobs", project_id=client.project)) == []


def test_a_slow_scorer_is_a_job_and_can_be_waited_for(
    service_url: str, tmp_path: Path, theirs: dict[str, str]
) -> None:
    with serving(service_url, tmp_path, "patient", **theirs) as client:
        run = client.run("x")
        body = {
            "target_id": run,
            "target_type": "run",
            "scorer_name": "patient",
            "rationale": "because",
            "metadata": {"ticket": 7},
        }
        accepted = client.post("/v1/scores", body)
        assert (accepted.status, accepted.body["status"]) == (202, "pending")
        assert job_end(client, accepted.body["job_id"]) == ("scored", 0.75)
        waited = client.post("/v1/scores?wait=60", body)
        assert (waited.status, waited.body["value"]) == (201, 0.75)
        # what the request said of the score is on the score, whoever computed it
        for score in client.pages("/v1/scores", target_id=run):
            assert (score["rationale"], score["metadata"], score["source"]) == (
                "because",
                {"ticket": 7},
                "rule",
            )
            assert (score["canonical_name"], score["scorer_version"]) == ("patient", "1")
        assert listed(client)["patient"]["runs_as_job"] is True
        assert ask(client, "no-such", "patient").status == 404


def test_a_scorer_that_takes_for_ever_keeps_nobody_else_waiting(
    service_url: str, tmp_path: Path, theirs: dict[str, str]
) -> None:
    """More of them than there are threads for scoring: values, reads and bodies are answered all the same."""
    with serving(service_url, tmp_path, "stuck", **theirs) as client:
        run = client.run("x", "x")
        replies: list[Reply] = []

        def score() -> None:
            own = client.again()
            replies.append(ask(own, run, "stuck"))
            own.close()

        threads = [threading.Thread(target=score) for _ in range(9)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            assert client.get("/healthz").status == 200
            value = {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 1}
            assert client.post("/v1/scores", value).status == 201
        # a body that is decoded on a thread
        dataset, _ = client.dataset()
        assert client.post(f"/v1/datasets/{dataset}/items", {"input": "x" * 2_000_000}).status == 201
        assert replies == []
        (tmp_path / "release").write_text("now")
        for thread in threads:
            thread.join(120)
        assert [reply.body["value"] for reply in replies] == [0.5] * 9


def test_a_scorer_that_hangs_does_not_keep_the_server_from_stopping(
    tmp_path: Path, theirs: dict[str, str]
) -> None:
    """Its job is given back, and the next server takes it."""
    url = f"sqlite:///{tmp_path / 'evenhand.db'}"
    with serving(url, tmp_path, "stuck", **theirs) as client:
        client.made("/v1/projects", {"id": client.project, "name": "p"})
        client.made("/v1/rules", {"project_id": client.project, "name": "r", "scorer_name": "stuck"})
        client.spans(span(output="x"))
        [job] = client.pages("/v1/jobs", project_id=client.project)
        while job["status"] != "running":
            job = client.get(f"/v1/jobs/{job['job_id']}").body
    (tmp_path / "release").write_text("now")
    with serving(url, tmp_path, "stuck", **theirs) as client:
        assert job_end(client, job["job_id"]) == ("scored", 0.5)


def _skipped_everywhere(client: Client, output: str) -> list[dict[str, str]]:
    """What a batch, a run and a span say about an inline score of `wild` that does not exist."""
    run = client.run(output)
    target = {"target_id": run, "target_type": "run", "scorer_name": "wild"}
    batch = client.made("/v1/scores/batch", {"scores": [target]})
    dataset, [item] = client.dataset(["a"])
    inline = {"dataset_item_id": item, "output": output, "scores": [{"scorer_name": "wild"}]}
    runs = client.made(f"/v1/experiments/{client.experiment(dataset)}/runs", {"runs": [inline]})
    spans = client.spans(span(output=output, scores=[{"scorer_name": "wild"}])).body
    found = [*batch["skipped"], *runs["skipped"], *spans["skipped"]]
    return [{key: one[key] for key in ("reason", "message")} for one in found]


def test_what_a_scorer_returns_is_checked(service_url: str, tmp_path: Path, theirs: dict[str, str]) -> None:
    """Out of range is unscored, a label is a label, and an error is an error and no zero."""
    with serving(service_url, tmp_path, "wild", **theirs) as client:

        def answer(output: str) -> Any:
            reply = ask(client, client.run(output), "wild")
            return reply.body["value"] if reply.status == 201 else reply.body

        assert answer("reward 0.25") == 0.25
        assert answer("label fine") == "fine"
        far = {
            "score": None,
            "reason": "out_of_range",
            "message": "the scorer's value is 1.5; a score is from 0 to 1",
        }
        assert answer("reward 1.5") == far
        assert answer("reward -0.001") == {**far, "message": far["message"].replace("1.5", "-0.001")}  # type: ignore[union-attr]
        skipped = _skipped_everywhere(client, "reward 1.5")
        assert skipped == [{key: far[key] for key in ("reason", "message")}] * 3
        assert repr(answer("reward -0.0")) == "0.0"
        for bad in ("reward nan", "reward inf", "label", "label a\x00b"):
            assert answer(bad)["error"] == "bad_result", bad
        failed = answer("raise no luck")
        assert (failed["reason"], failed["error"]) == ("scorer_error", "scorer_error")
        assert "no luck" in failed["message"]
        rule = {"project_id": client.project, "name": "r", "scorer_name": "wild"}
        client.made("/v1/rules", rule)
        client.spans(span(id="far", output="reward 7"), span(id="bad", output="raise oh"))
        jobs = {
            job["target_id"]: job["job_id"] for job in client.pages("/v1/jobs", project_id=client.project)
        }
        assert job_end(client, jobs["far"]) == ("unscored", "out_of_range")
        assert job_end(client, jobs["bad"]) == ("failed", "scorer_error")


def test_code_sandbox_has_to_be_listed(client: Client) -> None:
    run = client.run("x")
    reply = ask(client, run, "code_sandbox")
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert "code_sandbox" in reply.body["error"]["message"]
    assert listed(client)["code_sandbox"]["enabled"] is False
    for name in (one for one in BUILT_IN if one != "code_sandbox"):
        assert listed(client)[
            {"exact_match": "normalized_match", "strict_match": "exact_match"}.get(name, name)
        ]["enabled"]


def test_the_list_of_scorers_says_how_to_call_them(client: Client) -> None:
    found = listed(client)
    assert list(found) == sorted(found)
    assert (found["exact_match"]["canonical_name"], found["normalized_match"]["canonical_name"]) == (
        "strict_match",
        "normalized_match",
    )
    assert found["exact_match"]["options"]["properties"]["case_sensitive"] == {
        "type": "boolean",
        "default": True,
    }
    assert found["regex"]["options"]["required"] == ["pattern"]
    assert (found["llm_judge"]["enabled"], found["llm_judge"]["runs_as_job"]) == (False, True)
    assert {"model", "prompt_template", "score_range"} <= set(found["llm_judge"]["options"]["properties"])
    # Other tests of this process may have registered scorers of their own; packages that are not listed stay unread.
    own = {name: one for name, one in found.items() if one["built_in"]}
    assert {"exact_match", "token_f1", "math_equal", "llm_judge"} <= own.keys()
    for name, one in own.items():
        jsonschema_rs.meta.validate(one["options"])
        assert one["version"], name
        assert one["summary"], name
    slow = {name for name, one in own.items() if one["runs_as_job"]}
    assert slow == {"code_sandbox", "embedding_similarity", "llm_judge"}
    document = client.get("/openapi.json").body
    assert "get" in document["paths"]["/v1/scorers"]
    assert "options" in document["components"]["schemas"]["ScorerInfo"]["properties"]


def test_a_score_records_what_computed_it_under_the_name_that_was_sent(client: Client) -> None:
    run = client.run("Paris.", "paris")
    strict = ask(client, run, "exact_match", case_sensitive=False, expected_output="PARIS.").body
    assert (strict["scorer_name"], strict["canonical_name"], strict["value"]) == (
        "exact_match",
        "strict_match",
        1.0,
    )
    assert strict["config"] == {"case_sensitive": False, "expected_output": "PARIS."}
    assert strict["scorer_options"] == {"case_sensitive": False, "strip_whitespace": True}
    assert ask(client, run, "strict_match").body["scorer_name"] == "strict_match"
    normal = ask(client, run, "normalized_match").body
    assert (normal["scorer_name"], normal["canonical_name"], normal["value"]) == (
        "normalized_match",
        "normalized_match",
        1.0,
    )
    given = client.made("/v1/scores", {**ask_body(run), "scorer_name": "exact_match", "value": 0.5})
    assert (given["canonical_name"], given["scorer_version"], given["scorer_options"]) == (None, None, None)
    assert [score["canonical_name"] for score in client.pages("/v1/scores", target_id=run)] == [
        "strict_match",
        "strict_match",
        "normalized_match",
        None,
    ]


def test_what_a_request_has_no_time_for_becomes_jobs(service_url: str) -> None:
    from evenhand.server.config import RequestLimits

    with running_service(
        service_url, limits=RequestLimits(query_seconds=60.0, scoring_seconds=0.0)
    ) as service:
        client = Client(service.url, ADMIN, "late")
        run = client.run("x", "x")
        accepted = ask(client, run, "exact_match")
        assert accepted.status == 202
        assert job_end(client, accepted.body["job_id"]) == ("scored", 1.0)
        assert ask(client, run, "exact_match", wait=60).body["value"] == 1.0
        one = {"target_id": run, "target_type": "run"}
        batch = client.made(
            "/v1/scores/batch",
            {"scores": [{**one, "scorer_name": "contains"}, {**one, "scorer_name": "s", "value": 0}]},
        )
        assert (batch["accepted"], [job["index"] for job in batch["jobs"]]) == (1, [0])
        client.close()


def test_a_rule_whose_scorer_is_not_listed_any_more_says_so_on_its_jobs(
    tmp_path: Path, theirs: dict[str, str]
) -> None:
    url = f"sqlite:///{tmp_path / 'evenhand.db'}"
    with serving(url, tmp_path, "polite", **theirs) as client:
        client.made("/v1/projects", {"id": client.project, "name": "p"})
        client.made("/v1/rules", {"project_id": client.project, "name": "r", "scorer_name": "polite"})
    with serving(url, tmp_path, **theirs) as client:
        client.spans(span(output="please"))
        [job] = client.pages("/v1/jobs", project_id=client.project)
        while job["error"] is None:
            job = client.get(f"/v1/jobs/{job['job_id']}").body
        # another server, or this one with other options, may still compute it
        assert (job["status"], job["error"], job["outcome"]) == ("pending", "scorer_not_enabled", None)
    with serving(url, tmp_path, "polite", **theirs) as client:
        assert job_end(client, job["job_id"]) == ("scored", 1.0)


def test_listing_a_scorer_that_does_not_exist_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with (
        pytest.raises((UnknownName, OptionError), match="did you mean code_sandbox"),
        running_service(f"sqlite:///{tmp_path / 'x.db'}", scorers=("code_sandbx",)),
    ):
        pass
