"""A user's type checker sees the real types: right use passes, a misspelt name or a wrong argument does not."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
RIGHT = """
from typing import Any

import evenhand
from evenhand import (
    Scorer, ScorerInput, benchmark, exact_match, multichoice_regex, regex_match, register_scorer, score_sample, scorer
)
from evenhand.metrics import bootstrap_ci, pass_at_k
from evenhand.scoring import validate_json_schema

@scorer
def short(sample: ScorerInput, limit: int = 5) -> dict[str, Any]:
    return {"correct": len(sample.response) <= limit}

@scorer(name="slow", version="2")
async def slow(sample: ScorerInput) -> dict[str, Any]:
    return {"correct": True}

@benchmark(name="b", dataset="x.jsonl", prompt="{q}", target_field="a")
@scorer
def mine(sample: ScorerInput) -> dict[str, Any]:
    return exact_match(sample)

def takes_any(given: Scorer) -> None: ...

takes_any(exact_match)
takes_any(regex_match)
takes_any(regex_match.configure(pattern="x"))
sample = ScorerInput(response="a", target="b")
reveal_type(exact_match)
reveal_type(evenhand.token_f1(sample))
reveal_type(short(sample, limit=3))
reveal_type(slow)
reveal_type(multichoice_regex(sample, pattern="x"))
reveal_type(regex_match.configure(pattern="x")(sample))
reveal_type(register_scorer(short))
reveal_type(score_sample(short, sample))
reveal_type(mine)
reveal_type(bootstrap_ci([1.0, 0.0]).ci_lower)
reveal_type(pass_at_k(10, 3, 1))
reveal_type(validate_json_schema("{}", schema={}))
reveal_type(evenhand.evaluate([{"input": "a"}], str.upper, ["exact_match", short]))
reveal_type(evenhand.Result.load("x").mean("exact_match"))
reveal_type(evenhand.Result.load("x").interval().ci_lower)
"""
REVEALED = [
    "evenhand.scoring.definition.Scorer[[strict: bool =], dict[str, Any]]",
    "dict[str, Any]",
    "dict[str, Any]",
    "evenhand.scoring.definition.Scorer[[], typing.Coroutine[Any, Any, dict[str, Any]]]",
    "dict[str, Any]",
    "dict[str, Any]",
    "evenhand.scoring.definition.Scorer[[limit: int =], dict[str, Any]]",
    "evenhand.core.outcome.Scored | evenhand.core.outcome.Unscored | evenhand.core.outcome.Failed",
    "evenhand.benchmarks.definition.Benchmark",
    "float",
    "float",
    "dict[str, Any]",
    "evenhand.evaluation.result.Result",
    "float",
    "float | None",
]
PREAMBLE = """
import evenhand
import evenhand.scoring
from evenhand import ScorerInput, benchmark, exact_match, multichoice_regex, regex_match
sample = ScorerInput(response="a", target="b")
"""
WRONG = {
    "from evenhand import exact_mach": 'has no attribute "exact_mach"',
    "from evenhand.metrics import bootstrap_cl": 'has no attribute "bootstrap_cl"',
    "from evenhand.ab import analyse": 'has no attribute "analyse"',
    "evenhand.fuzzy_mtach": 'has no attribute "fuzzy_mtach"',
    "evenhand.scoring.exact_macth": 'has no attribute "exact_macth"',
    "exact_match('text')": 'expected "ScorerInput"',
    "exact_match(sample, stricct=True)": 'Unexpected keyword argument "stricct"',
    "multichoice_regex(sample, pattern=3)": 'expected "str"',
    "regex_match(sample)": 'Missing positional argument "pattern"',
    "regex_match.configure(patern='x')": 'Unexpected keyword argument "patern"',
    "ScorerInput(respons='a')": 'Unexpected keyword argument "respons"',
    "benchmark('b', 'x.jsonl', '{q}', promt='x')": 'Unexpected keyword argument "promt"',
    "evenhand.score_sample(exact_match, 'text')": 'expected "ScorerInput"',
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], list[str]]:
    """What `mypy --strict` says about both programs, by file and line."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "right.py").write_text(RIGHT, encoding="utf-8")
    (folder / "wrong.py").write_text(PREAMBLE + "\n".join(WRONG) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache"]
    found = subprocess.run(
        [*command, "right.py", "wrong.py"],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 1, found.stdout + found.stderr
    lines: dict[tuple[str, int], list[str]] = {}
    for file, line, message in re.findall(r"^(\w+\.py):(\d+): (.*)$", found.stdout, flags=re.MULTILINE):
        lines.setdefault((file, int(line)), []).append(message)
    return lines


def test_right_use_passes_and_its_types_are_the_real_ones(said: dict[tuple[str, int], list[str]]) -> None:
    messages = [
        message for (file, _), found in sorted(said.items()) if file == "right.py" for message in found
    ]
    assert messages == [f'note: Revealed type is "{shown}"' for shown in REVEALED]


@pytest.mark.parametrize(("number", "line"), list(enumerate(WRONG, start=PREAMBLE.count("\n") + 1)))
def test_wrong_use_is_an_error(said: dict[tuple[str, int], list[str]], number: int, line: str) -> None:
    errors = [message for message in said.get(("wrong.py", number), []) if message.startswith("error:")]
    assert len(errors) == 1
    assert WRONG[line] in errors[0]
