"""promptfoo itself, installed by npm, on the files of our own tests: the same pass, score and output for every test."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from evenhand.testing.mock_model import MockModel
from tests.evaluation.test_promptfoo_suites import CASES, our_verdicts

pytestmark = [pytest.mark.peers, pytest.mark.timeout(1800)]
VERSION = json.loads((CASES / "verdicts.json").read_text(encoding="utf-8"))["promptfoo"]


def installed_by_npm(package: str, folder: Path) -> Path:
    """The folder with the commands of a package."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    command = [npm, "install", package, "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        pytest.skip(f"npm cannot install {package}: {done.stderr[-300:]}")
    return folder / "node_modules" / ".bin"


@pytest.fixture(scope="module")
def promptfoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed_by_npm(f"promptfoo@{VERSION}", tmp_path_factory.mktemp("promptfoo")) / "promptfoo"


def their_verdicts(program: Path, folder: Path) -> list[list[list[Any]]]:
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "OPENAI_API_KEY": "none"}
    # It may end with an error of its own after the results are written: the file is what counts.
    subprocess.run(
        [program, "eval", "-c", "promptfooconfig.yaml", "--no-cache", "--no-progress-bar", "--no-table", "--no-write", "-o", "theirs.json"],
        cwd=folder, capture_output=True, timeout=300, env={**os.environ, **quiet, "PROMPTFOO_CONFIG_DIR": str(folder / "home")},
    )  # fmt: skip
    found: dict[int, list[list[Any]]] = {}
    results = json.loads((folder / "theirs.json").read_text(encoding="utf-8"))["results"]["results"]
    for one in sorted(results, key=lambda one: (one["promptIdx"], one["testIdx"])):
        verdict = [one["success"], round(one["score"], 6), one["response"]["output"]]
        found.setdefault(one["promptIdx"], []).append(verdict)
    return [found[place] for place in sorted(found)]


def test_every_assertion_says_what_promptfoo_says(promptfoo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    shutil.copytree(CASES, folder)
    theirs = their_verdicts(promptfoo, folder)
    assert theirs == our_verdicts(folder)
    assert theirs == json.loads((CASES / "verdicts.json").read_text(encoding="utf-8"))["verdicts"]


def test_a_model_over_http_is_asked_the_same(promptfoo: Path, tmp_path: Path) -> None:
    with MockModel({"French": "bonjour", "German": "guten Tag"}) as model:
        config = {
            "prompts": ["Greet in {{language}}.", "In {{language}}: hello"],
            "providers": [{"id": "openai:chat:writer", "config": {"apiBaseUrl": model.url}}],
            "tests": [
                {
                    "vars": {"language": ["French", "German", "Danish"]},
                    "assert": [{"type": "icontains-any", "value": ["BONJOUR", "guten"]}],
                }
            ],
        }
        (tmp_path / "promptfooconfig.yaml").write_text(yaml.safe_dump(config))
        theirs = their_verdicts(promptfoo, tmp_path)
        asked = [
            {key: call.body.get(key) for key in ("messages", "temperature", "max_tokens")}
            for call in model.calls
        ]
        model.calls.clear()
        assert theirs == our_verdicts(tmp_path)
        ours = [
            {key: call.body.get(key) for key in ("messages", "temperature", "max_tokens")}
            for call in model.calls
        ]
    assert {passed for prompt in theirs for passed, *_ in prompt} == {True, False}
    assert len(asked) == 6
    assert sorted(ours, key=_question) == sorted(asked, key=_question)


def _question(body: dict[str, Any]) -> str:
    return str(body["messages"])
