"""Section 5 of the contract: experiments, runs, summary, comparison, threshold. On both databases."""

from typing import Any

import pytest
from tests.service_harness import Client, Reply, in_parallel

from evenhand.core.ids import new_id


def scored(
    client: Client, values: list[Any], *, dataset: tuple[str, list[str]] | None = None, name: str = "s"
) -> str:
    """An experiment with one run per value, each scored with it (None: not scored)."""
    dataset_id, items = dataset or client.dataset(range(len(values)))
    experiment = client.experiment(dataset_id, auto_complete=False)
    runs = [
        {
            "dataset_item_id": item,
            "output": "x",
            "scores": [] if number is None else [{"scorer_name": name, "value": number}],
        }
        for item, number in zip(items, values, strict=False)
    ]
    client.runs(experiment, runs)
    return experiment


def summary(client: Client, experiment: str) -> Any:
    return client.get(f"/v1/experiments/{experiment}/summary").body


def threshold(client: Client, experiment: str, **more: Any) -> Reply:
    body = {"scorer_name": "s", "metric": "mean", "threshold": 0.5, "comparison": "gte", **more}
    return client.post(f"/v1/experiments/{experiment}/threshold", body)


def test_an_experiment_is_created(client: Client) -> None:
    dataset, _ = client.dataset(["q"])
    body = {"project_id": client.project, "name": "first", "dataset_id": dataset, "metadata": {"k": [1]}}
    made = client.made("/v1/experiments", body)
    assert (made["status"], made["name"], made["dataset_id"]) == ("created", "first", dataset)
    assert (made["metadata"], made["completed_at"], made["dataset_version"]) == ({"k": [1]}, None, 2)
    assert client.get(f"/v1/experiments/{made['id']}").body == made


def test_an_unknown_dataset_is_404(client: Client) -> None:
    body = {"project_id": client.project, "name": "x", "dataset_id": "no-such"}
    assert client.post("/v1/experiments", body).code == "NOT_FOUND"
    assert client.get("/v1/experiments/no-such").code == "NOT_FOUND"


def test_experiments_are_listed_newest_first(client: Client) -> None:
    dataset, _ = client.dataset()
    made = [client.experiment(dataset) for _ in range(3)]
    rows = list(client.pages("/v1/experiments", project_id=client.project, limit=2))
    assert [row["id"] for row in rows] == made[::-1]
    assert client.get("/v1/experiments").code == "PROJECT_REQUIRED"


def test_runs_are_accepted_and_the_first_one_makes_it_running(client: Client) -> None:
    dataset, items = client.dataset(["a", "b", "c"])
    experiment = client.experiment(dataset)
    reply = client.post(
        f"/v1/experiments/{experiment}/runs",
        {"runs": [{"dataset_item_id": items[0], "output": {"a": 1}, "trace_id": "t-1"}]},
    )
    assert (reply.status, reply.body["accepted"], len(reply.body["run_ids"])) == (201, 1, 1)
    assert client.get(f"/v1/experiments/{experiment}").body["status"] == "running"
    [run] = client.get(f"/v1/experiments/{experiment}/runs").body["items"]
    assert (run["id"], run["dataset_item_id"]) == (reply.body["run_ids"][0], items[0])
    assert (run["output"], run["trace_id"], run["scores"], run["repeat"]) == ({"a": 1}, "t-1", [], 0)


@pytest.mark.parametrize("bad", [{}, {"output": None}])
def test_an_output_is_required_and_a_batch_is_atomic(client: Client, bad: dict[str, Any]) -> None:
    dataset, items = client.dataset(["a", "b"])
    experiment = client.experiment(dataset)
    runs = [{"dataset_item_id": items[0], "output": ""}, {"dataset_item_id": items[1], **bad}]
    reply = client.post(f"/v1/experiments/{experiment}/runs", {"runs": runs})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert client.get(f"/v1/experiments/{experiment}/runs").body["items"] == []
    assert client.get(f"/v1/experiments/{experiment}").body["status"] == "created"


