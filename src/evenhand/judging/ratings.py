"""Judges' scores and human ones, read from a file of rows."""

from pathlib import Path
from typing import Any

from evenhand.core.errors import InputError
from evenhand.datasets import Row, read_rows
from evenhand.judging.calibration import Rated
from evenhand.judging.identity import one_identity

# Where results, judged samples and records keep the identity of the judge.
IDENTITY_FIELDS = ("scoring_details.judge_identity", "scoring_details.judge.identity", "judge.identity")


def read_rated(path: Path, judge_field: str, human_field: str) -> list[Rated]:
    """The rows as ratings; scores of several judges in one file are refused."""
    rows, identities = _rows(path, judge_field, human_field)
    one_identity(identities)
    return [rated for _, rated in rows]


def read_two_systems(
    base: Path, candidate: Path, *, id_field: str, judge_field: str, human_field: str
) -> tuple[dict[str, list[Rated]], dict[str, list[Rated]]]:
    """The ratings of two systems by item; rows with one value in `id_field` are answers to one item.

    Both must have been scored by one judge.
    """
    sides: list[dict[str, list[Rated]]] = []
    identities: set[str] = set()
    for path in (base, candidate):
        rows, found = _rows(path, judge_field, human_field)
        identities |= found
        items: dict[str, list[Rated]] = {}
        for row, rated in rows:
            items.setdefault(_item(row, path, id_field), []).append(rated)
        sides.append(items)
    one_identity(identities)
    return sides[0], sides[1]


def _item(row: Row, path: Path, id_field: str) -> str:
    found = _field_of(row.values, id_field)
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise InputError("must be a string or an integer", path=path, line=row.line, field=id_field)
    return str(found)


def _rows(path: Path, judge_field: str, human_field: str) -> tuple[list[tuple[Row, Rated]], set[str]]:
    """The rows with their ratings, and the identities of the judges that they name."""
    rated = []
    identities: set[str] = set()
    seen = [False, False]
    for row in read_rows(path):
        judge = _field_of(row.values, judge_field)
        human = _field_of(row.values, human_field)
        seen = [seen[0] or judge is not None, seen[1] or human is not None]
        both = Rated(
            judge=_as_value(judge, path, row.line, judge_field),
            human=_as_value(human, path, row.line, human_field),
        )
        rated.append((row, both))
        named = (_field_of(row.values, name) for name in IDENTITY_FIELDS)
        identities.update(identity for identity in named if isinstance(identity, str))
    for name, found in zip((judge_field, human_field), seen, strict=True):
        if not found:
            raise InputError("no row has a value in this field", path=path, field=name)
    return rated, identities


def _field_of(values: Any, name: str) -> Any:
    """The value of a field; `a.b` reaches into objects, unless a field has that very name."""
    if isinstance(values, dict) and name in values:
        return values[name]
    head, _, rest = name.partition(".")
    inner = values.get(head) if isinstance(values, dict) else None
    return _field_of(inner, rest) if rest and inner is not None else None


def _as_value(value: Any, path: Path, line: int, name: str) -> float | str | None:
    """A score: a number, true or false, a label, or nothing."""
    if value is None or value == "":
        return None
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    raise InputError("a score must be a number, true or false, or a label", path=path, line=line, field=name)
