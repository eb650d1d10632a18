"""The public face: what `evenhand` exports is what docs/reference.md lists, with types that checkers can read."""

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import evenhand
from evenhand import scoring
from evenhand.cli import app
from evenhand.cli import eval as eval_group
from evenhand.core.lazy_names import public_names

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
REFERENCE = ROOT / "docs" / "reference.md"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


LAZY = sorted(
    module_of(path) for path in SOURCE.rglob("*.py") if "= lazy_names(" in path.read_text(encoding="utf-8")
)


def imports_for_checkers(module: ModuleType) -> dict[str, str]:
    """Name to defining module, from the imports under `if TYPE_CHECKING`."""
    assert module.__file__ is not None
    found: dict[str, str] = {}
    for statement in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if not (isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"):
            continue
        for line in statement.body:
            assert isinstance(line, ast.ImportFrom)
            assert line.module is not None
            for alias in line.names:
                if alias.name == "*":
                    names = public_names(importlib.import_module(line.module))
                    found.update(dict.fromkeys(names, line.module))
                else:
                    assert alias.asname in (alias.name, None)
                    found[alias.name] = line.module
    return found


def test_public_names_are_exactly_the_documented_ones() -> None:
    section = (
        REFERENCE.read_text(encoding="utf-8")
        .split("<!-- public names -->")[1]
        .split("<!-- /public names -->")[0]
    )
    documented = set(re.findall(r"^\| `(\w+)`", section, flags=re.MULTILINE))
    assert documented == set(public_names(evenhand))


@pytest.mark.parametrize("name", LAZY)
def test_checkers_read_the_names_that_are_loaded(name: str) -> None:
    """The imports under TYPE_CHECKING and the table that works at run time name the same objects."""
    module = importlib.import_module(name)
    seen = imports_for_checkers(module)
    assert sorted(seen) == [public for public in public_names(module) if public != "__version__"]
    for public, home in seen.items():
        assert getattr(module, public) is getattr(importlib.import_module(home), public)
        assert public in dir(module)


def test_there_are_lazy_modules() -> None:
    assert {"evenhand", "evenhand.metrics", "evenhand.scoring", "evenhand.scoring.built_in"} <= set(LAZY)


@pytest.mark.parametrize("group", [app, eval_group])
def test_the_import_linter_sees_every_command(group: ModuleType) -> None:
    """Commands are loaded by their module's name; imports for the linter name the same modules."""
    modules = {entry.module for entry in group.COMMANDS.values()}
    assert modules == {f"{home}.{name}" for name, home in imports_for_checkers(group).items()}


def test_nothing_else_is_imported_by_a_string() -> None:
    """What `import_module` loads is hidden from type checkers and from the import linter."""
    users = {
        module_of(path)
        for path in SOURCE.rglob("*.py")
        if re.search(r"\b(import_module|__import__)\(", path.read_text(encoding="utf-8"))
    }
    # The two that are compared above, and the sandbox, which looks at what a program may import.
    assert {name for name in users if not name.startswith("evenhand.sandbox.")} == {
        "evenhand.core.lazy_names",
        "evenhand.cli.lazy",
    }


def test_the_scoring_package_offers_the_same_objects() -> None:
    """`json_schema` alone is a scorer in the one and a module in the other."""
    for name in public_names(scoring):
        assert getattr(scoring, name) is getattr(evenhand, name)
    assert isinstance(importlib.import_module("evenhand.scoring.json_schema"), ModuleType)
    assert isinstance(evenhand.json_schema, scoring.Scorer)
