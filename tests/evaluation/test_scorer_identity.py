"""What decides whether two runs used one scorer: its code and version, and not the prompt it stands under."""

from pathlib import Path

import pytest

from evenhand.benchmarks.registry import load_file
from evenhand.evaluation.config import RunConfig, Service, benchmark_hashes

SOURCE = '''
from evenhand import scorer
from evenhand.benchmarks import benchmark


@benchmark(name="tone", dataset="rows.jsonl", prompt="""{prompt}""", version="1")
@scorer{version}
{kind} tone(sample):
    return {{"correct": {rule}}}
'''


def scorer_hash(
    folder: Path, *, prompt: str, rule: str = "True", kind: str = "def", version: str = ""
) -> str:
    folder.mkdir()
    path = folder / "bench.py"
    path.write_text(SOURCE.format(prompt=prompt, rule=rule, kind=kind, version=version), encoding="utf-8")
    (made,) = load_file(path)
    hashes = benchmark_hashes(made, RunConfig(model=Service(url="http://127.0.0.1:1", id="m")), "0")
    return hashes["scorer"]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_the_prompt_is_no_part_of_the_scorer(tmp_path: Path, kind: str) -> None:
    plain = scorer_hash(tmp_path / "a", prompt="Answer {question}", kind=kind)
    other = scorer_hash(tmp_path / "b", prompt="Be brief.\n\nAnswer {question}", kind=kind)
    assert plain == other


def test_code_and_version_are_part_of_it(tmp_path: Path) -> None:
    plain = scorer_hash(tmp_path / "a", prompt="{question}")
    code = scorer_hash(tmp_path / "b", prompt="{question}", rule="bool(sample.response)")
    version = scorer_hash(tmp_path / "c", prompt="{question}", version='(version="2")')
    assert len({plain, code, version}) == 3
