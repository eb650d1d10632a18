"""The same data through `evenhand compare` and through the service give the same numbers, digit by digit."""

import json
import random
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.service_harness import Client

from evenhand.cli.app import main
from evenhand.results import BenchmarkSummary, Bundle, JsonlFile, SampleResult, write_json

REPEATS = 3
ITEMS = 30
CATEGORIES = ("algebra", "geometry", "law")
Scores = dict[tuple[int, int], dict[str, float | str]]
"""By item and repeat: scorer → value. What is not there has no run."""


def made_up(seed: int, level: float) -> Scores:
    """Runs with three scorers; some runs are missing, and some have no number of `exact`."""
    draw = random.Random(seed)
    found: Scores = {}
    for item in range(ITEMS - 1):  # the last item is run by nobody
        for repeat in range(REPEATS):
            if draw.random() < 0.05:
                continue
            scores: dict[str, float | str] = {
                "fine": round(min(1.0, max(0.0, draw.gauss(level, 0.2))), 2),
                "tone": draw.choice(["warm", "neutral"]),
            }
            if draw.random() > 0.05:
                scores["exact"] = float(draw.random() < level)
            found[item, repeat] = scores
    return found


def posted(client: Client, dataset: str, items: list[str], scores: Scores) -> str:
    experiment = client.experiment(dataset, auto_complete=False)
    client.runs(
        experiment,
        [
            {
                "dataset_item_id": items[item],
                "output": "x",
                "repeat": repeat,
                "scores": [{"scorer_name": name, "value": value} for name, value in given.items()],
            }
            for (item, repeat), given in scores.items()
        ],
    )
    return experiment


def written(folder: Path, scorer: str, scores: Scores) -> Path:
    """The same as a run on disk: a run without a number is unscored, and the item that nobody ran failed."""
    folder.mkdir(parents=True)
    with JsonlFile(folder / "results.jsonl") as file:
        for (item, repeat), given in [*scores.items(), ((ITEMS - 1, 0), {})]:
            value = given.get(scorer)
            reward = value if isinstance(value, float) else None
            status = "scored" if reward is not None else "unscored" if given else "failed"
            file.write(
                SampleResult(
                    problem_idx=item,
                    repeat=repeat,
                    reward=reward,
                    status=status,  # type: ignore[arg-type]  # one of the three
                    metadata={"category": CATEGORIES[item % 3]},
                )
            )
    bundle = Bundle(benchmark=BenchmarkSummary(name=scorer), hashes={"dataset": "d"}, schema_version=1)
    write_json(folder / "eval-1.json", bundle)
    return folder


def command(*words: object) -> Any:
    out = StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit):
        main(["compare", *map(str, words), "--format", "json"])
    return json.loads(out.getvalue())["comparisons"][0]


def compared(client: Client) -> tuple[str, list[str], Scores, Scores, str, str]:
    dataset = client.made("/v1/datasets", {"project_id": client.project, "name": "d"})["id"]
    items = [
        client.made(
            f"/v1/datasets/{dataset}/items", {"input": n, "metadata": {"category": CATEGORIES[n % 3], "n": n}}
        )["id"]
        for n in range(ITEMS)
    ]
    base, other = made_up(1, 0.6), made_up(2, 0.75)
    return (
        dataset,
        items,
        base,
        other,
        posted(client, dataset, items, base),
        posted(client, dataset, items, other),
    )


def same(service: Mapping[str, Any], local: Mapping[str, Any], items: list[str]) -> None:
    """Every number and every word."""
    verdict, delta, coverage = local["verdict"], local["delta"], local["coverage"]
    assert service["verdict"] == verdict["name"]
    for name in ("sentence", "reasons", "next_step"):
        assert service[name] == verdict[name]
    assert service["caveats"] == local["caveats"]
    assert service["paired_count"] == local["problems"]
    assert (
        service["paired_delta"],
        service["ci_lower"],
        service["ci_upper"],
        service["confidence_level"],
    ) == (
        delta["value"],
        delta["ci_lower"],
        delta["ci_upper"],
        delta["confidence_level"],
    )
    assert (service["p_value"], service["test"]) == (local["test"]["p_value"], local["test"]["method"])
    for name in ("p_drop", "minimum_detectable_effect"):
        assert service[name] == local[name]
    assert service["effect_size"] == local["effect_size"]["value"]
    names = {"compare_scored": "candidate_scored", "compare_share": "candidate_share"}
    for name, value in service["coverage"].items():
        if name == "missing":
            places = [(items.index(one["dataset_item_id"]), one["repeat"]) for one in value]
            assert places == [(one["problem_idx"], one["repeat"]) for one in coverage["missing"]]
        else:
            assert value == coverage[names.get(name, name)]
    for mine, theirs in zip(service["categories"], local["categories"], strict=True):
        assert (mine["category"], mine["item_count"]) == (theirs["category"], theirs["problems"])
        assert (mine["base_mean"], mine["compare_mean"]) == (theirs["base_mean"], theirs["candidate_mean"])
        assert (mine["delta"], mine["ci_lower"], mine["ci_upper"]) == tuple(
            theirs["delta"][name] for name in ("value", "ci_lower", "ci_upper")
        )
        assert (mine["p_value"], mine["p_adjusted"]) == (theirs["p_value"], theirs["p_adjusted"])


