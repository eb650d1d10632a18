"""A problem that changed shows the answers that changed, also where it was asked several times."""

from pathlib import Path

from tests.evaluation.runs import evenhand
from tests.runs import run, single, write_run

from evenhand.compare import Options, compare_runs

# Problem 0 falls in its third repeat, problem 1 rises in its second; problem 2 changes both ways and falls in sum.
BASE = {0: [1.0, 1.0, 1.0], 1: [1.0, 0.0, 0.0], 2: [1.0, 0.0, 1.0], 3: [1.0, 1.0, 1.0]}
CANDIDATE = {0: [1.0, 1.0, 0.0], 1: [1.0, 1.0, 0.0], 2: [0.0, 1.0, 0.0], 3: [1.0, 1.0, 1.0]}


def test_the_repeat_that_differs_is_shown() -> None:
    found = compare_runs(run(BASE), run(CANDIDATE), Options())
    shown = {flip.problem_idx: flip for flip in found.flips}
    assert {index: flip.repeat for index, flip in shown.items()} == {0: 2, 1: 1, 2: 0}
    for flip in shown.values():
        assert flip.base_response != flip.candidate_response
    assert (shown[0].base_response, shown[0].candidate_response) == ("answer 1.0", "answer 0.0")
    assert shown[0].of_repeat == "repeat 2: 1 → 0"
    assert shown[1].of_repeat == "repeat 1: 0 → 1"


def test_a_repeat_without_a_score_on_one_side_is_not_shown() -> None:
    base = {0: [1.0, 1.0, 1.0], 1: [1.0] * 3}
    candidate: dict[int, list[float | None]] = {0: [None, 1.0, 0.0], 1: [1.0] * 3}
    (flip,) = compare_runs(run(base), run(candidate), Options()).flips
    assert (flip.repeat, flip.base_score, flip.candidate_score) == (2, 1.0, 0.0)


def test_one_answer_each_needs_no_number() -> None:
    (flip,) = compare_runs(run(single([1.0, 1.0])), run(single([1.0, 0.0])), Options()).flips
    assert flip.of_repeat == ""


def test_terminal_and_reports_name_the_repeat(tmp_path: Path) -> None:
    base, candidate = write_run(tmp_path / "a", BASE), write_run(tmp_path / "b", CANDIDATE)
    for name in ("out.html", "out.md"):
        done = evenhand("compare", base, candidate, "--show-flips", "--report", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert "0, repeat 2: 1 → 0" in done.stdout
        assert "repeat 2: 1 → 0" in (tmp_path / name).read_text()
