"""The pages keep their word: every Python example runs, and every `# ->` is what comes out."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenhand.scoring.registry import BUILT_IN, get_scorer

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["docs/quickstart.md", "docs/scorers.md", "docs/evaluate.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROMISE = re.compile(r"  # -> (.*)$")


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_example_gives_what_it_promises(page: str) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    promises = 0
    for block in blocks(page):
        lines = block.splitlines()
        for statement in ast.parse(block).body:
            promise = PROMISE.search(lines[(statement.end_lineno or 0) - 1])
            if isinstance(statement, ast.Expr) and promise:
                promises += 1
                value = eval(compile(ast.Expression(statement.value), page, "eval"), names)
                assert value == eval(promise[1], names), ast.unparse(statement)
            else:
                exec(compile(ast.Module([statement], type_ignores=[]), page, "exec"), names)
    assert promises > 2


def test_ten_lines_lead_from_data_to_a_verdict() -> None:
    assert "Ten lines from data to a verdict." in (ROOT / "docs" / "evaluate.md").read_text(encoding="utf-8")
    first = blocks("docs/evaluate.md")[0]
    assert len(first.strip().splitlines()) <= 10
    assert ".verdict  # -> " in first


def test_the_readmes_example_prints_what_it_says() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = blocks("README.md")
    assert len(program.strip().splitlines()) <= 10
    printed = re.search(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert printed is not None
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env={}
    )
    assert done.stdout == printed[1], done.stderr


def test_the_quickstarts_table_is_what_the_command_prints(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    printed = re.search(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert printed is not None
    command = ["score", "examples/capitals.jsonl", "--scorer", "exact_match", "--scorer", "fuzzy_match", "-o"]
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", *command, str(tmp_path)],
        capture_output=True, text=True, timeout=300, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout.startswith(printed[1]), done.stdout


def test_links_between_pages_lead_somewhere() -> None:
    for page in (ROOT / name for name in ("README.md", "docs/glossary.md", *PAGES)):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_list_of_scorers_is_the_registrys() -> None:
    text = (ROOT / "docs" / "scorers.md").read_text(encoding="utf-8")
    listed = text.split("<!-- scorers -->")[1].split("<!-- /scorers -->")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*)\|$", listed, flags=re.MULTILINE))
    assert set(rows) == set(BUILT_IN)
    for name, options in rows.items():
        if "see its page" not in options:
            assert set(re.findall(r"`(\w+)`", options)) == set(get_scorer(name).options), name


def test_every_module_that_the_architecture_names_is_there() -> None:
    """The page follows a score, a sample, a span and a record through the modules: none of them may have moved."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)", text))
    assert len(named) > 40
    assert sorted(name for name in named if not (ROOT / "src" / "evenhand" / name).exists()) == [
        "tests/pages/every_page.py",
        "tests/server/test_audience.py",
    ]
    assert all((ROOT / name).exists() for name in named if name.startswith("tests/"))
