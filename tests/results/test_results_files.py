"""Reading and writing run artifacts."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import InputError
from evenhand.results import (
    BenchmarkSummary,
    Bundle,
    JsonlFile,
    MetricValue,
    SampleResult,
    read_run,
    read_samples,
    run_folders,
    write_json,
    write_text,
)
from evenhand.results.reading import read_bundle

# By hand, from the documented layout: no status, no schema version, categories as a mapping.
NEMO_ROWS: list[dict[str, Any]] = [
    {"problem_idx": 0, "reward": 1.0, "repeat": 0, "expected_answer": "42", "model_response": "It is 42.",
     "metadata": {"category": "arithmetic"}},
    {"problem_idx": 0, "reward": 0.0, "repeat": 1, "scoring_details": {"category": "arithmetic", "method": "x"}},
    {"problem_idx": 1, "reward": None, "error": "timeout after 60 s"},
    {"problem_idx": 2, "reward": None},
]  # fmt: skip
NEMO_BUNDLE = {
    "run_id": "r-1",
    "config": {"model": "m"},
    "benchmark": {
        "name": "gsm8k",
        "samples": 4,
        "scores": {"pass@1": {"value": 0.5, "ci_lower": 0.1, "ci_upper": 0.9}},
        "categories": {"arithmetic": {"mean_reward": 0.5}},
    },
}


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def nemo(tmp_path: Path) -> Path:
    folder = tmp_path / "nemo"
    folder.mkdir()
    (folder / "results.jsonl").write_text(lines(NEMO_ROWS))
    (folder / "eval-20260225T143012Z-gsm8k.json").write_text(json.dumps(NEMO_BUNDLE))
    return folder


def test_a_nemo_folder_loads_with_every_sample_given_a_status(nemo: Path) -> None:
    run = read_run(nemo)
    assert run.name == "gsm8k"
    assert [sample.status for sample in run.samples] == ["scored", "scored", "failed", "unscored"]
    assert [sample.reward for sample in run.samples] == [1.0, 0.0, None, None]
    assert run.samples[1].category == "arithmetic"
    assert run.bundle is not None
    assert run.bundle.benchmark.scores["pass@1"] == MetricValue(value=0.5, ci_lower=0.1, ci_upper=0.9)


def test_bundle_results_file_and_folder_give_the_same_samples(nemo: Path) -> None:
    by_folder = read_run(nemo).samples
    assert read_run(nemo / "results.jsonl").samples == by_folder
    assert read_run(nemo / "eval-20260225T143012Z-gsm8k.json").samples == by_folder
    packed = nemo / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress((nemo / "results.jsonl").read_bytes()))
    assert list(read_samples(packed)) == by_folder


def test_folders_of_runs_are_found_by_benchmark(tmp_path: Path) -> None:
    for name in ("mmlu", "gsm8k"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.jsonl").write_text(lines(NEMO_ROWS))
    assert run_folders(tmp_path) == {"gsm8k": tmp_path / "gsm8k", "mmlu": tmp_path / "mmlu"}
    assert run_folders(tmp_path / "mmlu") == {"mmlu": tmp_path / "mmlu"}
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="no run here"):
        run_folders(empty)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"problem_idx": 0, "reward": NaN}', r"results.jsonl:2: invalid JSON"),
        ('{"reward": 1.0}', r"results.jsonl:2: .*problem_idx"),
        ('{"problem_idx": "a", "reward": 1.0}', r"results.jsonl:2: .*problem_idx"),
        ('{"problem_idx": 7, "reward": 1.0}', r"results.jsonl:2: duplicate entry: problem 7, repeat 0"),
        (
            '{"problem_idx": 1, "reward": 0.0, "status": "failed"}',
            r"'reward': status is 'failed' but there is a number",
        ),
        ('{"problem_idx": 1, "status": "scored"}', r"'reward': status is 'scored' but there is no number"),
        (
            '{"problem_idx": 1, "reward": 0.0, "reward": 1.0}',
            r"results.jsonl:2: duplicate key 'reward'",
        ),
        (
            '{"problem_idx": 1, "reward": 1.0, "metadata": {"category": "a", "category": "b"}}',
            r"results.jsonl:2: duplicate key 'category'",
        ),
        (
            '{"problem_idx": 1, "reward": 1.0, "own": [{"a": "\\ud83d", "b": 1, "b": 2}]}',
            r"results.jsonl:2: duplicate key 'b'",
        ),
        ('{"problem_idx": 1, "reward": 1.0', r"results.jsonl:2: "),
        ('{"problem_idx": 1, "metadata": {"a": ' + "[" * 100_000, r"results.jsonl:2: .*nested too deeply"),
    ],
)
def test_a_bad_line_is_named_with_its_reason(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"problem_idx": 7, "reward": 1.0}\n' + line + "\n")
    with pytest.raises(InputError, match=reason):
        list(read_samples(path))


def test_a_line_as_it_is_written_is_refused_too_when_a_key_is_added_to_it(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with JsonlFile(path) as file:
        for number in range(2):
            file.write(SampleResult(problem_idx=number, reward=1.0, metadata={"a:": "b:"}, status="scored"))
    assert len(list(read_samples(path))) == 2
    path.write_text(path.read_text().replace('"problem_idx":1,', '"problem_idx":1,"reward":0.0,'))
    with pytest.raises(InputError, match=r"results.jsonl:2: duplicate key 'reward'"):
        list(read_samples(path))


def test_missing_and_foreign_files_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_run(tmp_path / "nothing")
    with pytest.raises(InputError, match="no run here"):
        read_run(tmp_path)
    (tmp_path / "eval-1.json").write_text('{"hello": 1}')
    with pytest.raises(InputError, match="not a run bundle"):
        read_run(tmp_path)
    (tmp_path / "eval-1.json").write_text(json.dumps(NEMO_BUNDLE)[:-1] + ', "benchmark": {"name": "b"}}')
    with pytest.raises(InputError, match="not a run bundle: duplicate key 'benchmark'"):
        read_run(tmp_path)
    (tmp_path / "eval-1.json").write_text(json.dumps(NEMO_BUNDLE))
    with pytest.raises(InputError, match=r"results.jsonl with its samples is not"):
        read_run(tmp_path)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    sample = SampleResult(problem_idx=3, reward=0.25, status="scored", metadata={"category": "ä"})
    with JsonlFile(tmp_path / "results.jsonl") as file:
        file.write(sample)
    bundle = Bundle(benchmark=BenchmarkSummary(name="b", samples=1), schema_version=1)
    write_json(tmp_path / "eval-1.json", bundle)
    run = read_run(tmp_path)
    assert run.samples == [sample]
    assert run.bundle == bundle


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write_text(path, "old\n")
    with pytest.raises(ValueError, match="NaN"), JsonlFile(path) as file:
        file.write({"a": float("nan")})
    assert path.read_text() == "old\n"
    assert [found.name for found in tmp_path.iterdir()] == ["results.jsonl"]


def test_a_byte_order_mark_and_an_emoji_that_was_cut_do_not_stop_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    row = {"problem_idx": 1, "reward": 1.0, "model_response": "a\ud83d \U0001f600 \\ud83d"}
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row).encode() + b"\n")
    [sample] = read_run(path).samples
    assert sample.model_response == "a\ufffd \U0001f600 \\ud83d"


def test_a_folder_of_nemo_evaluator_is_read_as_it_is(shared_data: Path) -> None:
    """Its `scores` hold tables (summary, breakdowns, runtime) beside the metrics; pass@1 is what it printed."""
    [bundle] = (shared_data / "peers" / "nemo" / "out" / "mini").glob("eval-*.json")
    found = read_bundle(bundle)
    assert found.benchmark.name == "mini"
    assert set(found.benchmark.scores) == {"pass@1", "pass@2"}
    assert found.benchmark.scores["pass@1"].value == 0.6
