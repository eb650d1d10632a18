"""Result folders written by release 0.1.0 (commit 36b7919) can be read, compared, reported and scored again.

`v0_1_0/base` and `candidate` are finished runs of `capitals_bench.py` (6 problems, 2 repeats each); `unfinished` is a
run that was killed after 8 of its 12 samples; `scored` was written by `evenhand score`.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.runs import evenhand as run_command
from tests.integrations.test_importers import statuses

from evenhand.integrations.registry import read_foreign
from evenhand.results import read_run
from evenhand.testing import MockModel

OLD = Path(__file__).parent / "v0_1_0"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def evenhand(*arguments: str | Path, status: int = 0) -> str:
    done = run_command(*arguments)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_the_samples_of_an_old_run_are_read_as_they_were(old: Path) -> None:
    rewards = [sample.reward for sample in read_run(old / "base").samples]
    # Paris 2/2, Tokyo then Kyoto, Lima 2/2, Nairobi 2/2, Bergen for Oslo, empty answers
    assert rewards == [1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0]


def test_two_old_runs_compare(old: Path) -> None:
    said: Any = json.loads(evenhand("compare", old / "base", old / "candidate", "--format", "json"))
    text = json.dumps(said)
    # 7 of 12 right against 9 of 12
    assert "0.58333" in text
    assert "0.75" in text


def test_an_old_run_is_reported_and_scored_again(old: Path) -> None:
    evenhand("eval", "report", old / "base")
    assert (old / "base" / "report.html").exists()
    evenhand("eval", "rescore", old / "base", "--scorer", "exact_match", "-o", old / "again")
    again = [sample.reward for sample in read_run(old / "again").samples]
    # as above, but "It is Lima." is not "Lima" exactly
    assert again == [1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0]


def test_runs_scored_by_an_old_and_a_new_scorer_are_comparable_once_both_are_scored_anew(old: Path) -> None:
    for name in ("base", "candidate"):
        evenhand("eval", "rescore", old / name, "--scorer", "fuzzy_match", "-o", old / f"{name}-new")
    evenhand("compare", old / "base-new", old / "candidate-new")


def test_old_scores_are_read_and_compared(old: Path) -> None:
    """24 rows, of which one had nothing to compare with."""
    [run] = read_foreign(old / "scored")
    assert statuses(run, "exact_match") == {"scored": 23, "unscored": 1, "failed": 0}
    said = json.loads(evenhand("compare", old / "scored", old / "scored", "--format", "json"))
    assert [found["regressed"] for found in said["comparisons"]] == [0, 0]


ANSWERS = {"France": "Paris", "Japan": "Tokyo", "Peru": "It is Lima.", "Kenya": "Nairobi", "Norway": "Bergen"}


def asked(old: Path, model: MockModel) -> list[str | Path]:
    """The flags with which the runs were made, but for the address, which no run is told by."""
    name = ["--model-url", model.url, "--model-id", "base-model"]
    return ["-b", old / "capitals_bench.py", *name, "-n", "2"]


def test_an_old_run_and_a_new_one_are_not_compared_when_the_scorer_grades_differently(old: Path) -> None:
    """`capitals` calls `fuzzy_match`, whose grades changed since: refused, with a cure that works."""
    with MockModel({**ANSWERS, "": "none"}) as model:
        made = evenhand("eval", "run", *asked(old, model), "-o", old / "new")
        assert "12 samples" in made
        refused = run_command("compare", old / "base", old / "new")
        assert refused.returncode == 65
        assert "the scorer or its version" in refused.stderr
        assert "evenhand eval rescore" in refused.stderr
    for name in ("base", "new"):
        evenhand("eval", "rescore", old / name, "--scorer", "fuzzy_match", "-o", old / f"{name}-again")
    evenhand("compare", old / "base-again", old / "new-again")


def test_an_unfinished_run_is_not_resumed_under_a_changed_scorer(old: Path) -> None:
    with MockModel({**ANSWERS, "": "none"}) as model:
        refused = run_command("eval", "run", *asked(old, model), "-o", old / "unfinished", "--resume")
        assert refused.returncode == 65
        assert "the scorer changed" in refused.stderr
        assert "evenhand eval rescore" in refused.stderr
        assert model.requests == 0
        # Insisting continues it: only the four samples that were missing are asked for.
        evenhand("eval", "run", *asked(old, model), "-o", old / "unfinished", "--resume", "--allow-drift")
        assert model.requests == 4
    assert len(read_run(old / "unfinished").samples) == 12