def test_every_number_is_that_of_the_command(client: Client, tmp_path: Path) -> None:
    """Repeats, missing runs, several scorers, categories from the items' metadata, an item that nobody ran."""
    _, items, base, other, first, second = compared(client)
    got = client.get(f"/v1/experiments/{first}/compare/{second}", max_drop=0.1, min_coverage=0.5).body
    rows = {row["scorer_name"]: row for row in got["scorer_comparisons"]}
    assert list(rows) == ["exact", "fine", "tone"]
    for scorer in ("exact", "fine"):
        local = command(
            written(tmp_path / scorer / "base", scorer, base),
            written(tmp_path / scorer / "other", scorer, other),
            "--max-drop",
            0.1,
            "--min-coverage",
            0.5,
        )
        assert len(local["categories"]) == 3
        assert 0 < len(local["coverage"]["missing"]) < local["coverage"]["possible"]
        same(rows[scorer], local, items)
    assert (got["max_drop"], got["min_coverage"]) == (0.1, 0.5)


def test_scorers_are_corrected_together(client: Client) -> None:
    """Holm over two p-values: the smaller doubles, the larger is at least that; labels are not tested."""
    *_, first, second = compared(client)
    got = client.get(f"/v1/experiments/{first}/compare/{second}").body
    exact, fine, tone = got["scorer_comparisons"]
    low, high = sorted((exact, fine), key=lambda row: float(row["p_value"]))
    assert low["p_adjusted"] == pytest.approx(min(1.0, 2 * low["p_value"]), rel=1e-12)
    assert high["p_adjusted"] == pytest.approx(max(low["p_adjusted"], high["p_value"]), rel=1e-12)
    assert (tone["verdict"], tone["p_value"], tone["p_adjusted"], tone["coverage"]) == (
        None,
        None,
        None,
        None,
    )
    assert tone["sentence"] == "The scores are labels: they can be counted, not averaged."
    # Alone, a scorer has nothing to be corrected for.
    [alone] = client.get(f"/v1/experiments/{first}/compare/{second}", scorer_name="fine").body[
        "scorer_comparisons"
    ]
    assert alone["p_adjusted"] == alone["p_value"] == fine["p_value"]


def test_an_item_names_its_runs_and_repeats(client: Client) -> None:
    _, items, base, other, first, second = compared(client)
    got = client.get(f"/v1/experiments/{first}/compare/{second}").body
    row = next(
        one
        for one in got["per_item_results"]
        if (one["scorer_name"], one["dataset_item_id"]) == ("fine", items[4])
    )
    assert row["category"] == CATEGORIES[4 % 3]
    for ids, scores in ((row["base_run_ids"], base), (row["compare_run_ids"], other)):
        assert len(ids) == sum(item == 4 for item, _ in scores)
    both = [repeat for repeat in range(REPEATS) if (4, repeat) in base and (4, repeat) in other]
    assert row["paired_repeats"] == len(both)
    runs = {run["id"]: run for run in client.pages(f"/v1/experiments/{second}/runs")}
    assert [runs[run]["repeat"] for run in row["compare_run_ids"]] == sorted(
        repeat for item, repeat in other if item == 4
    )
    short = client.get(f"/v1/experiments/{first}/compare/{second}", per_item="false").body
    assert short["per_item_results"] == []
    assert all(one["coverage"]["missing"] == [] for one in short["scorer_comparisons"] if one["coverage"])


