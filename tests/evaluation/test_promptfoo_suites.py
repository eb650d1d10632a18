"""`promptfooconfig.yaml` gives the pass or fail that promptfoo gives; what is not supported is named."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.evaluation.runs import evenhand, lines

from evenhand.core.errors import EvenhandError
from evenhand.evaluation.suites.promptfoo_assertions import js_text, python_pattern, split_commas
from evenhand.evaluation.suites.promptfoo_file import read_promptfoo
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockCall, with_nonce

CASES = Path(__file__).parent / "promptfoo_cases"
"""A file with every assertion that needs no JavaScript, and what promptfoo says of each test; made by `make test-peers`."""


def our_verdicts(folder: Path, *, status: int = 1) -> list[list[list[Any]]]:
    """By prompt and test: passed, score, output."""
    done = evenhand("eval", "run", "promptfooconfig.yaml", "-o", "ours", "--format", "json", cwd=folder)
    assert done.returncode == status, done.stderr
    found = []
    for line in json.loads(done.stdout)["lines"]:
        rows = lines(folder / "ours" / line["folder"] / "results.jsonl")
        found.append(
            [
                [row["reward"] == 1, round(row["scoring_details"]["score"], 6), row["model_response"]]
                for row in rows
            ]
        )
    return found


def test_every_test_passes_or_fails_as_with_promptfoo(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    shutil.copytree(CASES, folder)
    theirs = json.loads((CASES / "verdicts.json").read_text(encoding="utf-8"))["verdicts"]
    ours = our_verdicts(folder)
    assert sum(map(len, theirs)) == 284
    assert {passed for prompt in theirs for passed, *_ in prompt} == {True, False}
    for mine, real in zip(ours, theirs, strict=True):
        assert mine == real


def write(folder: Path, **config: Any) -> Path:
    path = folder / "promptfooconfig.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def answer(call: MockCall) -> str:
    if call.model == "grader":
        score = "1" if "bonjour" in call.prompt else "0"
        return with_nonce('{"nonce": "{{nonce}}", "reasoning": "-", "score": ' + score + "}", call.prompt)
    return "bonjour" if "French" in call.prompt else "hello"


def test_providers_are_asked_over_http_and_the_judge_reads_the_rubric(tmp_path: Path) -> None:
    with MockModel(answer) as model:
        config = {"apiBaseUrl": model.url}
        write(
            tmp_path,
            prompts=["Greet in {{language}}."],
            providers=[{"id": "openai:chat:writer", "label": "mine", "config": {**config, "top_p": 0.5}}],
            defaultTest={"options": {"provider": {"id": "openai:grader", "config": config}}},
            tests=[
                {"vars": {"language": ["French", "English"]}, "assert": [{"type": "llm-rubric", "value": "is {{language}}"}]},
                {"vars": {"language": "English"}, "assert": [{"type": "not-llm-rubric", "value": "is French"}]},
            ],
        )  # fmt: skip
        assert [row[:2] for row in our_verdicts(tmp_path)[0]] == [[True, 1.0], [False, 0.0], [True, 1.0]]
        asked = [call for call in model.calls if call.model == "writer"]
        judged = [call.prompt for call in model.calls if call.model == "grader"]
    assert sorted(call.prompt for call in asked) == ["Greet in English."] * 2 + ["Greet in French."]
    assert asked[0].body["temperature"] == 0
    assert asked[0].body["max_tokens"] == 1024
    assert asked[0].body["top_p"] == 0.5
    assert len([text for text in judged if "is French" in text]) == 2


def test_the_status_says_whether_all_tests_passed(tmp_path: Path) -> None:
    write(tmp_path, prompts=["{{x}}"], providers=["echo"], tests=[{"vars": {"x": "a"}, "assert": [{"type": "equals", "value": "a"}]}])  # fmt: skip
    done = evenhand("eval", "run", "promptfooconfig.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "GO 1 passed, 0 failed, 0 errors." in done.stdout


MINIMAL: dict[str, Any] = {"prompts": ["{{x}}"], "providers": ["echo"], "tests": [{"vars": {"x": "a"}}]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scenarios": []}, "scenarios"),
        ({"extensions": ["file://x.js:f"]}, "extensions"),
        ({"env": {"A": "b"}}, "env"),
        ({"providers": ["file://provider.py"]}, "provider.py"),
        ({"providers": ["exec:rm -rf"]}, "exec"),
        ({"providers": [{"id": "openai:m", "config": {"apiKey": "sk-1"}}]}, "holds no keys"),
        ({"providers": [{"id": "openai:m", "config": {"tools": []}}]}, "tools"),
        ({"prompts": ["file://../outside.txt"]}, "outside the folder"),
        ({"prompts": ["file://prompt.js"]}, "prompt.js"),
        ({"prompts": ["{% if x %}y{% endif %}"]}, "not supported here"),
        ({"prompts": ["{{ x | upper }}"]}, "not supported here"),
        ({"prompts": ["{{ env.HOME }}"]}, "not supported here"),
        ({"tests": "file://tests.py"}, "tests.py"),
        ({"tests": [{"vars": {"x": "file:///etc/passwd"}}]}, "outside the folder"),
        ({"tests": [{"assert": [{"type": "javascript", "value": "1"}]}]}, "'javascript' is not supported"),
        ({"tests": [{"assert": [{"type": "similar", "value": "1"}]}]}, "'similar' is not supported"),
        ({"tests": [{"assert": [{"type": "equals", "value": "1", "transform": "x"}]}]}, "transform"),
        ({"tests": [{"assert": [{"type": "equals"}]}]}, "needs a value"),
        ({"tests": [{"assert": [{"type": "latency"}]}]}, "needs a threshold"),
        ({"tests": [{"assert": [{"type": "llm-rubric", "value": "x"}]}]}, "needs a judge"),
        ({"tests": [{"assertScoringFunction": "x"}]}, "assertScoringFunction"),
        ({"tests": [{"options": {"transform": "x"}}]}, "transform"),
        ({"defaultTest": {"asert": []}}, "did you mean 'assert'"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(EvenhandError) as caught:
        read_promptfoo(write(tmp_path, **{**MINIMAL, **change}))
    assert words in str(caught.value)


def test_many_braces_end_in_an_error_and_not_in_hours(tmp_path: Path) -> None:
    tests = [{"vars": {"x": "{ " * 5000}, "assert": [{"type": "contains-json"}]}]
    write(tmp_path, **{**MINIMAL, "tests": tests})
    done = evenhand("eval", "run", "promptfooconfig.yaml", "-o", "ours", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    (row,) = lines(next((tmp_path / "ours").glob("*/results.jsonl")))
    assert (row["status"], row["reward"]) == ("failed", None)


def test_texts_are_those_of_javascript() -> None:
    assert [js_text(one) for one in (3.0, 1.5, True, None, {"a": [1]})] == [
        "3",
        "1.5",
        "true",
        "",
        '{"a":[1]}',
    ]
    assert split_commas('a, "b, c" ,"d ""e""",, f') == ["a", "b, c", 'd "e"', "f"]
    assert python_pattern(r"^\d+\/[\w.]$") == r"^[0-9]+/[A-Za-z0-9_.]\Z"
    assert python_pattern(r"(?<a>x)\k<a>(?<!y)[^]") == r"(?P<a>x)(?P=a)(?<!y)[\s\S]"
