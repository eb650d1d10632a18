"""The configuration files that the documentation shows are read by the code that would read them."""

import tomllib
from pathlib import Path

import pytest
import yaml
from tests.docs.test_examples import DOCS, blocks

from evenhand.compare.policy import limits_of, parse_policy
from evenhand.evaluation.suites.file import read_variant_suite
from evenhand.judging.rubric_files import read_rubric
from evenhand.models.providers import find_model, read_providers
from evenhand.testing.script import MockCall, read_script


def shown(page: str, language: str) -> list[str]:
    return [block.text for block in blocks(DOCS / page) if block.language == language]


def test_the_parts_of_a_suite_make_one_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's parts (prompts, rows, models, matrix) put together: 4 prompts × 5 models − 1 excluded + 1 included."""
    _, *parts = shown("suites.md", "yaml")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    suite = {key: value for part in parts for key, value in yaml.safe_load(part).items()}
    for row in suite["data"]:
        row["picture"] = "https://example.org/a.png"
    suite |= {"scorers": ["exact_match"], "judge": {"url": "http://127.0.0.1:9/v1", "id": "j"}}
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "long.txt").write_text("At length: {question}")
    (tmp_path / "evenhand.yaml").write_text(yaml.safe_dump(suite))
    found = read_variant_suite(tmp_path / "evenhand.yaml")
    assert len(found.variants) == 4 * 5 - 1 + 1


def test_the_policy_sets_its_limits() -> None:
    (text,) = shown("compare.md", "yaml")
    policy = parse_policy(text)
    assert [limit.max_drop for limit in limits_of(policy, "gpqa")] == [0.01]
    assert len(limits_of(policy, "chat")) == 2


def test_the_rubric_is_read(tmp_path: Path) -> None:
    (text,) = shown("judge.md", "yaml")
    (tmp_path / "tone.yaml").write_text(text)
    rubric = read_rubric(str(tmp_path / "tone.yaml"))
    assert [choice.label for choice in rubric.choices or ()] == ["polite", "rude"]


def test_the_providers_are_found(tmp_path: Path) -> None:
    (text,) = shown("models.md", "toml")
    (tmp_path / "providers.toml").write_text(text)
    providers = read_providers(tmp_path / "providers.toml")
    assert find_model("work/m", providers).provider.key_variable == "WORK_KEY"
    assert find_model("ollama/m", providers).provider.url == "http://gpu-box:11434/v1"


@pytest.mark.parametrize(
    ("page", "group"), [("quickstart.md", "evenhand.scorers"), ("benchmarks.md", "evenhand.benchmarks")]
)
def test_the_entry_points_are_of_a_group_that_is_read(page: str, group: str) -> None:
    (text,) = shown(page, "toml")
    assert list(tomllib.loads(text)["project"]["entry-points"]) == [group]


def test_the_script_of_the_mock_model_is_read(tmp_path: Path) -> None:
    (text,) = shown("testing.md", "json")
    (tmp_path / "script.jsonl").write_text(text)
    script = read_script(tmp_path / "script.jsonl")
    said = script(
        MockCall(
            path="/v1/chat/completions", body={}, headers={}, prompt="2+2?", system="", model="m", seen=1
        )
    )
    assert "4" in str(said)  # the second of two answers that take turns
