"""The judge-corrected difference of two systems, from ratings and from files on the command line."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.judging.commands import evenhand

from evenhand.core.errors import InputError
from evenhand.judging.calibration import Rated
from evenhand.judging.difference import judged_difference
from evenhand.metrics import ppi_difference


def _ratings(*answers: tuple[Any, Any]) -> list[Rated]:
    return [Rated(judge=judge, human=human) for judge, human in answers]


def test_every_item_is_counted_once() -> None:
    base = {
        "a": _ratings((1.0, 1.0)),
        "b": _ratings((0.0, 0.0)),
        "c": _ratings((1.0, None)),
        "d": _ratings((None, 1.0)),
        "e": _ratings((1.0, 1.0)),
        "f": _ratings((0.0, None)),
        "only base": _ratings((1.0, 1.0)),
    }
    candidate = {
        "a": _ratings((1.0, 0.0)),
        "b": _ratings((1.0, 1.0), (0.0, 1.0)),
        "c": _ratings((0.0, None)),
        "d": _ratings((1.0, 1.0)),
        "e": _ratings((1.0, None)),
        "f": _ratings((1.0, None)),
    }
    found = judged_difference(base, candidate)
    assert (found.items, found.compared, found.one_side_only, found.no_judge_score) == (7, 5, 1, 1)
    assert (found.labelled, found.partly_labelled) == (2, 1)
    # judge: 0, ½ − 0, −1, 0, 1 over five items; people: −1 and +1 over two
    assert found.judge_only.value == pytest.approx(0.1)
    assert found.human_only.value == 0.0
    assert found.judge_bias.value == pytest.approx(((0 - -1) + (0.5 - 1)) / 2)
    assert "Only 2 items are labelled" in found.sentence


def test_the_corrected_difference_is_that_of_the_metrics_package() -> None:
    rng = np.random.default_rng(3)
    human = (rng.random((2, 200)) < 0.6).astype(float)
    judge = np.where(rng.random((2, 200)) < 0.2, 1 - human, human)
    sides = [
        {
            f"{n:03}": [Rated(judge=float(judge[side][n]), human=float(human[side][n]) if n < 50 else None)]
            for n in range(200)
        }
        for side in (0, 1)
    ]
    found = judged_difference(*sides, confidence_level=0.9)
    assert found.corrected == ppi_difference(
        human_base=human[0][:50],
        human_candidate=human[1][:50],
        judge_base_on_human=judge[0][:50],
        judge_candidate_on_human=judge[1][:50],
        judge_base_on_rest=judge[0][50:],
        judge_candidate_on_rest=judge[1][50:],
        confidence_level=0.9,
    )
    assert found.confidence_level == 0.9


def test_all_labelled_needs_no_correction() -> None:
    items = {str(n): _ratings((float(n % 2), float(n % 3 == 0))) for n in range(40)}
    other = {str(n): _ratings((1.0, float(n % 4 != 0))) for n in range(40)}
    found = judged_difference(items, other)
    assert found.corrected == found.human_only
    assert found.sentence.startswith("People would score the candidate higher")
    assert judged_difference(other, items).sentence.startswith("People would score the candidate lower")


@pytest.mark.parametrize(
    ("base", "candidate", "words"),
    [
        ({"a": _ratings((1.0, 1.0))}, {"a": _ratings((1.0, 1.0))}, "at least 2 items"),
        ({"a": _ratings((1.0, 1.0))}, {"b": _ratings((1.0, 1.0))}, "0 have them"),
        ({"a": _ratings(("GOOD", 1.0))}, {"a": _ratings((1.0, 1.0))}, "some are labels"),
        ({"a": _ratings(("GOOD", "GOOD"))}, {"a": _ratings(("BAD", "BAD"))}, "--positive"),
    ],
)
def test_ratings_that_cannot_be_compared(base: Any, candidate: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        judged_difference(base, candidate)


def _file(path: Path, side: int, *, judge: str = "j", rows: int = 600) -> str:
    rng = random.Random(11)
    lines = []
    for n in range(rows):
        good = [rng.random() < 0.6, rng.random() < 0.62]
        liked = [value or rng.random() < favour for value, favour in zip(good, (0.1, 0.6), strict=True)]
        row: dict[str, Any] = {"problem_idx": n, "reward": float(liked[side]), "judge": {"identity": judge}}
        if n % 6 == 0:
            row["metadata"] = {"human": good[side]}
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines))
    return str(path)


def test_the_command(tmp_path: Path) -> None:
    """The judge passes half of the candidate's failures: 20 points to it, about 2 to people."""
    files = [_file(tmp_path / "a.jsonl", 0), _file(tmp_path / "b.jsonl", 1)]
    common = ["judge", "compare", *files, "--human-field", "metadata.human"]
    text = evenhand(*common, cwd=tmp_path)
    assert text.returncode == 0, text.stderr
    for words in (
        "600 of 600 items compared, 100 with human scores",
        "judge only",
        "corrected (PPI++)",
        "drawn at random",
    ):
        assert words in text.stdout
    found = json.loads(evenhand(*common, "--format", "json", cwd=tmp_path).stdout)
    assert found["judge_only"]["ci_lower"] > 0.1
    assert found["corrected"]["ci_lower"] < 0.03 < found["corrected"]["ci_upper"]
    assert found["judge_bias"]["value"] > 0.1
    assert "The judge alone would claim" in found["sentence"]


def test_the_command_refuses_other_judges_and_items_without_a_name(tmp_path: Path) -> None:
    one = _file(tmp_path / "a.jsonl", 0)
    other = _file(tmp_path / "b.jsonl", 1, judge="k")
    done = evenhand("judge", "compare", one, other, "--human-field", "metadata.human", cwd=tmp_path)
    assert done.returncode != 0
    assert "different judges" in done.stderr
    done = evenhand(
        "judge", "compare", one, one, "--human-field", "metadata.human", "--id-field", "judge", cwd=tmp_path
    )
    assert done.returncode != 0
    assert "a.jsonl:1: field 'judge': must be a string or an integer" in done.stderr
    assert "Traceback" not in done.stderr