def test_the_same_item_twice_is_DUPLICATE_RUN_unless_the_repeat_differs(client: Client) -> None:
    dataset, [item, _] = client.dataset(["a", "b"])
    experiment = client.experiment(dataset, auto_complete=False)
    client.runs(experiment, [{"dataset_item_id": item, "output": 1}])
    path = f"/v1/experiments/{experiment}/runs"
    again = client.post(path, {"runs": [{"dataset_item_id": item, "output": 2}]})
    assert (again.status, again.code) == (409, "DUPLICATE_RUN")
    twice = {"dataset_item_id": item, "output": 3, "repeat": 1}
    assert client.post(path, {"runs": [twice, twice]}).code == "DUPLICATE_RUN"
    assert client.post(path, {"runs": [twice]}).status == 201
    assert len(client.get(path).body["items"]) == 2


def test_a_foreign_item_is_INVALID_DATASET_ITEM(client: Client) -> None:
    dataset, items = client.dataset(["a"])
    _, [foreign] = client.dataset(["b"])
    experiment = client.experiment(dataset)
    for item in (foreign, "no-such"):
        runs = [{"dataset_item_id": items[0], "output": 1}, {"dataset_item_id": item, "output": 1}]
        reply = client.post(f"/v1/experiments/{experiment}/runs", {"runs": runs})
        assert (reply.status, reply.code) == (422, "INVALID_DATASET_ITEM")
    assert client.get(f"/v1/experiments/{experiment}/runs").body["items"] == []


@pytest.mark.parametrize("number", [1.5, True, [1]])
def test_a_bad_inline_value_is_INVALID_SCORE_VALUE(client: Client, number: Any) -> None:
    dataset, [item] = client.dataset(["a"])
    experiment = client.experiment(dataset)
    runs = [{"dataset_item_id": item, "output": 1, "scores": [{"scorer_name": "s", "value": number}]}]
    reply = client.post(f"/v1/experiments/{experiment}/runs", {"runs": runs})
    assert (reply.status, reply.code) == (400, "INVALID_SCORE_VALUE")
    assert client.get(f"/v1/experiments/{experiment}/runs").body["items"] == []


def test_inline_rules_of_a_run_are_worked_out(client: Client) -> None:
    run = client.run(
        "Paris", "paris", scores=[{"scorer_name": "exact_match", "config": {"case_sensitive": False}}]
    )
    [score] = client.get("/v1/scores", target_id=run).body["items"]
    assert (score["scorer_name"], score["value"], score["source"]) == ("exact_match", 1.0, "rule")


def test_it_completes_once_and_takes_no_more_runs(client: Client) -> None:
    dataset, items = client.dataset(["a", "b"])
    experiment = client.experiment(dataset)
    client.runs(experiment, [{"dataset_item_id": items[0], "output": 1}])
    done = client.post(f"/v1/experiments/{experiment}/complete")
    assert done.status == 200, done.raw
    assert (done.body["status"], done.body["completed_at"] is not None) == ("completed", True)
    again = client.post(f"/v1/experiments/{experiment}/complete")
    assert (again.status, again.code) == (422, "EXPERIMENT_COMPLETED")
    late = client.post(
        f"/v1/experiments/{experiment}/runs", {"runs": [{"dataset_item_id": items[1], "output": 1}]}
    )
    assert (late.status, late.code) == (422, "EXPERIMENT_COMPLETED")


def test_it_completes_by_itself_when_every_item_has_a_run(client: Client) -> None:
    dataset, items = client.dataset(["a", "b"])
    experiment, manual = client.experiment(dataset), client.experiment(dataset, auto_complete=False)
    for one in (experiment, manual):
        for item in items:
            client.runs(one, [{"dataset_item_id": item, "output": 1}])
    assert client.get(f"/v1/experiments/{experiment}").body["status"] == "completed"
    assert client.get(f"/v1/experiments/{manual}").body["status"] == "running"


def test_completed_experiments_still_take_scores(client: Client) -> None:
    run = client.run("x")
    assert (
        client.post(
            "/v1/scores", {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 1}
        ).status
        == 201
    )


def test_runs_are_narrowed_and_sorted_by_a_scorers_value(client: Client) -> None:
    experiment = scored(client, [0.1, 0.9, None, 0.5])
    path = f"/v1/experiments/{experiment}/runs"

    def values(**query: Any) -> list[Any]:
        return [
            row["scores"][0]["value"] if row["scores"] else None
            for row in client.pages(path, limit=2, **query)
        ]

    assert values() == [0.1, 0.9, None, 0.5]
    assert values(scorer_name="s") == [0.1, 0.9, 0.5]
    assert values(scorer_name="s", min_value=0.5) == [0.9, 0.5]
    assert values(scorer_name="s", max_value=0.5) == [0.1, 0.5]
    assert values(scorer_name="s", sort="value") == [0.1, 0.5, 0.9]
    assert values(scorer_name="s", sort="-value") == [0.9, 0.5, 0.1]


