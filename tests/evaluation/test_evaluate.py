"""`evaluate`: a function of the user's, on the pipeline of `eval run`."""

import asyncio
import json
import math
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import evenhand
from evenhand import Result, aevaluate, evaluate
from evenhand.core.errors import (
    Incomparable,
    InputError,
    OptionError,
    OutputError,
    RunConflict,
    UnknownName,
)
from evenhand.core.outcome import Failed, Scored, Tally, Unscored
from evenhand.evaluation.threads import TooManyAbandoned
from evenhand.testing import MockModel
from evenhand.testing.script import with_nonce

VERIFIER = Path(__file__).resolve().parents[2] / "tools" / "verify_verdict.py"

DATA = [
    {"input": str(n), "expected": str(2 * n), "metadata": {"category": "even" if n % 2 == 0 else "odd"}}
    for n in range(10)
]


def double(text: str) -> str:
    """Right but for 3, where it fails, and 4, where it is wrong."""
    if text == "3":
        raise ValueError("three is <too> much")
    return "9" if text == "4" else str(2 * int(text))


def test_rows_counts_and_means() -> None:
    found = evaluate(DATA, double, ["exact_match"])
    assert found.ledger == {"exact_match": Tally(scored=9, unscored=0, failed=1)}
    assert found.mean() == found.mean("exact_match") == pytest.approx(8 / 9)
    interval = found.interval("exact_match")
    assert interval.ci_lower is not None
    assert interval.ci_upper is not None
    assert interval.ci_lower < 8 / 9 < interval.ci_upper
    rows = found.rows
    assert [row.input for row in rows] == [str(n) for n in range(10)]
    assert [row.scores["exact_match"] for row in rows] == [1, 1, 1, None, 0, 1, 1, 1, 1, 1]
    assert rows[3].output is None
    assert rows[3].error == "ValueError: three is <too> much"
    assert isinstance(rows[3].outcomes["exact_match"], Failed)
    assert rows[5].expected == "10"
    assert rows[5].metadata == {"category": "odd"}
    assert "three is <too> much" in found.summary()


def test_a_function_asks_for_what_it_scores_by_name_and_may_answer_in_every_form() -> None:
    def by_number(output: Any, expected: Any) -> float:
        return 1.0 if output == expected else 0.25

    def by_truth(expected: Any, output: Any) -> bool:
        return bool(output == expected)

    def by_label(output: str) -> str:
        return "long" if len(output) > 1 else "short"

    def silent(metadata: dict[str, Any]) -> float | None:
        return None if metadata["category"] == "odd" else 1.0

    def in_detail(input: str, **rest: Any) -> dict[str, Any]:  # noqa: A002
        return {"score": 0.5, "extracted": input, "seen": sorted(rest)}

    def as_object(output: str) -> Any:
        return SimpleNamespace(score=0.75, metadata={"why": "because"})

    async def later(output: str) -> float:
        await asyncio.sleep(0)
        return 0.125

    def broken(output: str) -> float:
        raise RuntimeError("no idea")

    def nonsense(output: str) -> Any:
        return [1]

    scorers = [by_number, by_truth, by_label, silent, in_detail, as_object, later, broken, nonsense]
    found = evaluate(DATA[:3], double, scorers)
    assert found.scorers == [one.__name__ for one in scorers]
    row = found.rows[1]
    assert row.scores == {
        "by_number": 1.0,
        "by_truth": 1.0,
        "by_label": "short",
        "silent": None,
        "in_detail": 0.5,
        "as_object": 0.75,
        "later": 0.125,
        "broken": None,
        "nonsense": None,
    }
    assert row.outcomes["silent"] == Unscored(reason="no_score", message="the scorer returned None")
    assert row.outcomes["in_detail"] == Scored(
        value=0.5, extracted="1", details={"seen": ["expected", "metadata", "output"]}
    )
    assert row.outcomes["as_object"] == Scored(value=0.75, details={"why": "because"})
    assert isinstance(row.outcomes["broken"], Failed)
    assert row.outcomes["broken"].message == "RuntimeError: no idea"
    assert isinstance(row.outcomes["nonsense"], Failed)
    assert found.ledger["silent"] == Tally(scored=2, unscored=1, failed=0)
    assert found.ledger["by_label"] == Tally(scored=3, unscored=0, failed=0)
    assert found.labels("by_label") == {"short": 3}
    assert math.isnan(found.mean("broken"))
    assert not found.mean("broken") >= 0


