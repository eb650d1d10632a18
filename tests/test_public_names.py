"""The public face: what `evenhand` exports is exactly what docs/reference.md lists."""

import re
from pathlib import Path

import evenhand

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


def test_the_list_is_sorted_and_agrees_with_the_loader() -> None:
    assert evenhand.__all__ == sorted(evenhand.__all__)
    assert set(evenhand.__all__) == {"__version__", *evenhand._PUBLIC}