def test_what_nobody_ran_is_missing_but_not_what_came_later(client: Client) -> None:
    """Two of four items are run: 2 of 4 samples are compared. An item added afterwards was nobody's to run."""
    dataset, items = client.dataset(["a", "b", "c", "d"])
    runs: list[str] = []
    for values in ((1, 0), (1, 1)):
        runs.append(client.experiment(dataset, auto_complete=False))
        client.runs(
            runs[-1],
            [
                {"dataset_item_id": item, "output": "x", "scores": [{"scorer_name": "s", "value": value}]}
                for item, value in zip(items, values, strict=False)
            ],
        )
    client.made(f"/v1/datasets/{dataset}/items", {"input": "later"})
    got = client.get(f"/v1/experiments/{runs[0]}/compare/{runs[1]}").body
    [row] = got["scorer_comparisons"]
    assert (row["coverage"]["pairs"], row["coverage"]["possible"]) == (2, 4)
    # Worst case: the base 1, 0, 1, 1 and the other 1, 1, 0, 0: a mean difference of (0 + 1 - 1 - 1) / 4.
    assert row["coverage"]["worst_delta"] == -0.25
    assert [one["base"] for one in row["coverage"]["missing"]] == ["absent", "absent"]
    assert got["verdict"] == row["verdict"] == "INCONCLUSIVE"


def test_what_cannot_be_compared_is_a_verdict_and_no_error(client: Client) -> None:
    dataset, items = client.dataset(["a", "b", "c"])
    first, second = (client.experiment(dataset, auto_complete=False) for _ in range(2))
    for experiment, item in ((first, items[0]), (second, items[1])):
        scores = [{"scorer_name": "s", "value": 1}]
        client.runs(experiment, [{"dataset_item_id": item, "output": "x", "scores": scores}])
    reply = client.get(f"/v1/experiments/{first}/compare/{second}")
    [row] = reply.body["scorer_comparisons"]
    assert (reply.status, row["verdict"], row["ci_lower"]) == (200, "INCONCLUSIVE", None)
    assert row["sentence"].startswith("Not proven: nothing to compare: no sample is scored in both runs")
    empty = client.get(f"/v1/experiments/{second}/compare/{second}", scorer_name="nobody").body
    assert (empty["verdict"], empty["scorer_comparisons"]) == ("INCONCLUSIVE", [])


@pytest.mark.parametrize(
    "query", [{"max_drop": -0.1}, {"max_drop": "much"}, {"min_coverage": 1.5}, {"max_drop": "nan"}]
)
def test_a_bad_parameter_is_refused(client: Client, query: dict[str, Any]) -> None:
    dataset, _ = client.dataset(["a"])
    experiment = client.experiment(dataset)
    reply = client.get(f"/v1/experiments/{experiment}/compare/{experiment}", **query)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_other_options_of_a_scorer_are_not_compared(client: Client) -> None:
    """The service computed both sides, once with capitals and once without: no numbers, and no error."""
    dataset, items = client.dataset([{"input": n, "expected_output": "Yes"} for n in range(3)])
    experiments = []
    for config in ({}, {"case_sensitive": False}):
        experiments.append(client.experiment(dataset, auto_complete=False))
        scores = [{"scorer_name": "exact_match", "config": config}]
        client.runs(
            experiments[-1], [{"dataset_item_id": item, "output": "yes", "scores": scores} for item in items]
        )
    reply = client.get(f"/v1/experiments/{experiments[0]}/compare/{experiments[1]}")
    [row] = reply.body["scorer_comparisons"]
    assert (reply.status, row["verdict"], reply.body["verdict"]) == (200, "NOT_COMPARABLE", "NOT_COMPARABLE")
    assert "had the options" in row["not_comparable"]
    assert row["reasons"] == [row["not_comparable"]]
    assert (row["paired_delta"], row["p_value"], row["coverage"]) == (None, None, None)
    # The contract's means stay: 0 of 3 and 3 of 3.
    assert (row["base_mean"], row["compare_mean"]) == (0.0, 1.0)
    [forced] = client.get(f"/v1/experiments/{experiments[0]}/compare/{experiments[1]}", force="true").body[
        "scorer_comparisons"
    ]
    assert forced["paired_delta"] == 1.0
    assert forced["caveats"][0] == f"compared by force although this differs: {row['not_comparable']}"