def test_scorers_by_name_and_with_options_and_named_by_the_user() -> None:
    scorers = {
        "close": evenhand.numeric_tolerance.configure(abs=5.0),
        "same": "exact_match",
        "even": lambda output: int(output) % 4 == 0,
    }
    found = evaluate(DATA, double, scorers)
    assert found.scorers == ["close", "same", "even"]
    assert found.mean("close") == 1.0
    assert found.mean("same") == pytest.approx(8 / 9)


@pytest.mark.parametrize(
    ("scorers", "words"),
    [
        ([], "at least one"),
        (["exact_mach"], "exact_match"),
        (["exact_match", evenhand.exact_match], "two scorers are called 'exact_match'"),
        ([lambda output: 1.0], "needs a name"),
        ([lambda answer: 1.0], "needs a name"),
        ({"mine": lambda answer: 1.0}, "asks for 'answer'"),
        (["regex_match"], "needs an option"),
        (3, "not int"),
    ],
)
def test_a_bad_scorer_is_refused_before_the_first_call(scorers: Any, words: str) -> None:
    calls: list[str] = []
    with pytest.raises((OptionError, UnknownName), match=words):
        evaluate(DATA, calls.append, scorers)
    assert not calls


def test_rows_may_use_the_names_of_other_datasets(tmp_path: Path) -> None:
    path = tmp_path / "qa.csv"
    path.write_text("question,answer,level\n2,4,easy\n3,6,hard\n")
    found = evaluate(path, lambda text: str(2 * int(text)), "exact_match")
    assert found.mean() == 1.0
    assert found.rows[1].input == "3"
    assert found.rows[1].metadata == {"level": "hard"}
    assert found.bundle.benchmark.name == "qa"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "no rows"),
        ([{"text": "x"}], "the row has no input; its fields: text"),
        ([{"input": None}], "null"),
        (["x"], "not a dict"),
        ({"input": "x"}, "not dict"),
        ("nowhere.jsonl", "no such file"),
        ("ftp://somewhere/x", "is not a dataset"),
    ],
)
def test_bad_data_is_refused_before_the_first_call(data: Any, words: str) -> None:
    calls: list[str] = []
    with pytest.raises((InputError, OptionError), match=words):
        evaluate(data, calls.append, "exact_match")
    assert not calls


def test_what_a_task_is_given() -> None:
    seen: list[Any] = []

    def with_item(text: str, *, item: dict[str, Any]) -> str:
        seen.append(item)
        return text

    evaluate(DATA[:1], with_item, "exact_match")
    assert seen == [{"input": "0", "expected": "0", "metadata": {"category": "even"}, "repeat": 0}]
    for task in (
        lambda item: item["input"],
        lambda *, input: input,  # noqa: A006
        lambda *all_of_them: all_of_them[0],
        str,
    ):
        assert evaluate(DATA[:1], task, "exact_match").mean() == 1.0

    def wants_more(input: str, user: str) -> str:  # noqa: A002
        return input

    for bad, words in (
        (wants_more, "asks for 'user'"),
        (lambda: 1, "takes no parameter"),
        ("x", "a task is a function"),
    ):
        with pytest.raises(OptionError, match=words):
            evaluate(DATA, bad, "exact_match")  # type: ignore[arg-type]


@dataclass
class Answer:
    """What a framework's agent may return."""

    output: str
    trace_id: str = "t-1"
    seen: list[str] = field(default_factory=list)

    def usage(self) -> Any:
        return SimpleNamespace(input_tokens=7, output_tokens=2)


