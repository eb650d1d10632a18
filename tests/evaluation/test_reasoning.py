"""Reasoning models over real HTTP: thinking is not scored, answers that were cut off are told apart."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.runs import evenhand

from evenhand.evaluation.failures import ArtifactCollector
from evenhand.results import SampleResult
from evenhand.testing import MockAnswer, MockCall, MockModel, with_nonce

BENCH = """
from evenhand import ScorerInput, benchmark, multichoice_regex, scorer

def rows():
    return [{"q": name, "target": "B"} for name in %r]

@benchmark(name="letters", dataset=rows, prompt="{q}")
@scorer
def letters(sample: ScorerInput):
    return multichoice_regex(sample)
"""
# What the model says to each question; the target is always B, and A is what thinking alone would give.
ANSWERS: dict[str, MockAnswer] = {
    "plain": MockAnswer(text="Answer: B"),
    "tags": MockAnswer(text="<think>Answer: A? No.</think>\nAnswer: B"),
    "template": MockAnswer(text="Answer: A? No.\n</think>\nAnswer: B"),
    "field": MockAnswer(text="Answer: B", reasoning="Answer: A? No."),
    "other_field": MockAnswer(text="Answer: B", reasoning="Answer: A? No.", reasoning_field="reasoning"),
    "parts": MockAnswer(
        content=[
            {"type": "thinking", "thinking": [{"type": "text", "text": "Answer: A? No."}]},
            {"type": "text", "text": "Answer: B"},
        ]
    ),
    "only_thought": MockAnswer(text="<think>It says Answer: B</think>\nI do not know."),
    "unclosed": MockAnswer(text="<think>It could be. Answer: B"),
    "cut_off": MockAnswer(text="Let us see. First, ", finish_reason="length"),
    "cut_off_right": MockAnswer(text="Answer: B, because", finish_reason="length"),
    "cut_in_field": MockAnswer(text="", reasoning="Let us see", finish_reason="length"),
    "empty": MockAnswer(text=""),
}
RIGHT = {"plain", "tags", "template", "field", "other_field", "parts", "cut_off_right"}
TRUNCATED = {"unclosed", "cut_off", "cut_in_field"}


def say(call: MockCall) -> MockAnswer:
    return ANSWERS[call.prompt]


def write_bench(folder: Path, questions: list[str]) -> Path:
    path = folder / "bench.py"
    path.write_text(BENCH % questions)
    return path


def rows_of(path: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["metadata"]["q"]: row for row in lines}


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_a_run_scores_answers_and_keeps_thinking_apart(tmp_path: Path, dialect: str) -> None:
    questions = list(ANSWERS)
    if dialect == "anthropic":  # it has one way to show thinking apart, and no empty texts
        questions = [name for name in questions if name not in ("parts", "other_field")]
    bench = write_bench(tmp_path, questions)
    with MockModel(say) as model:
        done = evenhand(
            *("eval", "run", "--bench", bench, "--model-url", model.url, "--model-id", "m"),
            *("--dialect", dialect, "-o", tmp_path / "out"),
        )
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "out" / "results.jsonl")
    assert {name for name, row in rows.items() if row["reward"] == 1.0} == RIGHT & set(questions)
    assert all(row["status"] == "scored" for row in rows.values())
    for name in ("tags", "template", "field", *(("other_field", "parts") if dialect == "openai" else ())):
        assert rows[name]["reasoning"] == "Answer: A? No.", name
        assert rows[name]["model_response"] == "Answer: B", name
    assert rows["plain"]["reasoning"] is None
    assert (rows["unclosed"]["model_response"], rows["unclosed"]["reasoning"]) == (
        "",
        "It could be. Answer: B",
    )
    assert {name for name, row in rows.items() if row["truncated"]} == TRUNCATED | {"cut_off_right"}
    trajectories = [
        json.loads(line) for line in (tmp_path / "out" / "trajectories.jsonl").read_text().splitlines()
    ]
    assert sum(bool(one.get("truncated")) for one in trajectories) == 4
    assert {one["reasoning"] for one in trajectories if "reasoning" in one} >= {"Answer: A? No."}

    analysis = json.loads((tmp_path / "out" / "failure_analysis.json").read_text())
    # 3 cut off and wrong; "I do not know." has no letter; the empty answer
    counts = {name: category["count"] for name, category in analysis["categories"].items()}
    assert counts == {"truncated": 3, "format_error": 1, "empty": 1}
    shown = [one["response_preview"] for one in analysis["exemplars"] if one["category"] == "truncated"]
    assert "… It could be. Answer: B" in shown
    assert "truncated 3" in done.stdout
    assert "raise the limit with --max-tokens" in done.stdout
    assert "4 of" in done.stdout
    assert "raise the limit with --max-tokens" in (tmp_path / "out" / "report.html").read_text()
    stats = json.loads((tmp_path / "out" / "runtime_stats.json").read_text())
    assert stats["cut_off"] == 4


def test_tags_can_be_others_or_none(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, ["x"])
    with MockModel("[THINK]Answer: A[/THINK]\nAnswer: B\n<think>Answer: C</think>") as model:
        flags = ("eval", "run", "--bench", bench, "--model-url", model.url, "--model-id", "m")
        found: dict[str, str] = {}
        for tags in ("none", "think", "think,[THINK]...[/THINK]"):
            folder = tmp_path / str(len(found))
            done = evenhand(*flags, "--think-tags", tags, "-o", folder)
            assert done.returncode == 0, done.stderr
            found[tags] = json.loads((folder / "results.jsonl").read_text())["extracted_answer"]
        assert found == {"none": "C", "think": "B", "think,[THINK]...[/THINK]": "B"}
        # What was taken for thinking decides grades: a run is not resumed with other tags, nor compared.
        resumed = evenhand(*flags, "-o", tmp_path / "0", "--resume")
        assert resumed.returncode != 0
        assert 'think tags was [] and is now ["think"]' in resumed.stderr
        bad = evenhand(*flags, "--think-tags", "<think>", "-o", tmp_path / "9")
        assert "'<think>' is not a thinking tag" in bad.stderr
    compared = evenhand("compare", tmp_path / "0", tmp_path / "1")
    assert "scorer" in compared.stdout + compared.stderr
    assert compared.returncode not in (0, 1)


def test_rescoring_takes_thinking_out_of_old_responses(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    responses = ["<think>Answer: A</think>\nAnswer: B", "<think>Answer: B", "Answer: B"]
    with (old / "results.jsonl").open("w") as file:
        for number, text in enumerate(responses):
            row = {"problem_idx": number, "reward": 0.0, "model_response": text, "expected_answer": "B"}
            file.write(json.dumps(row) + "\n")
    done = evenhand("eval", "rescore", old, "--scorer", "multichoice_regex", "-o", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "new" / "results.jsonl").read_text().splitlines()]
    assert [row["reward"] for row in rows] == [1.0, 0.0, 1.0]
    assert [row["reasoning"] for row in rows] == ["Answer: A", "Answer: B", None]
    assert [row["truncated"] for row in rows] == [False, True, False]
    assert "truncated 1" in done.stdout
    whole = evenhand(
        *("eval", "rescore", old, "--scorer", "multichoice_regex"),
        *("--think-tags", "none", "-o", tmp_path / "whole"),
    )
    assert whole.returncode == 0, whole.stderr
    rows = [json.loads(line) for line in (tmp_path / "whole" / "results.jsonl").read_text().splitlines()]
    assert [row["reward"] for row in rows] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "cut_off",
    [
        {"finish_reason": "length"},
        {"stop_reason": "max_tokens"},
        {"metadata": {"finish_reason": "length"}},
        {"truncated": True},
    ],
)
def test_score_counts_what_its_row_says_was_cut_off(tmp_path: Path, cut_off: dict[str, object]) -> None:
    file = tmp_path / "answers.jsonl"
    rows = [
        {"response": "Answer:", "target": "B", **cut_off},
        {"response": "Answer: B", "target": "B", "finish_reason": "stop"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = evenhand("score", file, "--scorer", "multichoice_regex", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["truncated"] == 1
    lines = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [line.get("truncated", False) for line in lines] == [True, False]


def test_score_leaves_thinking_out_and_counts_what_was_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    responses = ["<think>Answer: A</think>\nAnswer: B", "<think>Answer: B", "Answer: B", None]
    file.write_text("".join(json.dumps({"response": text, "target": "B"}) + "\n" for text in responses))
    done = evenhand("score", file, "--scorer", "multichoice_regex", "--format", "json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["truncated"] == 1
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [row["scores"]["multichoice_regex"].get("value") for row in scores] == [1.0, 0.0, 1.0, None]
    text = evenhand("score", file, "--scorer", "multichoice_regex")
    assert "1 response was cut off (truncated): raise the token limit" in text.stdout
    whole = evenhand("score", file, "--scorer", "multichoice_regex", "--think-tags", "none")
    assert "cut off" not in whole.stdout
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert scores[1]["scores"]["multichoice_regex"]["value"] == 1.0


def test_a_judge_that_thinks_and_a_judge_that_is_cut_off(tmp_path: Path) -> None:
    verdict = '{"nonce": "{{nonce}}", "reasoning": "ok", "score": %d}'

    def judge(call: MockCall) -> MockAnswer:
        if "cut" in call.prompt:
            return MockAnswer(text="<think>Let me see", finish_reason="length")
        text = f"<think>Perhaps {verdict % 0}? No.</think>\n{verdict % 5}"
        return MockAnswer(text=with_nonce(text, call.prompt))

    file = tmp_path / "answers.jsonl"
    file.write_text(
        '{"response": "<think>Lyon?</think>Paris", "target": "Paris"}\n'
        '{"response": "cut", "target": "Paris"}\n'
    )
    with MockModel(judge) as model:
        done = evenhand(
            *("judge", "score", file, "--judge-url", model.url, "--judge-id", "j", "--no-cache"),
            *("-o", tmp_path / "judged.jsonl"),
        )
        assert "Lyon" not in model.calls[0].prompt + model.calls[1].prompt
    rows = [json.loads(line) for line in (tmp_path / "judged.jsonl").read_text().splitlines()]
    assert rows[0]["reward"] == 1.0
    assert rows[1]["reward"] is None
    assert rows[1]["error"]["kind"] == "judge_truncated"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("sample", "category"),
    [
        (SampleResult(problem_idx=0, status="scored", reward=0.0, truncated=True), "truncated"),
        (
            SampleResult(
                problem_idx=0, status="scored", reward=0.0, truncated=True, model_response="I cannot"
            ),
            "truncated",
        ),
        # A right answer is no failure, and an error of ours is not the model's length.
        (SampleResult(problem_idx=0, status="scored", reward=1.0, truncated=True), None),
        (SampleResult(problem_idx=0, status="scored", reward=0.5, truncated=True), None),
        (
            SampleResult(problem_idx=0, status="failed", error="judge_unavailable", truncated=True),
            "judge_error",
        ),
        (SampleResult(problem_idx=0, status="unscored", error="needs_judge", truncated=True), None),
    ],
)
def test_which_samples_are_truncated(sample: SampleResult, category: str | None) -> None:
    assert ArtifactCollector().add(sample) == category
