"""Prompt templates: `{column}` and nothing more.

Templates and rows come from users and datasets, so Python's own formatting is not used: it reaches attributes
and items of whatever it is given. Here a brace holds a column's name, `{{` and `}}` stand for braces, and a
brace that is neither is an error found before the first call.
"""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evenhand.core import jsontext
from evenhand.core.errors import InputError, OptionError

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}\n]*)\}|\{|\}")


class Template:
    """A text with columns to fill in."""

    __slots__ = ("_parts", "columns", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # Literal text at even places, column names at odd ones.
        self._parts: list[str] = [""]
        position = 0
        for match in _TOKEN.finditer(text):
            self._parts[-1] += text[position : match.start()]
            position = match.end()
            token = match.group()
            if token in ("{{", "}}"):
                self._parts[-1] += token[0]
            elif match.group(1) is not None and match.group(1).strip():
                self._parts += [match.group(1).strip(), ""]
            else:
                raise OptionError(
                    f"the prompt has a lone '{token}' at character {match.start()}; "
                    "write {{ and }} for braces, {column} for a column"
                )
        self._parts[-1] += text[position:]
        self.columns = tuple(dict.fromkeys(self._parts[1::2]))

    def check(self, columns: Collection[str], what: str = "the prompt") -> None:
        """`InputError` when a column that the template names is not among `columns`."""
        for name in self.columns:
            if name not in columns:
                raise InputError(missing_column(name, columns, what))

    def render(self, row: Mapping[str, Any]) -> str:
        """The text with the row's values in it."""
        parts = self._parts
        if len(parts) == 1:
            return parts[0]
        filled = list(parts)
        for place in range(1, len(parts), 2):
            name = parts[place]
            if name not in row:
                raise InputError(missing_column(name, row.keys(), "the prompt"))
            filled[place] = as_text(row[name])
        return "".join(filled)


class PartsTemplate:
    """Content parts of a message (texts, images): every text in them is a template."""

    __slots__ = ("_made", "columns")

    def __init__(self, parts: Sequence[Mapping[str, Any]]) -> None:
        columns: dict[str, None] = {}
        self._made = [_compiled(part, columns) for part in parts]
        self.columns = tuple(columns)

    def render(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The parts with the row's values in them."""
        return [_filled(part, row) for part in self._made]


def content_template(content: Any) -> "Template | PartsTemplate":
    """The template of a message's content: of a text, or of content parts."""
    if isinstance(content, str):
        return Template(content)
    if (
        not isinstance(content, Sequence)
        or not content
        or not all(isinstance(one, Mapping) for one in content)
    ):
        raise OptionError(
            "a message's content is a text, or a list of content parts such as {type: text, text: ...}"
        )
    return PartsTemplate(content)


def _compiled(value: Any, columns: dict[str, None]) -> Any:
    if isinstance(value, str):
        made = Template(value)
        columns.update(dict.fromkeys(made.columns))
        return made
    if isinstance(value, Mapping):
        return {str(key): _compiled(one, columns) for key, one in value.items()}
    return [_compiled(one, columns) for one in value] if isinstance(value, list | tuple) else value


def _filled(value: Any, row: Mapping[str, Any]) -> Any:
    if isinstance(value, Template):
        return value.render(row)
    if isinstance(value, dict):
        return {key: _filled(one, row) for key, one in value.items()}
    return [_filled(one, row) for one in value] if isinstance(value, list) else value


def as_text(value: Any) -> str:
    """A value as it stands in a prompt: text as it is, anything structured as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    return jsontext.encode_text(value)


def missing_column(name: str, columns: Collection[str], what: str) -> str:
    """The sentence about a column that is not there, with the nearest one that is."""
    near = difflib.get_close_matches(name, list(columns), n=1, cutoff=0.6)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    if not near and what.endswith("prompt"):
        hint = "; write {{ and }} where braces are meant as braces"
    listed = ", ".join(sorted(columns)) or "none"
    return f"{what} needs the column '{name}', which the dataset lacks{hint} (columns: {listed})"