def test_what_a_task_may_return() -> None:
    carried = {
        "output": "4",
        "messages": [{"role": "user", "content": "2"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
        "cost": 0.5,
        "trace_id": "abc",
    }
    answers: dict[str, Any] = {
        "0": {"value": 1},
        "1": [1, 2.5],
        "2": carried,
        "3": Answer("x"),
        "4": None,
        "5": object(),
        "6": {"output": "x", "cost": "much"},
        "7": {"output": float("nan")},
        "8": 16,
        "9": {"output": "x", "other": 1},
    }
    found = evaluate(DATA, answers.__getitem__, {"same": lambda output, expected: output == expected})
    rows = found.rows
    assert rows[0].output == {"value": 1}
    assert rows[1].output == [1, 2.5]
    assert rows[2].output == "4"
    assert rows[2].usage.input_tokens == 3
    assert rows[2].usage.output_tokens == 4
    assert rows[2].usage.cost_usd == 0.5
    assert rows[2].trace_id == "abc"
    assert rows[3].output == "x"
    assert rows[3].trace_id == "t-1"
    assert rows[3].usage.input_tokens == 7
    assert rows[4].error == "the task returned None"
    assert "cannot be kept as JSON" in (rows[5].error or "")
    assert "the cost must be a number" in (rows[6].error or "")
    assert "cannot be kept as JSON" in (rows[7].error or "")
    assert rows[8].output == 16
    assert rows[9].output == {"output": "x", "other": 1}
    assert found.ledger["same"] == Tally(scored=6, unscored=0, failed=4)


def test_the_conversation_of_a_task_is_kept(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "2"}, {"role": "assistant", "tool_calls": [{"name": "add"}]}]
    evaluate(DATA[:1], lambda text: {"output": "0", "messages": said}, "exact_match", folder=tmp_path / "run")
    (line,) = (tmp_path / "run" / "trajectories.jsonl").read_text().splitlines()
    assert json.loads(line)["trajectory"] == said


def test_async_tasks_run_at_once_up_to_the_limit() -> None:
    running = most = 0

    async def task(text: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return text

    evaluate(DATA, task, "exact_match", concurrency=3, repeats=2)
    assert most == 3


def test_plain_tasks_run_on_threads_at_once() -> None:
    together = threading.Barrier(4)

    def task(text: str) -> str:
        together.wait(60)
        return text

    found = evaluate([{"input": "a", "expected": "a"}] * 8, task, "exact_match", concurrency=4)
    assert found.mean() == 1.0


def test_repeats_are_grouped_by_item() -> None:
    found = evaluate(
        DATA, lambda item: str(2 * int(item["input"]) + item["repeat"]), "exact_match", repeats=2
    )
    assert [row.scores["exact_match"] for row in found.rows] == [1, 0] * 10
    assert found.metrics()["pass@2"].value == 1.0
    assert found.metrics()["pass^2"].value == 0.0


def test_a_task_that_takes_too_long_is_a_failure_and_is_left_behind() -> None:
    release = threading.Event()

    def stuck(text: str) -> str:
        if text == "3":
            release.wait(60)
        return str(2 * int(text))

    async def deaf(text: str) -> str:
        while text == "3" and not release.is_set():
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                return "cancelled, and answers all the same"
        return str(2 * int(text))

    for task in (stuck, deaf):
        found = evaluate(DATA[3:4], task, "exact_match", timeout=0.2)
        assert found.ledger["exact_match"] == Tally(scored=0, unscored=0, failed=1)
        assert found.rows[0].error == "the task did not end within 0.2 s"
    release.set()


def test_too_many_threads_left_behind_end_the_run() -> None:
    release = threading.Event()

    def stuck(text: str) -> str:
        release.wait(60)
        return text

    data = [{"input": str(n)} for n in range(300)]
    with pytest.raises(TooManyAbandoned, match="did not end in their time limit"):
        evaluate(data, stuck, "exact_match", timeout=0.02, concurrency=16)
    release.set()


def test_a_task_that_wants_to_leave_is_only_a_failure() -> None:
    def leaving(text: str) -> str:
        raise SystemExit(3)

    async def cancelled(text: str) -> str:
        raise asyncio.CancelledError("by itself")

    for task, words in ((leaving, "SystemExit: 3"), (cancelled, "CancelledError: by itself")):
        found = evaluate(DATA[:2], task, "exact_match")
        assert found.ledger["exact_match"].failed == 2
        assert words in (found.rows[0].error or "")


def test_inside_a_running_loop() -> None:
    async def notebook() -> tuple[Result, Result]:
        return evaluate(DATA, double, "exact_match"), await aevaluate(DATA, double, "exact_match")

    waited, awaited = asyncio.run(notebook())
    assert waited.ledger == awaited.ledger
    assert waited.mean() == awaited.mean()


def test_an_error_inside_a_running_loop_is_raised_there() -> None:
    async def notebook() -> None:
        with pytest.raises(OptionError):
            evaluate(DATA, double, [])

    asyncio.run(notebook())


def test_a_folder_can_be_resumed_and_repeats_no_finished_call(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    calls: list[str] = []

    class Ended(BaseException):
        pass

    class Model:
        """Stops the program after six answers, as a user's Ctrl-C would."""

        broken = True

        async def __call__(self, text: str) -> str:
            if self.broken and len(calls) == 6:
                raise Ended
            calls.append(text)
            return str(2 * int(text))

    model = Model()
    with pytest.raises(Ended):
        evaluate(DATA, model, ["exact_match"], folder=folder, concurrency=1)
    model.broken = False
    with pytest.raises(RunConflict, match="resume=True"):
        evaluate(DATA, model, ["exact_match"], folder=folder)
    found = evaluate(DATA, model, ["exact_match"], folder=folder, resume=True)
    assert sorted(calls, key=int) == [str(n) for n in range(10)]
    assert found.mean() == 1.0
    again = evaluate(DATA, model, ["exact_match"], folder=folder, resume=True)
    assert len(calls) == 10
    assert again.ledger == found.ledger


def test_a_failure_is_tried_again_when_a_finished_run_is_resumed(tmp_path: Path) -> None:
    class Flaky:
        fails = True
        calls = 0

        def __call__(self, text: str) -> str:
            self.calls += 1
            if text == "3" and self.fails:
                raise ConnectionError("away")
            return str(2 * int(text))

    task = Flaky()
    first = evaluate(DATA, task, ["exact_match", "token_f1"], folder=tmp_path)
    assert first.ledger["token_f1"].failed == 1
    task.fails = False
    second = evaluate(DATA, task, ["exact_match", "token_f1"], folder=tmp_path, resume=True)
    assert task.calls == 11
    assert second.ledger["token_f1"] == Tally(scored=10, unscored=0, failed=0)


def test_another_task_or_scorer_does_not_continue_a_run(tmp_path: Path) -> None:
    evaluate(DATA, double, "exact_match", folder=tmp_path)
    with pytest.raises(RunConflict, match="the task or its code changed"):
        evaluate(DATA, lambda text: text, "exact_match", folder=tmp_path, resume=True)
    with pytest.raises(RunConflict, match="the scorer token_f1 is new"):
        evaluate(DATA, double, ["exact_match", "token_f1"], folder=tmp_path, resume=True)
    with pytest.raises(RunConflict, match="the contents of the dataset changed"):
        evaluate(DATA[1:], double, "exact_match", folder=tmp_path, resume=True)
    with pytest.raises(OptionError, match="needs the folder"):
        evaluate(DATA, double, "exact_match", resume=True)


MANY = [{"input": str(n), "expected": str(n)} for n in range(120)]


def same(text: str) -> str:
    return text


def worse(text: str) -> str:
    return "x" if int(text) % 5 == 0 else text


def half(output: str, expected: str) -> float:
    return 1.0 if output == expected else 0.5


def test_verdicts_against_a_baseline() -> None:
    base = evaluate(MANY, same, ["exact_match", half], name="old", metadata={"version": "1"})
    other = evaluate(MANY, worse, ["exact_match", half], name="new", metadata={"version": "2"}, baseline=base)
    assert other.verdicts is not None
    assert other.verdicts.verdict == "BLOCK"
    assert set(other.verdicts.comparisons) == {"exact_match", "half"}
    one = other.verdicts.comparisons["exact_match"]
    assert one.delta.value == pytest.approx(-0.2)
    assert one.family is not None
    assert {str(change) for change in one.treatment} >= {
        "version: 1 → 2",
        "run: old → new",
        "task: same → worse",
    }
    assert not other.not_worse_than(base, margin=0.05)
    assert base.not_worse_than(base, margin=0.05)
    assert base.not_worse_than(other, margin=0.05)
    assert other.compare(base, 0.05, scorer="half").comparisons.keys() == {"half"}
    with pytest.raises(UnknownName):
        other.compare(base, scorer="hal")
    with pytest.raises(Incomparable, match="dataset"):
        evaluate(MANY[:50], same, ["exact_match", half]).compare(base)
    with pytest.raises(Incomparable, match="scorer"):
        evaluate(MANY, same, {"exact_match": half}).compare(evaluate(MANY, same, "exact_match"))


def test_a_scorer_that_only_one_side_has_is_no_pass() -> None:
    base = evaluate(MANY, same, ["exact_match", half])
    found = evaluate(MANY, same, ["exact_match", "token_f1"]).compare(base)
    assert sorted(found.left_out) == ["half", "token_f1"]
    assert found.verdict == "INCONCLUSIVE"
    assert not found


def test_a_shown_drop_within_the_margin_is_not_worse_than_it() -> None:
    data = [{"input": str(n), "expected": str(n)} for n in range(1000)]
    base = evaluate(data, same, "exact_match")
    found = evaluate(data, lambda text: "x" if int(text) % 100 == 0 else text, "exact_match").not_worse_than(
        base, 0.05
    )
    assert found.verdict == "WARN"
    assert found


def test_a_verdict_leaves_an_audit_that_verifies(tmp_path: Path) -> None:
    base = evaluate(MANY, same, ["exact_match", "token_f1"])
    worse = evaluate(MANY, lambda text: "x" if len(text) % 2 == 0 else text, ["exact_match", "token_f1"])
    for place, found in enumerate((worse.compare(base), base.compare(base, scorer="exact_match"))):
        file = found.save_audit(tmp_path / f"audit-{place}.json")
        told = subprocess.run(
            [sys.executable, "-I", "-S", VERIFIER, file], capture_output=True, text=True, timeout=300
        )
        assert told.returncode == 0, told.stdout + told.stderr
        assert "not recomputed: 0 numbers" in told.stdout
    with pytest.raises(OutputError, match="cannot be written"):
        base.compare(base).save_audit(tmp_path / "none" / "audit.json")


def test_a_result_is_saved_loaded_and_compared_by_the_commands(tmp_path: Path) -> None:
    base = evaluate(MANY, same, ["exact_match", half])
    base.save(tmp_path / "base")
    loaded = Result.load(tmp_path / "base")
    assert loaded.rows == base.rows
    assert loaded.ledger == base.ledger
    assert loaded.interval("half") == base.interval("half")
    with pytest.raises(InputError, match="not empty"):
        base.save(tmp_path / "base")
    again = evaluate(MANY, worse, ["exact_match", half], folder=tmp_path / "new", baseline=tmp_path / "base")
    assert again.verdicts is not None
    assert again.verdicts.verdict == "BLOCK"


def test_tables() -> None:
    found = evaluate(DATA, double, ["exact_match", half])
    table = found.to_polars()
    assert table["exact_match"].to_list() == [row.scores["exact_match"] for row in found.rows]
    assert table["half status"].to_list()[3] == "failed"
    frame = pytest.importorskip("pandas")
    assert len(found.to_pandas()) == 10
    assert frame is not None


def test_what_a_notebook_shows_is_escaped() -> None:
    hostile = "<script>alert(1)</script>"

    def task(text: str) -> str:
        if text.endswith("2"):
            raise ValueError(hostile)
        return hostile

    data = [{"input": f"{hostile}{n}", "expected": hostile} for n in range(30)]
    found = evaluate(data, task, ["exact_match"], name=hostile)
    shown = found._repr_html_()
    assert hostile not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "and 10 more" in shown
    assert hostile not in found.compare(found)._repr_html_()


def test_a_judge_scores_what_is_left_to_it(tmp_path: Path) -> None:
    asked: list[str] = []

    def judge(call: Any) -> str:
        asked.append(call.prompt)
        return with_nonce('{"nonce": "{{nonce}}", "reasoning": "fine", "score": 5}', call.prompt)

    with MockModel(judge) as server:
        options = {"url": server.url, "id": "judge"}
        scorers = ["exact_match", "needs_judge"]
        found = evaluate(DATA, double, scorers, judge=options, folder=tmp_path)
        assert found.mean("needs_judge") == 1.0
        assert found.ledger["needs_judge"] == Tally(scored=9, unscored=0, failed=1)
        assert found.mean("exact_match") == pytest.approx(8 / 9)
        assert len(asked) == 9
        evaluate(DATA, double, scorers, judge=options, folder=tmp_path, resume=True)
    assert len(asked) == 9
    with pytest.raises(OptionError, match="needs a judge"):
        evaluate(DATA, double, "needs_judge")


def test_a_bad_judge_is_refused() -> None:
    with pytest.raises(OptionError, match="judge"):
        evaluate(DATA, double, "needs_judge", judge={"address": "x"})
