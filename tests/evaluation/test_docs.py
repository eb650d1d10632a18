"""The documentation is run: its benchmark, its suite file, its Python, its schemas."""

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from tests.evaluation.runs import evenhand, lines

from evenhand.evaluation.schemas import artifact_schemas
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockCall, with_nonce

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def paris(call: MockCall) -> str:
    if call.model == "my-judge":
        return with_nonce('{"nonce": "{{nonce}}", "reasoning": "no", "label": "B"}', call.prompt)
    return "Paris"


@pytest.fixture
def url() -> Iterator[str]:
    with MockModel(paris) as model:
        yield model.url


def test_the_first_run_prints_what_the_page_says(tmp_path: Path, url: str) -> None:
    bench = blocks("evaluation.md", "python")[0]
    assert len(bench.strip().splitlines()) <= 12
    (tmp_path / "my_bench.py").write_text(bench)
    command = blocks("evaluation.md", "console")[0].splitlines()[1].removeprefix("$ evenhand ")
    done = evenhand(*command.replace("http://127.0.0.1:8000/v1", url).split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line in blocks("evaluation.md", "text")[0].strip().splitlines():
        assert line in done.stdout


def test_the_suite_file_runs(tmp_path: Path, url: str) -> None:
    (tmp_path / "my_bench.py").write_text(blocks("evaluation.md", "python")[0])
    suite = blocks("evaluation.md", "yaml")[0].replace("http://127.0.0.1:8000/v1", url)
    (tmp_path / "nightly.yaml").write_text(suite)
    done = evenhand("eval", "run", "nightly.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "nightly").iterdir()} == {"gsm8k", "simpleqa", "capitals"}


def test_the_python_runs(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for program in (blocks("evaluation.md", "python")[1], blocks("artifacts.md", "python")[0]):
        exec(compile(textwrap.dedent(program).replace("http://127.0.0.1:8000/v1", url), "docs", "exec"), {})
    printed = capsys.readouterr().out
    assert "MetricValue(value=0.0" in printed
    assert "'refusal': Category(count=1, rate=1.0)" in printed


def test_every_option_and_category_is_described() -> None:
    from evenhand.benchmarks.definition import Benchmark
    from evenhand.reports.run import EXPLAINED

    page = (DOCS / "benchmarks.md").read_text()
    undocumented = {"scorer", "sample", "home", "description"}
    assert not [
        name for name in Benchmark.__struct_fields__ if f"`{name}`" not in page and name not in undocumented
    ]
    categories = (DOCS / "artifacts.md").read_text()
    assert not [name for name in EXPLAINED if f"| `{name}` |" not in categories]


def test_the_schemas_are_those_of_the_types() -> None:
    for name, schema in artifact_schemas().items():
        kept = json.loads((DOCS / "schemas" / f"{name}.schema.json").read_text())
        assert kept == json.loads(json.dumps(schema)), "run scripts/write-schemas"


def test_artifacts_satisfy_their_schemas(tmp_path: Path, url: str) -> None:
    done = evenhand(
        *("eval", "run", "-b", "simpleqa", "--sample", "--model-url", url, "--model-id", "m", "-n", "2"),
        *("--judge-url", url, "--judge-id", "my-judge", "-o", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "out"
    documents = {
        "bundle": [json.loads(next(folder.glob("eval-*.json")).read_text())],
        "results": lines(folder / "results.jsonl"),
        "trajectories": lines(folder / "trajectories.jsonl"),
        "runtime_stats": [json.loads((folder / "runtime_stats.json").read_text())],
        "failure_analysis": [json.loads((folder / "failure_analysis.json").read_text())],
    }
    assert len(documents["results"]) == 12
    assert documents["trajectories"][0]["judge"]["model"] == "my-judge"
    for name, found in documents.items():
        validator = jsonschema.Draft202012Validator(artifact_schemas()[name])
        for document in found:
            validator.validate(document)
