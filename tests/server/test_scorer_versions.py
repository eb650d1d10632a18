"""Two versions of one scorer are never averaged or compared silently. On both databases."""

from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner
from tests.server.test_listed_scorers import ask, serving
from tests.service_harness import Client
from tests.their_scorers import install

from evenhand.cli.db import command as db
from evenhand.core.objects.experiments import ExperimentSummary
from evenhand.server.pages.scorer_cells import scorer_cell


def experiment(client: Client, dataset: str, items: list[str], outputs: list[str]) -> tuple[str, list[str]]:
    made = client.experiment(dataset, auto_complete=False)
    runs = [{"dataset_item_id": i, "output": o} for i, o in zip(items, outputs, strict=True)]
    return made, client.runs(made, runs)


def scored(client: Client, experiment_id: str) -> Any:
    return client.get(f"/v1/experiments/{experiment_id}/summary").body["scores_by_scorer"]["polite"]


def threshold(client: Client, experiment_id: str) -> Any:
    body = {"scorer_name": "polite", "metric": "mean", "threshold": 0.5}
    return client.post(f"/v1/experiments/{experiment_id}/threshold", body)


def test_versions_are_kept_apart_and_decide_nothing_together(service_url: str, tmp_path: Path) -> None:
    theirs = install(tmp_path)
    outputs = ["please", "please", "no", "please"]
    with serving(service_url, tmp_path, "polite", **theirs) as client:
        dataset, items = client.dataset(["a", "b", "c", "d"])
        first, first_runs = experiment(client, dataset, items, outputs)
        for run in first_runs:
            assert ask(client, run, "polite").status == 201
        row = scored(client, first)
        # 3 of 4, all by version 1
        assert (row["mean"], row["mixed_versions"], row["score_count"]) == (0.75, False, 4)
        [version] = row["versions"]
        assert (version["canonical_name"], version["version"], version["score_count"], version["mean"]) == (
            "polite",
            "1",
            4,
            0.75,
        )
        assert version["options"]["word"] == "please"
        assert version["options_differ"] is False
        assert threshold(client, first).body["passed"] is True
    with serving(service_url, tmp_path, "polite", THEIR_VERSION="2", **theirs) as client:
        second, second_runs = experiment(client, dataset, items, outputs)
        for run in second_runs:
            assert ask(client, run, "polite").status == 201
        compared = client.get(f"/v1/experiments/{first}/compare/{second}").body["scorer_comparisons"]
        [polite] = [one for one in compared if one["scorer_name"] == "polite"]
        assert polite["not_comparable"] == (
            "the base was scored by polite 1, the compared experiment by polite 2"
        )
        assert (polite["p_value"], polite["ci_lower"], polite["test"]) == (None, None, None)
        assert (polite["base_mean"], polite["compare_mean"], polite["paired_count"]) == (0.75, 0.75, 4)
        same = client.get(f"/v1/experiments/{second}/compare/{second}").body["scorer_comparisons"][0]
        assert (same["not_comparable"], same["p_value"]) == (None, 1.0)
        # now the first experiment gets scores of version 2 as well: one of them with other options
        assert ask(client, first_runs[0], "polite", word="no").body["value"] == 0.0
        assert ask(client, first_runs[1], "polite").body["value"] == 1.0
        body = {"target_id": first_runs[2], "target_type": "run", "scorer_name": "polite", "value": 0.25}
        client.made("/v1/scores", body)
        row = scored(client, first)
        assert row["mixed_versions"] is True
        assert row["mixed"] == "scores of polite 1, polite 2 and an unknown version"
        # the contract's mean is over all scores of the name: (3 + 0 + 1 + 0.25) / 7
        assert row["mean"] == 4.25 / 7
        assert [
            (v["version"], v["score_count"], v["mean"], v["options_differ"]) for v in row["versions"]
        ] == [
            ("1", 4, 0.75, False),
            ("2", 2, 0.5, True),
            (None, 1, 0.25, False),
        ]
        # the first page shows them apart too
        shown = client.get(f"/v1/experiments/{first}/summary").body
        for one in shown["scores_by_scorer"]["polite"]["versions"]:
            one["options"] = None  # msgspec reads no optional raw text
        cell = scorer_cell(msgspec.convert(shown, ExperimentSummary).scores_by_scorer["polite"])
        assert cell.text == "polite 1 0.750 (4), polite 2 0.500 (2), submitted 0.250 (1)"
        refused = threshold(client, first)
        assert (refused.status, refused.code) == (422, "MIXED_SCORER_VERSIONS")
        assert refused.body["error"]["details"]["versions"] == ["polite 1", "polite 2"]
        assert refused.body["error"]["details"]["mixed"] == row["mixed"]
        compared = client.get(f"/v1/experiments/{first}/compare/{second}").body["scorer_comparisons"]
        assert compared[0]["not_comparable"] == (
            "the base experiment mixes scores of polite 1, polite 2 and an unknown version"
        )
        # a place with no room for a warning leaves the mean out
        client.post(f"/v1/experiments/{first}/complete", {})
        summary = client.get(f"/v1/projects/{client.project}/summary").body["experiments"]
        assert summary["most_recent_completed"]["id"] == first
        assert summary["most_recent_completed"]["mean_scores"] == {}
    done = CliRunner().invoke(db, ["check", "--database", service_url])
    assert (done.exit_code, done.output) == (0, "Everything agrees with a recount.\n")


