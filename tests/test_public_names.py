"""The public face: what `evenhand` exports is exactly what docs/reference.md lists."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import evenhand
from evenhand import scoring

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference.md"


def test_public_names_are_exactly_the_documented_ones() -> None:
    section = (
        REFERENCE.read_text(encoding="utf-8")
        .split("<!-- public names -->")[1]
        .split("<!-- /public names -->")[0]
    )
    documented = set(re.findall(r"^\| `(\w+)`", section, flags=re.MULTILINE))
    assert documented == set(evenhand.__all__)


def test_every_public_name_loads() -> None:
    for name in evenhand.__all__:
        assert getattr(evenhand, name) is not None


def test_the_scoring_package_offers_the_same_objects() -> None:
    """`json_schema` alone is a scorer in the one and a module in the other."""
    for name in scoring.PUBLIC:
        assert getattr(scoring, name) is getattr(evenhand, name)
    assert isinstance(importlib.import_module("evenhand.scoring.json_schema"), ModuleType)
    assert isinstance(evenhand.json_schema, scoring.Scorer)
