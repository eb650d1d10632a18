"""Experiments, runs, summaries, comparisons and thresholds over HTTP, on both databases."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.service import ServiceUnderTest


class Bench:
    """A dataset with items, and experiments on it."""

    def __init__(self, service: ServiceUnderTest, expected: list[Any]) -> None:
        self.service = service
        self.dataset = service.post("/v1/datasets", {"project_id": "p", "name": "d"}).body["id"]
        self.items = [
            service.post(f"/v1/datasets/{self.dataset}/items", {"input": n, "expected_output": e}).body["id"]
            for n, e in enumerate(expected)
        ]

    def experiment(self, **more: Any) -> str:
        body = {"project_id": "p", "name": "e", "dataset_id": self.dataset, **more}
        reply = self.service.post("/v1/experiments", body)
        assert reply.status == 201, reply
        return str(reply.body["id"])

    def run(self, experiment: str, item: int, output: Any = "x", **more: Any) -> Any:
        body = {"runs": [{"dataset_item_id": self.items[item], "output": output, **more}]}
        return self.service.post(f"/v1/experiments/{experiment}/runs", body)

    def score(self, run_id: str, name: str, value: Any = None, **more: Any) -> Any:
        body = {"target_id": run_id, "target_type": "run", "scorer_name": name, "value": value, **more}
        return self.service.post("/v1/scores", body)


def test_an_experiment_starts_with_its_first_run_and_completes_with_its_last(
    service: ServiceUnderTest,
) -> None:
    bench = Bench(service, ["a", "b"])
    experiment = bench.experiment(metadata={"model": "m"})
    made = service.get(f"/v1/experiments/{experiment}").body
    assert (made["status"], made["dataset_version"], made["metadata"]) == ("created", 3, {"model": "m"})
    reply = bench.run(experiment, 0)
    assert (reply.status, reply.body["accepted"], len(reply.body["run_ids"])) == (201, 1, 1)
    assert service.get(f"/v1/experiments/{experiment}").body["status"] == "running"
    bench.run(experiment, 1)
    done = service.get(f"/v1/experiments/{experiment}").body
    assert done["status"] == "completed"
    assert done["completed_at"] is not None
    assert bench.run(experiment, 1, repeat=1).code == "EXPERIMENT_COMPLETED"
    assert service.post(f"/v1/experiments/{experiment}/complete").code == "EXPERIMENT_COMPLETED"


def test_runs_are_all_stored_or_none(service: ServiceUnderTest) -> None:
    bench = Bench(service, ["a", "b", "c"])
    experiment = bench.experiment()
    runs = f"/v1/experiments/{experiment}/runs"
    bench.run(experiment, 0)
    item = bench.items[1]
    mixed = [{"dataset_item_id": item, "output": 1}, {"dataset_item_id": bench.items[0], "output": 1}]
    assert service.post(runs, {"runs": mixed}).code == "DUPLICATE_RUN"
    foreign = [{"dataset_item_id": item, "output": 1}, {"dataset_item_id": "nowhere", "output": 1}]
    assert service.post(runs, {"runs": foreign}).code == "INVALID_DATASET_ITEM"
    bad = [{"dataset_item_id": item, "output": 1, "scores": [{"scorer_name": "s", "value": 2}]}]
    assert service.post(runs, {"runs": bad}).code == "INVALID_SCORE_VALUE"
    twice = [{"dataset_item_id": item, "output": 1}, {"dataset_item_id": item, "output": 2}]
    assert service.post(runs, {"runs": twice}).code == "DUPLICATE_RUN"
    assert service.post(runs, {"runs": [{"dataset_item_id": item, "output": None}]}).code == "INVALID_REQUEST"
    assert service.post(runs, {"runs": []}).code == "INVALID_REQUEST"
    assert len(service.get(runs).body["items"]) == 1


def test_fifty_parallel_runs_for_one_item_store_one(service: ServiceUnderTest) -> None:
    bench = Bench(service, ["a", "b"])
    experiment = bench.experiment()
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: bench.run(experiment, 0), range(50)))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 49
    assert {reply.code for reply in replies} == {None, "DUPLICATE_RUN"}


def test_a_summary_counts_every_score_exactly(service: ServiceUnderTest) -> None:
    bench = Bench(service, ["a", "b", "c"])
    experiment = bench.experiment()
    for n, value in enumerate([0.1, 0.2, 0.3]):
        scores = [
            {"scorer_name": "s", "value": value},
            {"scorer_name": "kind", "value": "good" if n else "bad"},
        ]
        bench.run(experiment, n, scores=scores)
    summary = service.get(f"/v1/experiments/{experiment}/summary").body
    assert (summary["run_count"], summary["dataset_item_count"], summary["threshold_result"]) == (3, 3, None)
    s, kind = summary["scores_by_scorer"]["s"], summary["scores_by_scorer"]["kind"]
    # (0.1 + 0.2 + 0.3) / 3 in floats is 0.20000000000000004.
    assert (s["mean"], s["min"], s["max"], s["scored_run_count"], s["distribution"]) == (
        0.2,
        0.1,
        0.3,
        3,
        None,
    )
    assert s["std"] == pytest.approx(0.1)
    # 0.2 ± t(0.975, 2)·0.1/√3 with t = 4.302652729911275
    # Student's t; its lower end would be below 0, where no mean of scores is
    assert s["ci_upper"] == pytest.approx(0.2 + 4.302652729911275 * 0.1 / 3**0.5)
    assert s["ci_lower"] == 0.0
    assert kind["distribution"] == {"good": 2, "bad": 1}
    assert (kind["mean"], kind["min"], kind["max"], kind["scored_run_count"]) == (None, None, None, 3)
    service.delete(f"/v1/datasets/{bench.dataset}")
    assert service.get(f"/v1/experiments/{experiment}/summary").body["dataset_item_count"] == 0


def test_two_scores_of_one_scorer_on_one_run_are_both_kept_and_counted(service: ServiceUnderTest) -> None:
    bench = Bench(service, ["a", "b"])
    experiment = bench.experiment()
    run = bench.run(experiment, 0).body["run_ids"][0]
    bench.score(run, "s", 0.2)
    bench.score(run, "s", 0.6)
    listed = service.get("/v1/scores", target_id=run, target_type="run").body["items"]
    assert [score["value"] for score in listed] == [0.2, 0.6]
    s = service.get(f"/v1/experiments/{experiment}/summary").body["scores_by_scorer"]["s"]
    assert (s["mean"], s["scored_run_count"], s["score_count"]) == (0.4, 1, 2)


def test_repeats_give_pass_at_k(service: ServiceUnderTest) -> None:
    """Two items, two tries each: passes 2 and 1. pass@1 = (1 + 1/2)/2, pass@2 = 1, pass^2 = (1 + 0)/2."""
    bench = Bench(service, ["a", "b"])
    experiment = bench.experiment(auto_complete=False)
    for item, repeat, value in [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0)]:
        bench.run(experiment, item, repeat=repeat, scores=[{"scorer_name": "ok", "value": value}])
    ok = service.get(f"/v1/experiments/{experiment}/summary").body["scores_by_scorer"]["ok"]
    assert ok["pass_at_k"] == {"1": 0.75, "2": 1.0}
    assert ok["pass_hat_k"] == {"1": 0.75, "2": 0.5}


def test_a_mean_of_080_reaches_080(service: ServiceUnderTest) -> None:
    bench = Bench(service, list("abcdef"))
    experiment = bench.experiment()
    for n, value in enumerate([0.7, 0.9, 0.8, 0.8, 0.8]):
        bench.run(
            experiment, n, scores=[{"scorer_name": "s", "value": value}, {"scorer_name": "l", "value": "x"}]
        )

    def ask(comparison: str, threshold: float, metric: str = "mean", name: str = "s") -> Any:
        body = {"scorer_name": name, "metric": metric, "threshold": threshold, "comparison": comparison}
        return service.post(f"/v1/experiments/{experiment}/threshold", body)

    assert ask("gte", 0.8).body == {
        "passed": True,
        "actual_value": 0.8,
        "threshold": 0.8,
        "scorer_name": "s",
        "metric": "mean",
        "gap": 0.0,
    }
    assert ask("gt", 0.8).body["passed"] is False
    assert ask("lte", 0.8).body["passed"] is True
    assert ask("lt", 0.8).body["passed"] is False
    assert ask("gte", 0.0, "min").body["gap"] == 0.7
    assert ask("lt", 0.9, "max").body["passed"] is False
    nothing = ask("gte", 0.0, name="nobody").body
    assert (nothing["actual_value"], nothing["passed"], nothing["gap"]) == (None, False, None)
    assert ask("gte", 0.5, name="l").code == "UNSUPPORTED_THRESHOLD_TYPE"
    assert ask("gte", 0.5, "median").code == "INVALID_REQUEST"


def test_a_comparison_counts_items_and_carries_its_uncertainty(service: ServiceUnderTest) -> None:
    bench = Bench(service, list("abcde"))
    base, other = bench.experiment(), bench.experiment()
    for n, (first, second) in enumerate([(0.1, 0.3), (0.5, 0.5), (0.9, 0.4), (0.2, 0.6)]):
        bench.run(base, n, scores=[{"scorer_name": "s", "value": first}, {"scorer_name": "l", "value": "x"}])
        bench.run(
            other,
            n,
            scores=[{"scorer_name": "s", "value": second}, {"scorer_name": "l", "value": "xy"[n % 2]}],
        )
    bench.run(other, 4, scores=[{"scorer_name": "s", "value": 1}])
    compared = service.get(f"/v1/experiments/{base}/compare/{other}").body
    assert (compared["base_experiment_id"], compared["compare_experiment_id"]) == (base, other)
    label, s = compared["scorer_comparisons"]
    counts = ("improved_count", "regressed_count", "unchanged_count", "only_in_base", "only_in_compare")
    assert [s[name] for name in counts] == [2, 1, 1, 0, 1]
    assert [label[name] for name in counts] == [0, 0, 2, 0, 0]
    assert (s["base_mean"], s["compare_mean"], s["delta"]) == (0.425, 0.56, 0.135)
    assert s["paired_delta"] == 0.025
    assert s["ci_lower"] < 0.025 < s["ci_upper"]
    assert s["test"].startswith("sign flips of whole problems")
    assert 0 < s["p_value"] <= 1
    # Of the sign patterns of three changed items none is rare enough: no drop can be shown.
    assert s["minimum_detectable_effect"] is None
    mine = [r for r in compared["per_item_results"] if r["scorer_name"] == "s"]
    first = next(r for r in mine if r["dataset_item_id"] == bench.items[0])
    assert (first["base_score"], first["compare_score"], first["delta"]) == (0.1, 0.3, 0.2)
    last = next(r for r in mine if r["dataset_item_id"] == bench.items[4])
    assert (last["base_score"], last["compare_score"], last["delta"]) == (None, 1.0, None)
    itself = service.get(f"/v1/experiments/{base}/compare/{base}").body
    assert [c["delta"] for c in itself["scorer_comparisons"]] == [None, 0.0]


def test_experiments_on_different_datasets_are_not_compared(service: ServiceUnderTest) -> None:
    bench = Bench(service, ["a"])
    other_dataset = service.post("/v1/datasets", {"project_id": "p", "name": "d2"}).body["id"]
    first, second = bench.experiment(), bench.experiment(dataset_id=other_dataset)
    assert service.get(f"/v1/experiments/{first}/compare/{second}").code == "INCOMPATIBLE_EXPERIMENTS"
    assert service.get(f"/v1/experiments/{first}/compare/nobody").code == "NOT_FOUND"


def test_runs_are_filtered_and_sorted_by_a_scorers_newest_value(service: ServiceUnderTest) -> None:
    bench = Bench(service, list("abcd"))
    experiment = bench.experiment(auto_complete=False)
    runs = [bench.run(experiment, n).body["run_ids"][0] for n in range(4)]
    for run, value in zip(runs[:3], [0.9, 0.1, 0.5], strict=True):
        bench.score(run, "s", value)
    bench.score(runs[0], "s", 0.3)

    def ids(**query: Any) -> list[str]:
        reply = service.get(f"/v1/experiments/{experiment}/runs", **query)
        assert reply.status == 200, reply
        return [run["id"] for run in reply.body["items"]]

    assert ids() == runs
    assert ids(scorer_name="s") == runs[:3]
    assert ids(scorer_name="s", sort="value") == [runs[1], runs[0], runs[2]]
    assert ids(scorer_name="s", sort="-value") == [runs[2], runs[0], runs[1]]
    assert ids(scorer_name="s", min_value=0.4) == [runs[2]]
    assert ids(scorer_name="s", max_value=0.3) == [runs[0], runs[1]]
    page = service.get(f"/v1/experiments/{experiment}/runs", scorer_name="s", sort="value", limit=2).body
    rest = ids(scorer_name="s", sort="value", limit=2, cursor=page["next_cursor"])
    assert [run["id"] for run in page["items"]] + rest == [runs[1], runs[0], runs[2]]
    assert service.get(f"/v1/experiments/{experiment}/runs", sort="value").code == "INVALID_REQUEST"
