"""Recorded answers through the runner give the recorded results."""

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.evaluation.runs import lines
from tests.real_parts import need

from evenhand.benchmarks import get_benchmark
from evenhand.evaluation.config import RunConfig, Selection, Service
from evenhand.evaluation.runner import Evaluation
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockCall

ACCURACY = {
    "6b_finetuning": 0.2168,
    "6b_verification": 0.3904,
    "175b_finetuning": 0.3472,
    "175b_verification": 0.5625,
}


@pytest.mark.parametrize("model", list(ACCURACY))
async def test_gsm8k_solutions_get_their_recorded_accuracy(
    tmp_path: Path, shared_data: Path, model: str
) -> None:
    """1,319 answers of each of four models, published with the dataset; the accuracies were recorded with them."""
    recorded = lines(shared_data / "gsm8k_model_solutions.jsonl")
    answers = {row["question"].strip(): row["solution"] for row in recorded if row["model"] == model}
    correct = {row["problem_idx"]: row["is_correct"] for row in recorded if row["model"] == model}
    rows = {row["problem_idx"]: {"question": row["question"], "target": row["target"]} for row in recorded}
    dataset = tmp_path / "gsm8k.jsonl"
    dataset.write_text("".join(json.dumps(rows[index]) + "\n" for index in sorted(rows)))

    def answer(call: MockCall) -> str:
        return str(answers[call.prompt.partition("\n\n")[2].strip()])

    async with MockModel(answer, keep_calls=False) as server:
        config = RunConfig(model=Service(url=server.url, id=model), dataset=str(dataset), concurrency=32)
        written = await Evaluation(get_benchmark("gsm8k"), config, tmp_path / "run").run()
    assert written.bundle.benchmark.samples == 1319
    value = written.bundle.benchmark.scores["pass@1"].value
    assert value is not None
    assert round(value, 4) == ACCURACY[model]
    results = lines(tmp_path / "run" / "results.jsonl")
    assert {row["problem_idx"]: row["reward"] == 1.0 for row in results} == correct


async def humaneval(tmp_path: Path, shared_data: Path, problems: int | None) -> None:
    need(shutil.which("bwrap") is not None, "bubblewrap")
    dataset = tmp_path / "humaneval.jsonl"
    dataset.write_bytes(gzip.decompress((shared_data / "HumanEval.jsonl.gz").read_bytes()))
    solutions = {row["prompt"]: row["prompt"] + row["canonical_solution"] for row in lines(dataset)}

    def answer(call: MockCall) -> str:
        prompt = call.prompt.partition("```python\n")[2].removesuffix("```")
        return f"Here it is:\n```python\n{solutions[prompt]}```\n"

    async with MockModel(answer) as server:
        config = RunConfig(
            model=Service(url=server.url, id="canonical"),
            dataset=str(dataset),
            selection=Selection(max_problems=problems),
        )
        written = await Evaluation(get_benchmark("humaneval"), config, tmp_path / "run").run()
    summary = written.bundle.benchmark
    assert summary.samples == (problems or 164)
    assert summary.scores["pass@1"].value == 1.0
    assert summary.tally is not None
    assert summary.tally.scored == summary.samples, "every one was executed"
    statuses = Counter(row["status"] for row in lines(tmp_path / "run" / "results.jsonl"))
    assert statuses == {"scored": summary.samples}


async def test_humaneval_canonical_solutions_pass(tmp_path: Path, shared_data: Path) -> None:
    await humaneval(tmp_path, shared_data, None)