def test_the_summary_counts_numbers(client: Client) -> None:
    experiment = scored(client, [0.1, 0.2, 0.3, None])
    got = summary(client, experiment)
    assert (got["experiment_id"], got["status"]) == (experiment, "running")
    assert (got["run_count"], got["dataset_item_count"], got["threshold_result"]) == (4, 4, None)
    row = got["scores_by_scorer"]["s"]
    assert (row["scorer_name"], row["scored_run_count"]) == ("s", 3)
    # the exact mean of the decimals 0.1, 0.2, 0.3 is 0.2; a sum of floats would give 0.20000000000000004
    assert (row["mean"], row["min"], row["max"], row["distribution"]) == (0.2, 0.1, 0.3, None)
    assert row["std"] == pytest.approx(0.1)
    assert row["ci_lower"] < 0.2 < row["ci_upper"]


def test_the_summary_counts_labels(client: Client) -> None:
    experiment = scored(client, ["good", "bad", "good"])
    row = summary(client, experiment)["scores_by_scorer"]["s"]
    assert (row["mean"], row["min"], row["max"]) == (None, None, None)
    assert row["distribution"] == {"good": 2, "bad": 1}


def test_the_summary_of_nothing(client: Client) -> None:
    dataset, _ = client.dataset()
    got = summary(client, client.experiment(dataset))
    assert (got["run_count"], got["scores_by_scorer"]) == (0, {})


def test_the_summary_after_the_dataset_is_deleted(client: Client) -> None:
    dataset, items = client.dataset(["a", "b"])
    experiment = scored(client, [0.5, 1.0], dataset=(dataset, items))
    assert client.delete(f"/v1/datasets/{dataset}").status == 200
    got = summary(client, experiment)
    assert (got["dataset_item_count"], got["run_count"]) == (0, 2)
    assert got["scores_by_scorer"]["s"]["mean"] == 0.75
    assert len(client.get(f"/v1/experiments/{experiment}/runs").body["items"]) == 2


def test_repeats_give_pass_at_k_and_pass_hat_k(client: Client) -> None:
    dataset, items = client.dataset(["a", "b"])
    experiment = client.experiment(dataset, auto_complete=False)
    outcomes = {items[0]: [1, 0], items[1]: [1, 1]}
    for item, numbers in outcomes.items():
        for repeat, number in enumerate(numbers):
            scores = [{"scorer_name": "s", "value": number}]
            client.runs(
                experiment, [{"dataset_item_id": item, "output": 1, "repeat": repeat, "scores": scores}]
            )
    row = summary(client, experiment)["scores_by_scorer"]["s"]
    # pass@1 = mean(1/2, 1) = 0.75, pass@2 = mean(1, 1) = 1; pass^2 = mean(0, 1) = 0.5
    assert row["pass_at_k"]["1"] == pytest.approx(0.75)
    assert row["pass_at_k"]["2"] == pytest.approx(1.0)
    assert row["pass_hat_k"]["2"] == pytest.approx(0.5)


def test_two_experiments_are_compared(client: Client) -> None:
    dataset = client.dataset(range(5))
    base = scored(client, [0.5, 0.5, 0.5, 1.0, None], dataset=dataset)
    other = scored(client, [0.7, 0.3, 0.5, None, 1.0], dataset=dataset)
    got = client.get(f"/v1/experiments/{base}/compare/{other}").body
    assert (got["base_experiment_id"], got["compare_experiment_id"]) == (base, other)
    [row] = got["scorer_comparisons"]
    assert (row["scorer_name"], row["base_mean"], row["compare_mean"]) == ("s", 0.625, 0.625)
    assert row["delta"] == 0
    counts = [row[name] for name in ("improved_count", "regressed_count", "unchanged_count")]
    assert (counts, row["only_in_base"], row["only_in_compare"]) == ([1, 1, 1], 1, 1)
    items = {item["dataset_item_id"]: item for item in got["per_item_results"]}
    first = items[dataset[1][0]]
    assert (first["base_score"], first["compare_score"], first["delta"]) == (0.5, 0.7, 0.2)


