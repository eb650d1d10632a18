"""`evenhand judge` and `evenhand mock-model` as a user meets them: real processes, real HTTP."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.ab_suites import wait_for
from tests.judging.commands import evenhand, mock_model, read_lines, write_lines

from evenhand.evaluation.judge_file import JudgementJournal

PLANTED = "sk-planted-0123456789abcdef"


def verdict(score: int) -> str:
    return '{"nonce": "{{nonce}}", "reasoning": "seen", "score": ' + str(score) + "}"


SCRIPT: list[dict[str, Any]] = [
    {"contains": "\nright ", "answer": verdict(5)},
    {"contains": "\nodd ", "answer": "I would rather not."},
    {"contains": "No verdict could be read", "answer": "Still not."},
    {"answer": verdict(0)},
]


def test_stored_answers_are_judged_and_a_second_run_judges_only_what_failed(tmp_path: Path) -> None:
    words = ["right", "wrong", "odd"]
    rows = [{"question": f"Q{n}", "response": f"{words[n % 3]} {n}", "target": "right"} for n in range(30)]
    answers = write_lines(tmp_path / "answers.jsonl", [*rows, {"response": ":", "target": "x"}])
    script = write_lines(tmp_path / "script.jsonl", SCRIPT)
    options = ["judge", "score", answers, "--judge-id", "m", "-o", "new/judged.jsonl", "--format", "json"]
    with mock_model("--answers", script) as url:
        first = evenhand(*options, "--judge-url", url, cwd=tmp_path, EVENHAND_JUDGE_API_KEY=PLANTED)
        again = evenhand(*options, "--judge-url", url, "--resume", "--no-cache", cwd=tmp_path)
        other = evenhand(*options[:4], "m2", *options[5:], "--judge-url", url, "--resume", cwd=tmp_path)
    assert first.returncode == 1, first.stderr
    found = json.loads(first.stdout)
    assert (found["samples"], found["scored"], found["failed"]) == (31, 21, 10)
    assert found["without_score"] == {"grade_parse_failure": 10}
    # Ten of the 21 with a score are right.
    assert found["mean_reward"]["value"] == pytest.approx(10 / 21)
    judged = read_lines(tmp_path / "new/judged.jsonl")
    assert [row["problem_idx"] for row in judged] == list(range(31))
    assert [row["reward"] for row in judged[:6]] == [1.0, 0.0, None, 1.0, 0.0, None]
    assert judged[2]["scoring_details"]["judge"]["raw_reply"] == "Still not."
    assert judged[2]["status"] == "failed"
    assert judged[30]["scoring_details"]["judge"]["raw_reply"].endswith('"score": 0}'), "the judge was asked"
    assert not (tmp_path / "new/judged.jsonl.partial").exists()
    resumed = json.loads(again.stdout)
    assert resumed["kept_from_earlier"] == 21
    assert resumed["usage"]["requests"] == 20  # the ten failures, each with a repair
    assert other.returncode == 64
    assert "another judge" in other.stderr
    for text in (
        first.stdout,
        first.stderr,
        *(p.read_bytes().decode("latin-1") for p in tmp_path.rglob("*") if p.is_file()),
    ):
        assert PLANTED not in text


def test_null_has_no_score_and_empty_and_cut_off_answers_are_judged(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"response": None, "target": "x"},
        {"response": "", "target": "x"},
        {"response": 4, "target": "4"},
        {"response": "<think>4", "target": "4"},
        {"response": "4", "target": "4", "finish_reason": "length"},
    ]
    answers = write_lines(tmp_path / "answers.jsonl", rows)
    script = write_lines(tmp_path / "script.jsonl", [{"answer": verdict(3)}])
    options = ["judge", "score", answers, "--judge-id", "m", "-o", "judged.jsonl", "--format", "json"]
    with mock_model("--answers", script) as url:
        done = evenhand(*options, "--judge-url", url, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (found["scored"], found["unscored"], found["failed"]) == (4, 1, 0), done.stderr
    assert found["without_score"] == {"no_response": 1}
    assert found["truncated"] == 2
    assert found["usage"]["requests"] == 4
    judged = read_lines(tmp_path / "judged.jsonl")
    assert [row["reward"] for row in judged] == [None, 0.6, 0.6, 0.6, 0.6]  # 3 of 5 points


def test_an_interrupted_run_is_resumed_without_repeating_calls(tmp_path: Path) -> None:
    answers = write_lines(tmp_path / "a.jsonl", [{"response": f"right {n}"} for n in range(60)])
    script = write_lines(tmp_path / "script.jsonl", SCRIPT)
    options = [
        "judge",
        "score",
        answers,
        "--judge-id",
        "m",
        "-o",
        "out.jsonl",
        "--concurrency",
        "2",
        "--no-cache",
    ]
    journal = tmp_path / "out.jsonl.partial"
    # Two at a time, a second each: there is half a minute for the signal to come in between.
    with mock_model("--answers", script, "--latency", "1") as url:
        command = [sys.executable, "-m", "evenhand", *options, "--judge-url", url]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: journal.exists() and len(journal.read_bytes().splitlines()) > 5, 120)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=240)
        assert process.returncode == 130, said
        kept = len(read_lines(journal))
        assert 5 < kept < 60
        assert not (tmp_path / "out.jsonl").exists()
    with mock_model("--answers", script) as url:
        journal.write_bytes(journal.read_bytes() + b'{"problem_idx": 59, "rew')
        done = evenhand(*options, "--judge-url", url, "--resume", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kept_from_earlier"] == kept
    assert found["usage"]["requests"] == 60 - kept
    assert len(read_lines(tmp_path / "out.jsonl")) == 60


def test_a_second_command_for_one_output_is_refused_and_one_that_was_killed_blocks_nobody(
    tmp_path: Path,
) -> None:
    answers = write_lines(tmp_path / "a.jsonl", [{"response": f"right {n}"} for n in range(60)])
    other = write_lines(tmp_path / "b.jsonl", [{"response": "wrong"}])
    script = write_lines(tmp_path / "script.jsonl", SCRIPT)
    (tmp_path / "out.jsonl").write_text("what was there\n")
    (tmp_path / "same.jsonl").symlink_to("out.jsonl")
    options = ["--judge-id", "m", "--no-cache", "--concurrency", "2"]
    journal = tmp_path / "out.jsonl.partial"

    with mock_model("--answers", script, "--latency", "1") as url:
        command = ["judge", "score", answers, "-o", "out.jsonl", *options, "--judge-url", url]
        process = subprocess.Popen([sys.executable, "-m", "evenhand", *command], cwd=tmp_path)
        try:
            wait_for(lambda: journal.exists() and len(journal.read_bytes().splitlines()) > 1, 120)
            noted = journal.read_bytes()
            for name in ("out.jsonl", "same.jsonl"):
                for extra in ((), ("--resume",)):
                    second = ["judge", "score", other, "-o", name, *options, "--judge-url", url, *extra]
                    refused = evenhand(*second, cwd=tmp_path)
                    assert refused.returncode == 75
                    assert f"{name} is being written by another `evenhand judge score`" in refused.stderr
                    assert f"process {process.pid}, since 2" in refused.stderr
            assert journal.read_bytes().startswith(noted)
            assert (tmp_path / "out.jsonl").read_text() == "what was there\n"
            assert not (tmp_path / "same.jsonl.partial").exists()
        finally:
            process.kill()
            process.wait(60)
        kept = len(journal.read_bytes().splitlines())

    with mock_model("--answers", script) as url:
        command[-1] = url
        done = evenhand(*command, "--resume", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # The last line may have been cut by the kill.
    assert json.loads(done.stdout)["kept_from_earlier"] in (kept - 1, kept)
    assert len(read_lines(tmp_path / "out.jsonl")) == 60
    assert {path.name for path in tmp_path.iterdir() if "out" in path.name} == {"out.jsonl"}


def test_an_answer_that_changed_is_judged_again_and_a_cut_line_costs_one_verdict_at_most(
    tmp_path: Path,
) -> None:
    script = write_lines(tmp_path / "script.jsonl", SCRIPT)
    rows = [{"question": f"Q{n}", "response": f"right {n}", "target": "x"} for n in range(6)]
    options = [
        "judge",
        "score",
        "a.jsonl",
        "--judge-id",
        "m",
        "-o",
        "out.jsonl",
        "--no-cache",
        "--format",
        "json",
    ]
    with mock_model("--answers", script) as url:
        write_lines(tmp_path / "a.jsonl", rows)
        evenhand(*options, "--judge-url", url, cwd=tmp_path)
        rows[1]["response"], rows[2]["target"], rows[3]["question"] = "wrong 1", "y", "another"
        write_lines(tmp_path / "a.jsonl", rows)
        again = evenhand(*options, "--judge-url", url, "--resume", cwd=tmp_path)
        rewards = [row["reward"] for row in read_lines(tmp_path / "out.jsonl")]
        # Killed twice: a line cut short, and the verdicts of the run after it.
        whole = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
        (tmp_path / "out.jsonl").unlink()
        (tmp_path / "out.jsonl.partial").write_bytes(whole[0][:20])
        with JudgementJournal(tmp_path / "out.jsonl") as journal:
            for line in whole[:2]:
                journal.write(json.loads(line))
        last = evenhand(*options, "--judge-url", url, "--resume", cwd=tmp_path)
    assert json.loads(again.stdout)["kept_from_earlier"] == 3
    assert rewards == [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    assert json.loads(last.stdout)["kept_from_earlier"] == 2


@pytest.mark.parametrize("command", ["score", "selftest"])
def test_a_judge_that_is_not_there_is_noticed_before_anything_starts(tmp_path: Path, command: str) -> None:
    answers = [write_lines(tmp_path / "a.jsonl", [{"response": "x"}])] if command == "score" else []
    with mock_model() as url:
        pass
    done = evenhand("judge", command, *answers, "--judge-url", url, "--judge-id", "m", cwd=tmp_path)
    assert done.returncode == 69
    assert f"cannot connect to {url}" in done.stderr
    nonsense = evenhand(
        "judge", command, *answers, "--judge-url", "localhost:1", "--judge-id", "m", cwd=tmp_path
    )
    assert nonsense.returncode == 64
    assert "not an http or https address" in nonsense.stderr


def test_a_rubric_file_and_the_named_rubrics(tmp_path: Path) -> None:
    answers = write_lines(tmp_path / "a.jsonl", [{"response": "Canberra", "target": "Canberra"}] * 2)
    (tmp_path / "rubric.yaml").write_text(
        "rubric_template: Is it good?\nform: line\nchoices:\n"
        "- {label: good, value: 1.0}\n- {label: poor, value: 0.0}\n"
    )
    script = write_lines(
        tmp_path / "s.jsonl",
        [
            {"contains": "Is it good?", "answer": "Hm.\nVERDICT {{nonce}}: good"},
            {"answer": '{"nonce": "{{nonce}}", "reasoning": "", "label": "C"}'},
        ],
    )
    common = ["judge", "score", answers, "--judge-id", "m", "--format", "json", "--no-cache"]
    with mock_model("--answers", script) as url:
        own = evenhand(*common, "--judge-url", url, "--rubric", "rubric.yaml", cwd=tmp_path)
        simple = evenhand(*common, "--judge-url", url, "--rubric", "simpleqa", cwd=tmp_path)
        unknown = evenhand(*common, "--judge-url", url, "--rubric", "simpelqa", cwd=tmp_path)
        (tmp_path / "rubric.yaml").write_text("max_score: 5\nmax_score: 10\n")
        twice = evenhand(*common, "--judge-url", url, "--rubric", "rubric.yaml", cwd=tmp_path)
        (tmp_path / "rubric.yaml").write_text("nonsense: 1")
        broken = evenhand(*common, "--judge-url", url, "--rubric", "rubric.yaml", cwd=tmp_path)
    assert json.loads(own.stdout)["mean_reward"]["value"] == 1.0
    assert json.loads(simple.stdout)["mean_reward"]["value"] == 0.0
    assert unknown.returncode == 64
    assert "did you mean simpleqa" in unknown.stderr
    assert broken.returncode == 65
    assert "not a rubric" in broken.stderr
    assert "duplicate key 'max_score'" in twice.stderr


def test_bad_input_is_a_sentence(tmp_path: Path) -> None:
    empty = write_lines(tmp_path / "empty.jsonl", [{"question": "x"}])
    common = ["--judge-url", "http://127.0.0.1:9/v1", "--judge-id", "m"]
    done = evenhand("judge", "score", empty, *common, cwd=tmp_path)
    assert done.returncode == 65
    assert "no response" in done.stderr
    answers = write_lines(tmp_path / "a.jsonl", [{"response": "x y"}])
    for extra, words in (
        (["--spend-cap", "1"], "needs a price"),
        (["--price", "much"], "two numbers"),
        (["--resume"], "--output"),
    ):
        done = evenhand("judge", "score", answers, *common, *extra, cwd=tmp_path)
        assert done.returncode == 64
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def simulated(path: Path) -> str:
    rng = random.Random(5)
    rows: list[dict[str, Any]] = []
    for number in range(1200):
        good = rng.random() < 0.6
        row: dict[str, Any] = {"reward": float(rng.random() < (0.95 if good else 0.3)), "metadata": {}}
        if number % 4 == 0:
            row["metadata"]["human"] = good
        if number % 100 == 7:
            row["reward"] = None
        rows.append(row)
    return write_lines(path, rows)


def test_calibrate_prints_agreement_means_and_a_sentence(tmp_path: Path) -> None:
    scores = simulated(tmp_path / "scores.jsonl")
    text = evenhand(
        "judge", "calibrate", scores, "--human-field", "metadata.human", "--report", "r.html", cwd=tmp_path
    )
    assert text.returncode == 0, text.stderr
    for words in (
        "judge only",
        "corrected (PPI++)",
        "Rogan–Gladen",
        "Cohen's κ",
        "specificity",
        "corrected mean",
    ):
        assert words in text.stdout
    page = (tmp_path / "r.html").read_text()
    assert "<svg" in page
    assert "Use the corrected mean only" in page
    found = json.loads(
        evenhand(
            "judge", "calibrate", scores, "--human-field", "metadata.human", "--format", "json", cwd=tmp_path
        ).stdout
    )
    assert found["trust"] == "corrected_only"
    assert (found["items"], found["labelled"], found["no_judge_score"]) == (1200, 300, 12)
    assert found["judge_only"]["ci_lower"] > 0.6
    assert found["corrected"]["ci_lower"] < 0.6 < found["corrected"]["ci_upper"]


def test_calibrate_refuses_scores_of_several_judges(tmp_path: Path) -> None:
    rows = [{"reward": 1.0, "human": 1, "judge": {"identity": f"judge-{n % 2}"}} for n in range(8)]
    done = evenhand(
        "judge", "calibrate", write_lines(tmp_path / "s.jsonl", rows), "--human-field", "human", cwd=tmp_path
    )
    assert done.returncode == 65
    assert "different judges" in done.stderr


def test_the_mock_model_says_where_it_is_and_refuses_a_taken_port(tmp_path: Path) -> None:
    with mock_model("--answer", "hello") as url:
        port = url.rpartition(":")[2].removesuffix("/v1")
        done = evenhand("mock-model", "--port", port, cwd=tmp_path)
    assert done.returncode == 69
    assert "cannot listen" in done.stderr
    bad = write_lines(tmp_path / "bad.jsonl", [{"contains": "x"}])
    done = evenhand("mock-model", "--answers", bad, cwd=tmp_path)
    assert done.returncode == 65
    assert "bad.jsonl:1" in done.stderr
