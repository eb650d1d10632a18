"""Scoring stored responses anew: no model is called, failures stay failures, runs become comparable."""

from pathlib import Path

import pytest

from evenhand.compare import compare_runs
from evenhand.core.errors import Incomparable, InputError
from evenhand.evaluation.rescoring import rescore_run
from evenhand.reports.run import run_page
from evenhand.results import (
    BenchmarkSummary,
    Bundle,
    JsonlFile,
    SampleError,
    SampleResult,
    read_run,
    write_json,
)
from evenhand.scoring.registry import get_scorer


def stored(folder: Path, responses: list[str | None], *, scorer: str) -> Path:
    folder.mkdir()
    with JsonlFile(folder / "results.jsonl") as file:
        for index, response in enumerate(responses):
            failed = response is None
            file.write(
                SampleResult(
                    problem_idx=index,
                    reward=None if failed else 0.0,
                    status="failed" if failed else "scored",
                    error=SampleError(kind="timeout") if failed else None,
                    expected_answer="42",
                    model_response=response,
                )
            )
    hashes = {
        "dataset": "d",
        "prompt": "p",
        "sampling": "s",
        "scorer": scorer,
        "judge": scorer,
        "benchmark": scorer,
    }
    write_json(
        folder / "eval-1.json", Bundle(benchmark=BenchmarkSummary(name="b"), run_id=scorer, hashes=hashes)
    )
    return folder


def test_stored_responses_get_new_scores_and_failures_stay_failures(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", ["It is 42.0", "41", None], scorer="old")
    steps: list[int] = []
    bundle = rescore_run(
        run, tmp_path / "new", get_scorer("numeric_match"), steps.append, report=run_page
    ).bundle
    samples = read_run(tmp_path / "new").samples
    assert [(s.reward, s.status) for s in samples] == [(1.0, "scored"), (0.0, "scored"), (None, "failed")]
    assert samples[0].extracted_answer == "42.0"
    assert (bundle.benchmark.scores["mean_reward"].value, sum(steps)) == (0.5, 3)
    assert bundle.config["rescored_from"] == "old"
    assert (tmp_path / "new" / "report.html").exists()


def test_runs_scored_differently_become_comparable(tmp_path: Path) -> None:
    runs = [stored(tmp_path / name, ["42", "41", "42"], scorer=name) for name in ("one", "two")]
    with pytest.raises(Incomparable, match="the scorer"):
        compare_runs(read_run(runs[0]), read_run(runs[1]))
    for run in runs:
        rescore_run(run, run.with_name(run.name + "-new"), get_scorer("numeric_match"), lambda _: None)
    found = compare_runs(read_run(tmp_path / "one-new"), read_run(tmp_path / "two-new"))
    assert found.delta.value == 0.0


def test_nothing_is_overwritten_and_a_missing_run_is_named(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", ["42"], scorer="old")
    with pytest.raises(InputError, match="not empty"):
        rescore_run(run, run, get_scorer("numeric_match"), lambda _: None)
    with pytest.raises(InputError, match="no run here"):
        rescore_run(tmp_path, tmp_path / "new", get_scorer("numeric_match"), lambda _: None)
