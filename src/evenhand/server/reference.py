"""The reference page: the route table as plain HTML, without scripts and without the network."""

from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec

from evenhand.server.openapi import error_codes
from evenhand.server.routes import Route

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


def reference_page(routes: Sequence[Route]) -> bytes:
    """One page that documents every endpoint."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        "<title>Evenhand: reference</title><link rel=icon href=/docs/icon.svg><link rel=stylesheet href=/docs/style.css>",
        "<h1>Evenhand: HTTP reference</h1>",
        "<p>Send <code>Authorization: Bearer &lt;token&gt;</code> with every <code>/v1</code> request. ",
        "The same as a document for programs: <a href=/openapi.json>openapi.json</a>.</p>",
    ]
    for tag in dict.fromkeys(route.tag for route in routes):
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += [_route(route) for route in routes if route.tag == tag]
    return "\n".join(parts).encode()


def style_sheet() -> bytes:
    return _STYLE.encode()


def icon() -> bytes:
    return _ICON.encode()


def _route(route: Route) -> str:
    role = f"role: {route.role}" if route.role is not None else "no token needed"
    parts = [
        f"<details><summary><code>{route.method} {escape(route.path)}</code> {escape(route.summary)}</summary>",
        f"<p>{role}; answers {route.status}; errors: {', '.join(error_codes(route))}</p>",
    ]
    for title, wanted in (("Query", route.query), ("Body", route.request), ("Answer", route.response)):
        if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
            parts.append(f"<h3>{title}</h3>{_fields(wanted)}")
    return "".join(parts) + "</details>"


def _fields(wanted: type[msgspec.Struct]) -> str:
    rows = [
        f"<tr><td><code>{escape(field.encode_name)}</code><td>{'required' if field.required else ''}"
        f"<td><code>{escape(_type_name(field.type))}</code>"
        for field in msgspec.structs.fields(wanted)
    ]
    return f"<table><tr><th>field<th><th>type{''.join(rows)}</table>"


def _type_name(wanted: Any) -> str:
    name = getattr(wanted, "__name__", None) if isinstance(wanted, type) else None
    text = name or str(wanted)
    return text.replace("msgspec.Raw", "any JSON").replace("typing.", "").replace("Raw", "any JSON")
