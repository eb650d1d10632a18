"""Wrong input, as a newcomer gives it: one sentence and exit status 2."""

import json
import subprocess
import sys
from pathlib import Path

from tests.runs import single, usage, write_run


def refused(*args: str | Path) -> str:
    """What a refused command says."""
    command = [sys.executable, "-m", "evenhand", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode in (64, 65, 66, 74), (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_an_effect_beyond_the_discordant_share_is_impossible() -> None:
    said = refused("plan", "--effect", "0.2", "--discordant", "0.1")
    assert "0.2 is impossible when only 0.1 of the problems differ" in said


def test_missing_files_are_named_without_the_number_of_the_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", single([1.0, 0.0]))
    nowhere = tmp_path / "nowhere.yaml"
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"response": "a", "target": "a"}\n')
    endpoint = ("--judge-url", "http://127.0.0.1:9/v1", "--judge-id", "j")
    for said in (
        refused("gate", run, run, "--policy", nowhere),
        refused("judge", "score", answers, *endpoint, "--rubric", nowhere),
    ):
        assert "nowhere.yaml: cannot read the " in said
        assert "Errno" not in said


def test_a_run_that_was_interrupted_is_called_unfinished(tmp_path: Path) -> None:
    (tmp_path / "out" / ".run").mkdir(parents=True)
    assert "not finished; continue it with" in refused("eval", "report", tmp_path / "out")


def test_checking_a_database_that_is_not_there_finds_no_fault_but_says_so(tmp_path: Path) -> None:
    place = tmp_path / "none.db"
    assert "no such database" in refused("db", "check", "--database", f"sqlite:///{place}")
    assert not place.exists()


def test_the_scorer_of_a_benchmark_scores_a_file(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(
        "from evenhand import benchmark, exact_match, scorer\n"
        "@benchmark(name='b', dataset=list, prompt='{q}')\n"
        "@scorer\n"
        "def check(sample):\n"
        "    return exact_match(sample)\n"
    )
    (tmp_path / "answers.jsonl").write_text('{"response": "a", "target": "a"}\nbad\n')
    command = [sys.executable, "-m", "evenhand", "score", "answers.jsonl", "--skip-invalid"]
    done = subprocess.run(
        [*command, "--scorer", "bench.py:check"], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "1 line could not be read" in done.stdout


def test_the_classic_gate_speaks_in_sentences(tmp_path: Path) -> None:
    spent = usage(tokens=10, cost=0.1, seconds=1.0)
    run = write_run(tmp_path / "run", single([1.0, 0.0]), usage=spent)
    command = [sys.executable, "-m", "evenhand", "gate", str(run), str(run), "--policy", "classic"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "success_rate: equal (candidate 0.5000, base 0.5000)" in done.stdout
    assert "{" not in done.stdout


def test_one_problem_is_too_few_for_a_comparison(tmp_path: Path) -> None:
    first, second, third = (write_run(tmp_path / name, single([1.0])) for name in "abc")
    for more in ((), (third,)):
        assert "at least two problems" in refused("compare", first, second, *more)


def test_a_run_is_compared_with_itself_only_as_a_pair(tmp_path: Path) -> None:
    first, second = (write_run(tmp_path / name, single([1.0, 0.0])) for name in "ab")
    for again in (first, second / ".." / "a"):
        assert "is given twice" in refused("compare", first, second, again)


def test_a_service_that_is_away_is_a_sentence_and_a_status(tmp_path: Path) -> None:
    row = {"task_id": "t", "arm": "a", "repeat": 1, "success": True, "duration_seconds": 1.0}
    amounts = ("total_cost_usd", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    records = tmp_path / "collected.jsonl"
    records.write_text(json.dumps({**row, **dict.fromkeys(amounts, 1)}) + "\n")
    command = ["ab", "record", str(records)]
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", *command, "http://127.0.0.1:9"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 69
    assert done.stderr == (
        "Error: http://127.0.0.1:9 cannot be reached (connection refused): is a scoring service running there?\n"
    )
    for wrong in ("http://127.0.0.1:99999", "http://[::1"):
        assert f"'{wrong}' is not the address of a service" in refused(*command, wrong)


def test_a_port_that_does_not_exist_is_refused() -> None:
    assert "0<=x<=65535" in refused("mock-model", "--port", "99999")


def test_a_report_that_cannot_be_written_is_no_verdict(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", single([1.0, 0.0]))
    (tmp_path / "policy.yaml").write_text("version: 1\nbenchmarks: {bench: {max_drop: 0.1}}\n")
    nowhere = tmp_path / "none" / "gate.xml"
    said = refused("gate", run, run, "--policy", tmp_path / "policy.yaml", "--junit", nowhere)
    assert said == f"Error: {nowhere}: cannot be written: No such file or directory\n"


def test_an_error_rate_of_nothing_is_refused() -> None:
    assert "alpha must be between" in refused(
        "plan", "--effect", "0.1", "--discordant", "0.2", "--alpha", "0"
    )


def test_numbers_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", single([1.0, 0.0, 1.0]))
    assert "max_drop must be a finite number of at least 0" in refused(
        "compare", run, run, "--max-drop", "inf"
    )
    plan = ("plan", "--discordant", "0.1", "--effect")
    assert "too small: no number of problems would show it" in refused(*plan, "1e-9")
    for cost in ("-1", "inf", "nan"):
        assert "costs and labels must be numbers from 0 up" in refused(*plan, "0.1", "--answer-cost", cost)