def test_an_experiment_compares_with_itself(client: Client) -> None:
    experiment = scored(client, [0.5, 1.0])
    [row] = client.get(f"/v1/experiments/{experiment}/compare/{experiment}").body["scorer_comparisons"]
    assert (row["delta"], row["unchanged_count"]) == (0, 2)
    # nothing to estimate a spread from: not even what could be shown
    assert row["minimum_detectable_effect"] is None
    assert -1 <= row["ci_lower"] < 0 < row["ci_upper"] <= 1


def test_another_dataset_is_INCOMPATIBLE_EXPERIMENTS(client: Client) -> None:
    reply = client.get(f"/v1/experiments/{scored(client, [1])}/compare/{scored(client, [1])}")
    assert (reply.status, reply.code) == (422, "INCOMPATIBLE_EXPERIMENTS")
    assert client.get(f"/v1/experiments/{scored(client, [1])}/compare/no-such").code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("metric", "comparison", "bound", "passed", "gap"),
    [
        ("mean", "gte", 0.8, True, 0.0),
        ("mean", "gt", 0.8, False, 0.0),
        ("mean", "lte", 0.8, True, 0.0),
        ("mean", "lt", 0.8, False, 0.0),
        ("min", "gte", 0.7, True, 0.0),
        ("max", "gte", 0.95, False, -0.05),
        ("mean", "gte", 0, True, 0.8),
    ],
)
def test_a_threshold_is_compared_on_exact_decimals(
    client: Client, metric: str, comparison: str, bound: float, passed: bool, gap: float
) -> None:
    # (0.7 + 0.8 + 0.9) / 3 = 0.8 exactly; in floats the sum is 2.4000000000000004 and the mean 0.8000000000000002
    experiment = scored(client, [0.7, 0.8, 0.9])
    reply = threshold(client, experiment, metric=metric, comparison=comparison, threshold=bound)
    assert reply.status == 200
    got = reply.body
    assert (got["passed"], got["scorer_name"], got["metric"], got["threshold"]) == (
        passed,
        "s",
        metric,
        bound,
    )
    assert got["gap"] == pytest.approx(gap, abs=1e-12)
    assert summary(client, experiment)["threshold_result"] is None


def test_nothing_scored_does_not_pass_a_threshold(client: Client) -> None:
    experiment = scored(client, [None])
    got = threshold(client, experiment, threshold=0).body
    assert (got["actual_value"], got["passed"]) == (None, False)


@pytest.mark.parametrize(
    "more",
    [
        {"metric": "median"},
        {"comparison": "eq"},
        {"threshold": "0.5"},
        {"threshold": None},
        {"scorer_name": 5},
    ],
)
def test_a_malformed_threshold_is_INVALID_REQUEST(client: Client, more: dict[str, Any]) -> None:
    reply = threshold(client, scored(client, [1]), **more)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_50_parallel_runs_for_one_item_make_one_run(client: Client) -> None:
    dataset, [item] = client.dataset(["a"])
    experiment = client.experiment(dataset)

    def submit(_: int) -> int:
        own = client.again()
        try:
            return own.post(
                f"/v1/experiments/{experiment}/runs", {"runs": [{"dataset_item_id": item, "output": 1}]}
            ).status
        finally:
            own.close()

    statuses = in_parallel(50, submit)
    # the winner completes the experiment, so a loser may be told so instead
    assert statuses.count(201) == 1
    assert set(statuses) <= {201, 409, 422}
    manual = client.experiment(dataset, auto_complete=False)
    experiment = manual
    statuses = in_parallel(50, submit)
    assert (statuses.count(201), statuses.count(409)) == (1, 49)


def test_50_parallel_copies_of_an_idempotent_request_create_one_object(client: Client) -> None:
    run = client.run("x")
    key = new_id()
    body = {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 1}

    def submit(_: int) -> tuple[int, str]:
        own = client.again()
        try:
            reply = own.post("/v1/scores", body, Idempotency_Key=key)
            return reply.status, reply.body["id"]
        finally:
            own.close()

    answers = in_parallel(50, submit)
    assert {status for status, _ in answers} == {201}
    assert len({made for _, made in answers}) == 1
    assert len(client.get("/v1/scores", target_id=run).body["items"]) == 1
    other = client.post("/v1/scores", {**body, "value": 0}, Idempotency_Key=key)
    assert (other.status, other.code) == (409, "CONFLICT")