def test_submitted_values_have_no_version_and_stay_one_measure(client: Client) -> None:
    run = client.run("Paris", "Paris")
    for value in (0.5, 1.0):
        client.made(
            "/v1/scores",
            {"target_id": run, "target_type": "run", "scorer_name": "exact_match", "value": value},
        )
    [row] = list(client.pages("/v1/experiments", project_id=client.project))
    got = client.get(f"/v1/experiments/{row['id']}/summary").body["scores_by_scorer"]["exact_match"]
    assert (got["mean"], got["versions"], got["mixed_versions"]) == (0.75, [], False)
    assert got["mixed"] is None


def expected(*texts: str) -> list[dict[str, str]]:
    return [{"input": "?", "expected_output": text} for text in texts]


def submit(client: Client, run: str, value: float, scorer_name: str = "exact_match") -> None:
    body = {"target_id": run, "target_type": "run", "scorer_name": scorer_name, "value": value}
    client.made("/v1/scores", body)


def compute(client: Client, run: str, **options: Any) -> None:
    body = {"target_id": run, "target_type": "run", "scorer_name": "exact_match", "config": options}
    client.made("/v1/scores", body)


def row_of(client: Client, experiment_id: str) -> Any:
    return client.get(f"/v1/experiments/{experiment_id}/summary").body["scores_by_scorer"]["exact_match"]


def check_threshold(client: Client, experiment_id: str, **more: Any) -> Any:
    body = {"scorer_name": "exact_match", "metric": "mean", "threshold": 0.5, **more}
    return client.post(f"/v1/experiments/{experiment_id}/threshold", body)


def shown_mean(client: Client, experiment_id: str) -> Any:
    """What the project's summary, where there is no room for a warning, says about the experiment."""
    client.post(f"/v1/experiments/{experiment_id}/complete", {})
    summary = client.get(f"/v1/projects/{client.project}/summary").body["experiments"]
    assert summary["most_recent_completed"]["id"] == experiment_id
    return summary["most_recent_completed"]["mean_scores"]


def test_a_submitted_value_beside_a_computed_one_decides_nothing(client: Client) -> None:
    dataset, items = client.dataset(expected("a", "b"))
    made, runs = experiment(client, dataset, items, ["a", "x"])
    compute(client, runs[0])
    assert row_of(client, made)["mixed"] is None
    assert check_threshold(client, made).body["passed"] is True
    submit(client, runs[1], 0.5)
    row = row_of(client, made)
    assert row["mixed"] == "scores of strict_match 1 and an unknown version"
    # (1 + 0.5) / 2: the contract's mean over all scores of the name, flagged
    assert (row["mean"], row["mixed_versions"]) == (0.75, True)
    refused = check_threshold(client, made)
    assert (refused.status, refused.code) == (422, "MIXED_SCORER_VERSIONS")
    forced = check_threshold(client, made, force=True).body
    assert (forced["passed"], forced["actual_value"]) == (True, 0.75)
    assert forced["caveats"] == ["decided by force over scores of strict_match 1 and an unknown version"]
    [same] = client.get(f"/v1/experiments/{made}/compare/{made}").body["scorer_comparisons"]
    assert (same["verdict"], same["p_value"]) == ("NOT_COMPARABLE", None)
    assert same["not_comparable"] == (
        "the base experiment mixes scores of strict_match 1 and an unknown version"
    )
    assert shown_mean(client, made) == {}


def test_several_options_of_one_version_are_never_mixed_silently(client: Client) -> None:
    dataset, items = client.dataset(expected("a", "b"))
    made, runs = experiment(client, dataset, items, ["A", "b"])
    compute(client, runs[0], case_sensitive=False)
    compute(client, runs[1])
    row = row_of(client, made)
    assert (row["mean"], row["mixed"]) == (1.0, "scores of strict_match 1 with several options")
    assert row["mixed_versions"] is False
    decided = check_threshold(client, made).body
    assert (decided["passed"], decided["actual_value"]) == (True, 1.0)
    assert decided["caveats"] == ["decided over scores of strict_match 1 with several options"]
    [same] = client.get(f"/v1/experiments/{made}/compare/{made}").body["scorer_comparisons"]
    assert same["not_comparable"] == f"the base experiment mixes {row['mixed']}"
    assert shown_mean(client, made) == {}


def test_computed_scores_are_not_compared_with_submitted_ones(client: Client) -> None:
    """The name alone does not make them one measure; the library's `exact_match` is another function."""
    dataset, items = client.dataset(expected("a", "b", "c"))
    computed, runs = experiment(client, dataset, items, ["a", "b", "x"])
    for run in runs:
        compute(client, run)
    submitted = []
    for _ in range(2):
        made, runs = experiment(client, dataset, items, ["a", "b", "x"])
        for run in runs:
            submit(client, run, 1.0)
        submitted.append(made)
    path = f"/v1/experiments/{computed}/compare/{submitted[0]}"
    answer = client.get(path).body
    [row] = answer["scorer_comparisons"]
    reason = "the base was scored by strict_match 1, the compared experiment by an unknown version"
    assert (row["verdict"], row["not_comparable"], row["p_value"]) == ("NOT_COMPARABLE", reason, None)
    assert answer["verdict"] == "NOT_COMPARABLE"
    [forced] = client.get(path, force="true").body["scorer_comparisons"]
    assert forced["caveats"][0] == f"compared by force although this differs: {reason}"
    assert forced["p_value"] is not None
    # two experiments of submitted values are one measure as far as anybody knows
    [row] = client.get(f"/v1/experiments/{submitted[0]}/compare/{submitted[1]}").body["scorer_comparisons"]
    assert (row["not_comparable"], row["p_value"]) == (None, 1.0)
    assert not any("version" in caveat for caveat in row["caveats"])
