"""The reference page: the OpenAPI document as plain HTML, without scripts and without the network."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from evenhand.server.http.openapi import GENERAL_ERRORS, error_codes, parameters, schema_of, schemas
from evenhand.server.http.routes import Route

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "overflow-wrap:break-word}.wide{overflow-x:auto}.long{overflow-wrap:anywhere;min-width:9rem}"
    "code{font-family:ui-monospace,monospace}table{border-collapse:collapse;width:100%}"
    "td,th{text-align:left;padding:.25rem .5rem;border-bottom:1px solid #8884;vertical-align:top}"
    "details{margin:.5rem 0}summary{cursor:pointer}:root{color-scheme:light dark}"
)
_ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect width='16' height='16' rx='3' fill='#36c'/>"
    "<path d='M4 6h8M4 10h8' stroke='#fff' stroke-width='2'/></svg>"
)
_WORDS = {
    "null": "null",
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}
Schema = Mapping[str, Any]


def reference_page(routes: Sequence[Route]) -> bytes:
    """One page that documents every endpoint and every object."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        "<title>Evenhand: reference</title><link rel=icon href=/docs/icon.svg><link rel=stylesheet href=/docs/style.css>",
        "<h1>Evenhand: HTTP reference</h1>",
        "<p>Send <code>Authorization: Bearer &lt;token&gt;</code> with every <code>/v1</code> request. ",
        "The same as a document for programs: <a href=/openapi.json>openapi.json</a>.</p>",
        "<p>An error is always an <a href=#ErrorEnvelope>ErrorEnvelope</a>. Beside the codes that are listed, every ",
        f"endpoint can answer {_codes(GENERAL_ERRORS)}.</p>",
    ]
    objects = schemas(routes)
    for tag in dict.fromkeys(route.tag for route in routes):
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += [_route(route, objects) for route in routes if route.tag == tag]
    parts.append("<h2>Objects</h2>")
    parts += [_object(name, schema) for name, schema in sorted(objects.items())]
    return "\n".join(parts).encode()


def style_sheet() -> bytes:
    return _STYLE.encode()


def icon() -> bytes:
    return _ICON.encode()


def _route(route: Route, objects: Mapping[str, Schema]) -> str:
    role = f"role: {route.role}" if route.role is not None else "no token needed"
    own = [code for code in error_codes(route) if code not in GENERAL_ERRORS]
    parts = [
        f"<details><summary><code>{route.method} {escape(route.path)}</code> {escape(route.summary)}</summary>",
        f"<p>{role}{f'; errors: {_codes(own)}' if own else ''}</p>",
    ]
    taken = [(p["name"], p["required"], p["schema"], p.get("description", "")) for p in parameters(route)]
    if taken:
        parts.append(_table(taken))
    if route.request is not None:
        wanted = schema_of(route.request)
        parts.append(f"<p>Body: {_type(wanted)}</p>{_fields(objects[_name(wanted)])}")
    elif route.reads_body:
        parts.append(f"<p>Body: {', '.join(map(escape, route.media_types))}</p>")
    for status, wanted in {route.status: route.response, **route.other_answers}.items():
        shown = f": {_type(schema_of(wanted))}" if wanted is not None else ""
        parts.append(f"<p>Answer {status}{shown}</p>")
    return "".join(parts) + "</details>"


def _object(name: str, schema: Schema) -> str:
    head = f"<h3 id={escape(name)}>{escape(schema['title'])}</h3>"
    return f"{head}<p>{_sentence(schema.get('description', ''))}</p>{_fields(schema)}"


def _fields(schema: Schema) -> str:
    required = schema.get("required", ())
    return _table(
        (field, field in required, wanted, wanted.get("description", ""))
        for field, wanted in schema["properties"].items()
    )


def _table(rows: Iterable[tuple[str, bool, Schema, str]]) -> str:
    lines = [
        f"<tr><td><code>{escape(name)}</code>{' (required)' if required else ''}"
        f"<td>{_type(schema)}<td>{_sentence(text)}"
        for name, required, schema, text in rows
    ]
    return f"<div class=wide><table><tr><th>name<th>type<th>meaning{''.join(lines)}</table></div>"


def _sentence(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _codes(codes: Iterable[str]) -> str:
    return ", ".join(f"<code>{code}</code>" for code in codes)


def _type(schema: Schema) -> str:
    """A schema in words."""
    if "$ref" in schema:
        name = _name(schema)
        # `Page_Score_` is the component of `Page[Score]`.
        shown = re.sub(r"^([A-Za-z]+)_([A-Za-z]+)_$", r"\1[\2]", name)
        return f"<a href=#{name}>{shown}</a>"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}{_bounds(schema, 'Items')}"
    if kind == "object":
        return f"object of {_type(schema.get('additionalProperties') or {})}"
    if kind is None:
        return "any JSON"
    ends = _bounds(schema, "Length", " characters") or _bounds(schema, "imum")
    return _WORDS[kind] + ends


def _name(reference: Schema) -> str:
    """The component that a reference leads to."""
    return escape(reference["$ref"].rpartition("/")[2])


def _bounds(schema: Schema, name: str, unit: str = "") -> str:
    low, high = schema.get(f"min{name}"), schema.get(f"max{name}")
    if low is None and high is None:
        return ""
    if high is None:
        return f", at least {low:.15g}{unit}"
    return f", at most {high:.15g}{unit}" if low is None else f", {low:.15g} to {high:.15g}{unit}"
