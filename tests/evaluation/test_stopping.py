"""Stopping a run as soon as its verdict against a baseline is reached."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.runs import evenhand

from evenhand import Result, evaluate
from evenhand.compare.comparison import Options
from evenhand.compare.stopping import look, random_order, row_of_finished
from evenhand.core.errors import Incomparable, InputError, OptionError, RunConflict
from evenhand.results import RunResults, SampleResult
from evenhand.testing import MockModel
from evenhand.testing.script import MockCall, with_nonce

DATA = [{"input": str(n), "expected": str(n)} for n in range(600)]
CONCURRENCY = 4


class Answering:
    """Right but for one in `wrong_every`; each answer costs a cent."""

    def __init__(self, wrong_every: int) -> None:
        self.wrong_every = wrong_every
        self.asked: list[str] = []

    async def __call__(self, text: str) -> dict[str, Any]:
        self.asked.append(text)
        wrong = int(text) % self.wrong_every == 0
        return {"output": "wrong" if wrong else text, "cost": 0.01}


async def right(text: str) -> str:
    return text


def baseline(scorers: Any = "exact_match") -> Result:
    return evaluate(DATA, right, scorers)


def test_an_equal_candidate_passes_early_and_says_what_that_saved(tmp_path: Path) -> None:
    task = Answering(wrong_every=200)
    found = evaluate(
        DATA, task, "exact_match", baseline=baseline(), margin=0.1, stop_when_decided=True, folder=tmp_path / "run",
        concurrency=CONCURRENCY,
    )  # fmt: skip
    stopping = found.stopping
    assert stopping is not None
    assert stopping.verdict in ("PASS", "WARN")
    assert stopping.decided_after <= stopping.asked == len(task.asked) < 600
    assert stopping.calls_saved == 600 - stopping.asked
    assert stopping.usd_saved == pytest.approx(0.01 * stopping.calls_saved)
    assert f"{stopping.calls_saved} of 600 calls were not made, about $" in found.summary()
    assert "valid at any time" in found.summary()
    (one,) = stopping.scorers
    assert one["ci_lower"] > -0.1
    # the means have the wider intervals too, and nothing that needs a fixed length is left
    assert list(found.metrics()) == ["mean_reward"]
    assert "valid at any time" in found.interval().method
    assert found.ledger["exact_match"].total == stopping.asked
    # the problems were asked in the order that the seed draws
    order = [str(number) for number in random_order(range(600), 0)]
    assert sorted(task.asked, key=order.index) == order[: len(task.asked)]


def test_a_worse_candidate_is_blocked_early() -> None:
    task = Answering(wrong_every=3)
    found = evaluate(
        DATA,
        task,
        ["exact_match", "token_f1"],
        baseline=baseline(["exact_match", "token_f1"]),
        stop_when_decided=True,
    )
    stopping = found.stopping
    assert stopping is not None
    assert stopping.verdict == "BLOCK"
    assert len(task.asked) < 600
    assert [one["scorer"] for one in stopping.scorers] == ["exact_match", "token_f1"]
    assert any(one["ci_upper"] < -0.05 for one in stopping.scorers)
    assert all(one["confidence_level"] == pytest.approx(0.975) for one in stopping.scorers)  # they share 5 %


def test_a_stopped_run_is_continued_to_its_end(tmp_path: Path) -> None:
    base, task, folder = baseline(), Answering(wrong_every=200), tmp_path / "run"
    options: Any = {"folder": folder, "concurrency": CONCURRENCY}
    evaluate(DATA, task, "exact_match", baseline=base, margin=0.1, stop_when_decided=True, **options)
    asked = len(task.asked)
    again = evaluate(
        DATA, task, "exact_match", baseline=base, margin=0.1, stop_when_decided=True, resume=True, **options
    )
    assert len(task.asked) == asked  # still decided
    assert again.stopping is not None
    assert again.stopping.verdict in ("PASS", "WARN")
    whole = evaluate(DATA, task, "exact_match", baseline=base, margin=0.1, resume=True, **options)
    assert sorted(task.asked, key=int) == [str(n) for n in range(600)]  # each once
    assert whole.stopping is None
    assert whole.ledger["exact_match"].scored == 600
    assert whole.verdicts is not None
    assert "valid at any time" not in whole.interval().method


def test_a_run_that_nothing_decides_runs_to_its_end() -> None:
    data = DATA[:30]
    base = evaluate(data, right, "exact_match")
    found = evaluate(
        data, Answering(wrong_every=10), "exact_match", baseline=base, margin=0.02, stop_when_decided=True
    )
    assert found.stopping is not None
    assert found.stopping.verdict == "INCONCLUSIVE"
    assert found.stopping.calls_saved == 0
    assert found.ledger["exact_match"].scored == 30


def test_failures_do_not_help_a_candidate() -> None:
    async def fragile(text: str) -> str:
        if int(text) % 5 == 0:
            raise ConnectionError("away")
        return text

    found = evaluate(DATA, fragile, "exact_match", baseline=baseline(), margin=0.1, stop_when_decided=True)
    assert found.stopping is not None
    assert found.stopping.verdict not in ("PASS", "WARN")
    assert found.ledger["exact_match"].failed == 120


def test_mistakes_are_found_before_the_first_call(tmp_path: Path) -> None:
    task = Answering(wrong_every=10)
    with pytest.raises(OptionError, match="needs a baseline"):
        evaluate(DATA, task, "exact_match", stop_when_decided=True)
    with pytest.raises(Incomparable, match="dataset"):
        evaluate(DATA[1:], task, "exact_match", baseline=baseline(), stop_when_decided=True)
    with pytest.raises(Incomparable, match="scorer"):
        evaluate(DATA, task, "token_f1", baseline=baseline(), stop_when_decided=True)
    large = {"points": lambda output: 7.0}
    with pytest.raises(OptionError, match="between 0 and 1"):
        evaluate(DATA, task, large, baseline=baseline(large), stop_when_decided=True)
    assert not task.asked
    folder = tmp_path / "plain"
    evaluate(DATA, right, "exact_match", folder=folder)
    with pytest.raises(RunConflict, match="begun in the order of its data"):
        evaluate(
            DATA,
            right,
            "exact_match",
            folder=folder,
            baseline=baseline(),
            stop_when_decided=True,
            resume=True,
        )


def test_the_command_stops_counts_judgements_and_compare_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in DATA))

    def answer(call: MockCall) -> str:
        if call.model == "judge":
            return with_nonce('{"nonce": "{{nonce}}", "reasoning": "fine", "score": 5}', call.prompt)
        return call.prompt

    with MockModel(answer) as server:
        shared = ["eval", "run", "--data", "qa.jsonl", "--scorer", "needs_judge", "--model-url", server.url]
        shared += ["--model-id", "m", "--judge-url", server.url, "--judge-id", "judge", "--concurrency", "4"]
        assert evenhand(*shared, "-o", "base").returncode == 0
        asked = len(server.calls)
        assert asked == 1200
        done = evenhand(*shared, "-o", "new", "--baseline", "base", "--margin", "0.1", "--stop-when-decided")
        assert done.returncode == 0, done.stderr
        assert len(server.calls) - asked < 1200  # the baseline was not asked again
    assert "PASS, decided after" in done.stdout
    assert " judgements were not made" in done.stdout
    stopping = Result.load("new").stopping
    assert stopping is not None
    assert stopping.judge_calls_saved == stopping.calls_saved > 0
    page = Path("new/report.html").read_text()
    assert "Stopped when it was decided" in page
    assert "an interval that is valid at any time, wider than that of a run whose length was fixed" in page
    ordinary = evenhand("compare", "base", "new")
    assert "stopped as soon as it was decided" in ordinary.stdout
    looked = evenhand("compare", "base", "new", "--sequential", "--max-drop", "0.1", "--format", "json")
    assert json.loads(looked.stdout)["verdict"] == "PASS"
    assert evenhand(*shared, "-o", "other", "--stop-when-decided").returncode == 64


def run_of(rewards: list[float | None]) -> RunResults:
    samples = [
        SampleResult(problem_idx=number, reward=reward, status="failed" if reward is None else "scored")
        for number, reward in enumerate(rewards)
    ]
    return RunResults(path=Path("x"), name="x", bundle=None, samples=samples)


def test_only_the_row_up_to_the_first_gap_counts() -> None:
    order = random_order(range(100), seed=3)
    assert sorted(order) == list(range(100))
    assert order != random_order(range(100), seed=4)
    # the same for any part of them
    assert [one for one in order if one % 2] == random_order(range(1, 100, 2), seed=3)
    assert row_of_finished(order, {*order[:10], *order[12:]}) == order[:10]
    assert row_of_finished(order, set()) == []


def test_a_drop_that_is_shown_but_not_beyond_the_margin_does_not_block() -> None:
    """A significant drop whose estimate happens to lie beyond the margin: the interval still reaches across."""
    base, worse = [1.0] * 60, [0.0 if n % 4 == 0 else 1.0 for n in range(60)]
    found = look(run_of(list(base)), run_of(list(worse)), range(60), Options(max_drop=0.2))
    assert found.comparisons[0].delta.ci_upper > -0.2
    assert found.verdict == "INCONCLUSIVE"


def test_nothing_in_common_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text('{"problem_idx": 9999, "reward": 1.0, "status": "scored"}\n')
    with pytest.raises(InputError, match="no problem in common"):
        evaluate(DATA, right, "exact_match", baseline=tmp_path / "results.jsonl", stop_when_decided=True)
