"""The pipeline of the scoring contract, end to end: run, flag, judge, update rewards, keep the raw replies."""

import json
from pathlib import Path

from tests.judging.commands import evenhand, mock_model, read_lines, write_lines


def test_a_judged_benchmark_from_the_command_line(tmp_path: Path) -> None:
    answers = write_lines(
        tmp_path / "answers.jsonl",
        [{"contains": "capital", "answer": "Reykjavik"}, {"answer": "I cannot say."}],
    )
    grade = '{"nonce": "{{nonce}}", "reasoning": "compared", "label": "LABEL"}'
    grades = write_lines(
        tmp_path / "grades.jsonl",
        [
            {"contains": "\nReykjavik\n", "answer": grade.replace("LABEL", "A")},
            {"contains": "tungsten", "answer": "I will not grade this."},
            {"contains": "No verdict could be read", "answer": "I said no."},
            {"answer": grade.replace("LABEL", "C")},
        ],
    )
    faults = ["--fault-rate", "0.3", "--fault", "rate_limit", "--fault", "half_json", "--seed", "3"]
    with mock_model("--answers", answers) as model, mock_model("--answers", grades, *faults) as judge:
        done = evenhand(
            *("eval", "run", "--bench", "simpleqa", "--sample", "-o", "out"),
            *("--model-url", model, "--model-id", "m", "--judge-url", judge, "--judge-id", "j"),
            cwd=tmp_path,
        )
    assert done.returncode == 1, done.stdout + done.stderr
    results = read_lines(tmp_path / "out" / "results.jsonl")
    judged = {row["metadata"]["question"]: row for row in results}
    capital = judged["What is the capital of Iceland?"]
    assert (capital["reward"], capital["scoring_details"]["label"]) == (1.0, "CORRECT")
    refused = judged["What is the chemical symbol of tungsten?"]
    assert (refused["status"], refused["reward"]) == ("failed", None)
    assert refused["error"]["kind"] == "grade_parse_failure"
    others = [row for row in results if row not in (capital, refused)]
    assert {(row["reward"], row["scoring_details"]["label"]) for row in others} == {(0.0, "NOT_ATTEMPTED")}
    assert len({row["scoring_details"]["judge_identity"] for row in results}) == 1
    trajectories = read_lines(tmp_path / "out" / "trajectories.jsonl")
    for row in trajectories:
        raw = row["judge"]["raw_reply"]
        assert raw == "I said no." or json.loads(raw)["reasoning"] == "compared"
