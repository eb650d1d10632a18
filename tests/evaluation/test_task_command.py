"""`eval run --task`: the same as `evaluate`, from the shell; caches; the folders in `compare` and `gate`."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.runs import Done, evenhand

from evenhand import Result, evaluate
from evenhand.evaluation.task_code import task_fingerprint
from evenhand.testing import MockModel
from evenhand.testing.script import MockCall

APP = """
import json
from doubling_helper import double

CALLS = {calls!r}

def answer(question, item):
    with open(CALLS, "a") as file:
        file.write(question + "\\n")
    if question == "7":
        raise ValueError("not seven")
    return double(question)
"""
HELPER = """
def double(question):
    number = int(question)
    return str(2 * number + (number % 5 == 0))
"""
MINE = """
def tone(output):
    return "long" if len(output) > 2 else "short"

def near(output, expected):
    return 1.0 if abs(int(output) - int(expected)) <= 1 else 0.0
"""


def doubling(text: str) -> str:
    number = int(text)
    return str(2 * number + (number % 5 == 0))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an application, its scorers and 60 rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    (tmp_path / "app.py").write_text(APP.format(calls=str(tmp_path / "calls.txt")))
    (tmp_path / "doubling_helper.py").write_text(HELPER)
    (tmp_path / "mine.py").write_text(MINE)
    rows = [{"input": str(n), "expected": str(2 * n)} for n in range(60)]
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def calls(place: Path) -> int:
    return len((place / "calls.txt").read_text().splitlines())


SCORERS = ["--scorer", "exact_match", "--scorer", "mine.py:tone", "--scorer", "mine.py:near"]


def run(place: Path, *more: str, status: int = 0) -> Done:
    done = evenhand("eval", "run", "--task", "app.py:answer", "--data", "qa.jsonl", *more)
    assert done.returncode == status, done.stderr
    return done


def test_a_task_from_the_shell(place: Path) -> None:
    done = run(place, *SCORERS, "-o", "out", "--repeats", "2", "--concurrency", "3", status=1)
    assert "ValueError: not seven" in done.stdout
    assert "2 samples could not be measured" in done.stderr
    found = Result.load(place / "out")
    assert found.scorers == ["exact_match", "tone", "near"]
    assert found.ledger["exact_match"].scored == found.ledger["near"].scored == 118
    assert found.mean("exact_match") == pytest.approx(94 / 118)
    assert found.labels("tone")["long"] > 0
    assert calls(place) == 120
    run(place, *SCORERS, "-o", "out", "--repeats", "2", "--resume", "--allow-errors")
    assert calls(place) == 122  # only what failed
    page = (place / "out" / "report.html").read_text()
    assert "Scorers" in page
    assert "near" in page


def test_the_folders_compare_and_gate_by_scorer(place: Path) -> None:
    for name in ("a", "b"):
        run(place, *SCORERS, "-o", name, "--allow-errors", "--name", name, "--metadata", f"version={name}")
    done = evenhand("compare", "a", "b", "--format", "json", "--max-drop", "0.2")
    found: Any = json.loads(done.stdout)
    assert [one["benchmark"] for one in found["comparisons"]] == ["qa · exact_match", "qa · near"]
    assert all(one["family"]["size"] == 2 for one in found["comparisons"])
    treated = {
        change["name"]: (change["base"], change["candidate"])
        for change in found["comparisons"][0]["treatment"]
    }
    assert treated == {"run": ("a", "b"), "version": ("a", "b")}
    picked: Any = json.loads(evenhand("compare", "a", "b", "--scorer", "near", "--format", "json").stdout)
    assert [one["benchmark"] for one in picked["comparisons"]] == ["qa · near"]
    assert evenhand("compare", "a", "b", "--scorer", "nera").returncode == 64
    (place / "policy.yaml").write_text(
        "version: 1\ndefaults: {tier: critical, metric: mean_reward, max_drop: 0.2}\n"
        "benchmarks:\n  'qa · exact_match': {}\n  'qa · near': {}\n"
    )
    gated = evenhand("gate", "a", "b", "--policy", "policy.yaml", "--format", "json")
    assert gated.returncode == 0, gated.stdout
    assert {gate["benchmark"] for gate in json.loads(gated.stdout)["gates"]} == {
        "qa · exact_match",
        "qa · near",
    }


def test_the_cache_is_off_unless_asked_for_and_knows_code_input_and_repeat(place: Path) -> None:
    run(place, *SCORERS, "-o", "a", "--allow-errors")
    run(place, *SCORERS, "-o", "b", "--allow-errors")
    assert calls(place) == 120
    run(place, *SCORERS, "-o", "c", "--allow-errors", "--cache")
    assert calls(place) == 180
    done = run(place, *SCORERS, "-o", "d", "--allow-errors", "--cache")
    assert calls(place) == 181  # a failure is no answer
    assert "59 of 59 answers came from the cache" in done.stdout
    run(place, *SCORERS, "-o", "e", "--allow-errors", "--cache", "--repeats", "2")
    assert calls(place) == 181 + 61  # the second repeat, and again the failure
    run(place, *SCORERS, "-o", "f", "--allow-errors", "--cache", "--metadata", "version=2")
    assert calls(place) == 181 + 61 + 60


def test_a_model_may_use_the_cache_too(place: Path) -> None:
    with MockModel(lambda call: doubling(call.prompt)) as server:
        shared = [
            "eval",
            "run",
            "--data",
            "qa.jsonl",
            "--scorer",
            "exact_match",
            "--model-url",
            server.url,
            "--model-id",
            "m",
        ]
        for folder in ("a", "b"):
            assert evenhand(*shared, "-o", folder, "--cache").returncode == 0
        assert len(server.calls) == 60
        assert evenhand(*shared, "-o", "c").returncode == 0
        assert len(server.calls) == 120
    assert Result.load("a").rows[3].scores == Result.load("b").rows[3].scores


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--task", "app.py:answr"], 64, "did you mean answer"),
        (["--task", "app.py"], 64, "FILE.py:NAME"),
        (["--task", "nowhere.py:answer"], 66, "no such file"),
        (["--task", "app.py:CALLS"], 64, "not a function"),
        (["--task", "broken.py:answer"], 65, "cannot be loaded: SyntaxError"),
        (["--task", "app.py:answer", "--model", "openai/x"], 64, "a model or a --task"),
        (["--task", "app.py:answer", "--bench", "gsm8k"], 64, "not both"),
        (["--task", "app.py:answer", "--metadata", "x"], 64, "KEY=VALUE"),
    ],
)
def test_mistakes_are_named(place: Path, options: list[str], status: int, words: str) -> None:
    (place / "broken.py").write_text("def answer(:")
    done = evenhand("eval", "run", "--data", "qa.jsonl", "--scorer", "exact_match", *options)
    assert (done.returncode, words in done.stderr) == (status, True), done.stderr
    assert not (place / "eval-results").exists()


def test_a_benchmark_can_be_put_to_a_task(place: Path) -> None:
    (place / "solver.py").write_text("def solve(question):\n    return 'The answer is 5'\n")
    done = evenhand("eval", "run", "--bench", "gsm8k", "--sample", "--task", "solver.py:solve", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert all(isinstance(row.scores[next(iter(row.scores))], float) for row in Result.load("out").rows)


def test_three_ways_to_run_the_same_samples_agree(place: Path) -> None:
    rows = [
        {"input": str(n), "expected": str(2 * n), "category": "odd" if n % 2 else "even"} for n in range(200)
    ]
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "solver.py").write_text(
        "from doubling_helper import double\n\ndef solve(text):\n    return double(text)\n"
    )
    shared = ["eval", "run", "--data", "rows.jsonl", "--scorer", "exact_match", "--scorer", "token_f1"]
    with MockModel(lambda call: doubling(call.prompt)) as server:
        model = ["--model-url", server.url, "--model-id", "m"]
        assert evenhand(*shared, *model, "-o", "model").returncode == 0
    assert evenhand(*shared, "--task", "solver.py:solve", "-o", "task").returncode == 0
    here = evaluate("rows.jsonl", doubling, ["exact_match", "token_f1"])
    ways = [here, Result.load("task"), Result.load("model")]
    for scorer in ("exact_match", "token_f1"):
        assert len({one.ledger[scorer].scored for one in ways}) == 1
        assert [one.interval(scorer) for one in ways] == [here.interval(scorer)] * 3
    assert all([row.outcomes for row in one.rows] == [row.outcomes for row in here.rows] for one in ways)
    assert all(one.ledger == here.ledger for one in ways)
    assert all(one.bundle.benchmark.categories == here.bundle.benchmark.categories for one in ways)
    assert all(one.bundle.hashes["dataset"] == here.bundle.hashes["dataset"] for one in ways)
    for one in ways[1:]:
        assert one.not_worse_than(here, margin=0.05)


GREETING = "Hello"


def greet(name: str) -> str:
    return f"{GREETING} {polish(name)}"


def polish(name: str) -> str:
    return name.title()


class Greeter:
    def __call__(self, name: str) -> str:
        return greet(name)


def test_the_fingerprint_of_a_task_sees_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [
        task_fingerprint(one)
        for one in (greet, Greeter(), partial(greet, "x"), lambda call: greet(call).upper())
    ]
    assert before == [
        task_fingerprint(one)
        for one in (greet, Greeter(), partial(greet, "x"), lambda call: greet(call).upper())
    ]
    assert task_fingerprint(partial(greet, "x")) != task_fingerprint(partial(greet, "y"))
    monkeypatch.setitem(globals(), "GREETING", "Hi")
    after = [
        task_fingerprint(one)
        for one in (greet, Greeter(), partial(greet, "x"), lambda call: greet(call).upper())
    ]
    assert all(old != new for old, new in zip(before, after, strict=True))
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "polish", _coarse)
    assert task_fingerprint(Greeter()) != before[1]


def _coarse(name: str) -> str:
    return name


def test_a_mock_call_is_what_the_item_says(place: Path) -> None:
    """An item whose input is a conversation is sent as it is."""
    seen: list[MockCall] = []

    def answer(call: MockCall) -> str:
        seen.append(call)
        return "4"

    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}]
    (place / "talk.jsonl").write_text(json.dumps({"input": talk, "expected": "4"}) + "\n")
    with MockModel(answer) as server:
        model = ["--model-url", server.url, "--model-id", "m"]
        done = evenhand("eval", "run", "--data", "talk.jsonl", "--scorer", "exact_match", *model, "-o", "out")
    assert done.returncode == 0, done.stderr
    assert [(turn["role"], turn["content"]) for turn in seen[0].body["messages"]] == [
        (turn["role"], turn["content"]) for turn in talk
    ]
