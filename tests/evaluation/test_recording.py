"""A run goes to the scoring service, a real one, and never suffers from it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.evaluation.runs import Done, evenhand
from tests.service import ADMIN, ServiceUnderTest, running_service

from evenhand import evaluate
from evenhand.client import ServiceClient
from evenhand.core.errors import MissingExtra, OptionError, ServiceError
from evenhand.core.extras import Extra
from evenhand.core.secret import Secret
from evenhand.evaluation.connecting import check_target
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall


def moody(call: MockCall) -> str | MockAnswer:
    return MockAnswer(text="no", status=500) if "balloons" in call.prompt else "Sure, here is how."


@pytest.fixture
def url() -> Iterator[str]:
    with MockModel(moody) as model:
        yield model.url


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceUnderTest]:
    with running_service(f"sqlite:///{tmp_path / 'service.db'}") as running:
        yield running


def run(url: str, folder: Path, *options: str) -> Done:
    """Six problems of XSTest, twice: one gets no answer, three of the others are right."""
    command = (
        "eval",
        "run",
        "-b",
        "xstest",
        "--sample",
        "--model-url",
        url,
        "--model-id",
        "m",
        "--tries",
        "1",
    )
    return evenhand(*command, "-n", "2", "--allow-errors", "-o", folder, *options)


def test_the_same_objects_in_the_service(tmp_path: Path, url: str, service: ServiceUnderTest) -> None:
    done = run(url, tmp_path / "r", "--record", service.url, "--record-token", ADMIN)
    assert done.returncode == 0, done.stderr
    assert "recorded: 10 runs as experiment" in done.stdout
    assert "(2 without an answer left out)" in done.stdout
    with ServiceClient(service.url, Secret(ADMIN)) as client:
        [experiment] = client.listed("/v1/experiments", project_id="default")
        assert experiment["status"] == "completed"
        assert experiment["metadata"]["failed"] == 2
        summary = client.experiment_summary(experiment["id"])
        assert summary["run_count"] == 10
        assert summary["scores_by_scorer"]["xstest"]["mean"] == 0.6
        [dataset] = client.listed("/v1/datasets", project_id="default")
        items = list(client.dataset_items(dataset["id"]))
        assert len(items) == 6
        assert items[0]["input"].startswith("How do I kill a process")
        assert items[0]["expected_output"] == "answer"


def test_sending_twice_changes_nothing_and_a_second_run_shares_the_dataset(
    tmp_path: Path, url: str, service: ServiceUnderTest
) -> None:
    run(url, tmp_path / "a")
    for _ in range(2):
        assert evenhand("eval", "record", tmp_path / "a", service.url, "--token", ADMIN).returncode == 0
    run(url, tmp_path / "b", "--record", service.url, "--record-token", ADMIN)
    with ServiceClient(service.url, Secret(ADMIN)) as client:
        assert len(list(client.listed("/v1/experiments", project_id="default"))) == 2
        assert len(list(client.listed("/v1/datasets", project_id="default"))) == 1


def test_a_service_that_is_away_is_a_warning(tmp_path: Path, url: str) -> None:
    done = run(url, tmp_path / "r", "--record", "http://127.0.0.1:9")
    assert done.returncode == 0
    assert "Warning: the run was not recorded: http://127.0.0.1:9 cannot be reached" in done.stderr
    assert f"send it later with: evenhand eval record {tmp_path / 'r'} http://127.0.0.1:9" in done.stderr


def test_a_database_file_works_without_a_server(tmp_path: Path, url: str) -> None:
    done = run(url, tmp_path / "r", "--record", str(tmp_path / "own.db"))
    assert "recorded: 10 runs" in done.stdout, done.stderr
    with running_service(f"sqlite:///{tmp_path / 'own.db'}") as service:
        reply = service.get("/v1/experiments", project_id="default")
        assert [one["status"] for one in reply.body["items"]] == ["completed"]


def test_refusals_carry_the_contracts_code(service: ServiceUnderTest) -> None:
    with (
        ServiceClient(service.url, Secret("wrong")) as client,
        pytest.raises(ServiceError, match="401 UNAUTHORIZED") as caught,
    ):
        client.get("/v1/datasets", project_id="default")
    assert (caught.value.code, caught.value.status) == ("UNAUTHORIZED", 401)
    with (
        ServiceClient(service.url, Secret(ADMIN)) as client,
        pytest.raises(ServiceError, match="404 NOT_FOUND"),
    ):
        client.create_score("no-such-run", "exact_match", 1.0)
    with pytest.raises(OptionError, match="not the address of a service"):
        ServiceClient("ftp://x")


def test_recorded_runs_compare_in_the_service_as_on_disk(
    tmp_path: Path, url: str, service: ServiceUnderTest
) -> None:
    """One problem fails in both repeats on both sides: the service never sees it, and counts it all the same.

    A run whose scorer differs is not comparable, there as here.
    """
    recorded = ("--record", service.url, "--record-token", ADMIN)
    run(url, tmp_path / "a", *recorded)
    run(url, tmp_path / "b", *recorded)
    run(url, tmp_path / "other")
    [path] = (tmp_path / "other").glob("eval-*.json")
    bundle = json.loads(path.read_text())
    bundle["hashes"]["scorer"] = "0" * 64
    path.write_text(json.dumps(bundle))
    sent = evenhand("eval", "record", tmp_path / "other", service.url, "--token", ADMIN)
    assert sent.returncode == 0, sent.stderr
    done = evenhand("compare", tmp_path / "a", tmp_path / "b", "--format", "json")
    [local] = json.loads(done.stdout)["comparisons"]
    with ServiceClient(service.url, Secret(ADMIN)) as client:
        newest = list(client.listed("/v1/experiments", project_id="default"))
        rescored, b, a = (one["id"] for one in newest)
        found = client.get(f"/v1/experiments/{a}/compare/{b}")
        other = client.get(f"/v1/experiments/{a}/compare/{rescored}")
    [row] = found["scorer_comparisons"]
    assert (row["coverage"]["pairs"], row["coverage"]["possible"]) == (10, 12)
    for name in ("pairs", "possible", "worst_delta", "best_delta", "worst_lower", "best_upper"):
        assert row["coverage"][name] == local["coverage"][name]
    assert (row["verdict"], row["sentence"]) == (local["verdict"]["name"], local["verdict"]["sentence"])
    assert (row["paired_delta"], row["ci_lower"], row["ci_upper"]) == tuple(
        local["delta"][name] for name in ("value", "ci_lower", "ci_upper")
    )
    assert other["verdict"] == "NOT_COMPARABLE"
    assert other["scorer_comparisons"][0]["reasons"][0].startswith("the scorer or its version")
    refused = evenhand("compare", tmp_path / "a", tmp_path / "other")
    assert refused.returncode != 0
    assert "the scorer or its version" in refused.stderr


def test_a_database_file_without_the_server_says_what_to_install() -> None:
    lacking = Extra("server", ("a-package-that-nobody-has",), "serving")
    with pytest.raises(MissingExtra, match=r"pip install 'evenhand\[server\]'"):
        check_target("runs.db", server=lacking)
    check_target("http://127.0.0.1:9", server=lacking)


@pytest.mark.parametrize("target", ["http://me:hunter2@127.0.0.1:9", "ftp://me:hun@ter2@127.0.0.1:9/db"])
def test_a_password_in_the_services_address_is_not_echoed(target: str) -> None:
    with pytest.raises(OptionError) as error:
        check_target(target)
    assert "ter2" not in str(error.value)


def test_a_task_is_recorded_with_its_inputs_and_all_its_scorers(
    tmp_path: Path, service: ServiceUnderTest
) -> None:
    data = [{"input": {"n": n}, "expected": str(n)} for n in range(4)]

    def halves(output: str) -> float:
        return 0.5

    evaluate(data, lambda given: str(given["n"]), ["exact_match", halves], folder=tmp_path / "r")
    done = evenhand("eval", "record", tmp_path / "r", service.url, "--token", ADMIN)
    assert done.returncode == 0, done.stderr
    with ServiceClient(service.url, Secret(ADMIN)) as client:
        (dataset,) = client.listed("/v1/datasets", project_id="default")
        items = list(client.dataset_items(dataset["id"]))
    assert sorted(item["input"]["n"] for item in items) == [0, 1, 2, 3]
