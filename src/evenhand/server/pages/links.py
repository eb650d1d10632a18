"""Addresses of pages. The address is the state: filters, order, open rows and selected spans are in it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec
from msgspec import Struct


def segment(object_id: str) -> str:
    """An id as one part of a path."""
    return quote(object_id, safe="")


def project_path(project_id: str, *parts: str) -> str:
    """`/projects/<id>/traces/<trace>`: `parts` are names and ids, each one part of the path."""
    return "/".join(["/projects", segment(project_id), *map(segment, parts)])


def with_query(path: str, values: Mapping[str, Any]) -> str:
    """The path with those values that are not None, False or empty."""
    given = {
        name: "1" if value is True else value
        for name, value in values.items()
        if value not in (None, "", False)
    }
    return f"{path}?{urlencode(given)}" if given else path


def query_values(query: Struct) -> dict[str, Any]:
    """What a page's query gives beyond its defaults; a table of texts becomes `name.key` again."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(query):
        value = getattr(query, field.name)
        if isinstance(value, dict):
            found.update({f"{field.encode_name}.{key}": text for key, text in value.items()})
        elif value != field.default:
            found[field.encode_name] = value
    return found


class Here:
    """The address of the page that is shown, and those beside it: `here(sort="age")` changes one value.

    A change of filter or order goes back to the first page of the list; `cursor` must be named to be kept.
    """

    def __init__(self, path: str, query: Struct | None = None) -> None:
        self.path = path
        self.values = {} if query is None else query_values(query)
        self.values.pop("format", None)

    def __call__(self, **changes: Any) -> str:
        kept = {name: value for name, value in self.values.items() if name != "cursor"}
        return with_query(self.path, {**kept, **changes})

    @property
    def same(self) -> str:
        """This page as it is."""
        return with_query(self.path, self.values)

    @property
    def query(self) -> str:
        """The state of this page as a query string."""
        return self.same.partition("?")[2]

    @property
    def state(self) -> str:
        """The same without the place in a list: what a saved view keeps."""
        return self().partition("?")[2]

    @property
    def page(self) -> str:
        """The path within the project: `traces`."""
        return "/".join(map(unquote, self.path.split("/")[3:]))

    def export(self, kind: str) -> str:
        """The table on screen, page and all, as a file."""
        return with_query(self.path, {**self.values, "format": kind})

    def fields(self, *without: str) -> dict[str, Any]:
        """What a filter form carries along as hidden fields."""
        return {
            name: "1" if value is True else value
            for name, value in self.values.items()
            if name not in (*without, "cursor") and value not in (None, "", False)
        }


def local_path(path: str) -> str:
    """`path` if it leads to a page of this server; otherwise the first page."""
    parts = urlsplit(path)
    local = (
        path.startswith("/") and not path.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    )
    return path if local and path.isprintable() and len(path) <= 4_000 else "/"
