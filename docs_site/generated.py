"""Pages that MkDocs makes from the code while it builds the site, so that they cannot be out of date.

MkDocs calls `on_files`; `pages` gives the same texts to the tests.
"""

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import evenhand
from evenhand import settings
from evenhand.cli import app
from evenhand.core.lazy_names import public_names
from evenhand.evaluation.schemas import artifact_schemas
from evenhand.server.http import openapi
from evenhand.server.table import all_routes

ROOT = Path(__file__).resolve().parent.parent


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those in `docs/`."""
    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def pages() -> dict[str, str]:
    """Path below `docs/` to the page's Markdown."""
    return {
        "reference/python.md": python_page(),
        "reference/cli.md": command_line_page(),
        "reference/http.md": http_page(),
        "reference/settings.md": settings_page(),
        "reference/files.md": files_page(),
        "decisions/index.md": decisions_page(),
    }


def python_page() -> str:
    """Every public name with its signature and docstring."""
    parts = ["# Python\n\nEvery name that `from evenhand import …` offers.\n"]
    for name in public_names(evenhand):
        value = getattr(evenhand, name)
        parts.append(f"## `{name}`\n")
        if callable(value):
            parts.append(f"```text\n{name}{_signature(value)}\n```\n")
        parts.append(_paragraphs(inspect.getdoc(value) or "") + "\n" if callable(value) else "\n")
    return "\n".join(parts)


def _signature(value: Callable[..., Any]) -> str:
    try:
        found = inspect.signature(getattr(value, "function", value))
    except (TypeError, ValueError):
        return "(...)"
    return str(found)


def _paragraphs(text: str) -> str:
    """A docstring as Markdown; what is indented stays as it is."""
    return re.sub(r"<", "&lt;", text)


def commands(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and everything below it, with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from commands(found, (*path, name))


def command_line_page() -> str:
    """The help text of every command."""
    parts = ["# Command line\n\nThe help text of every command, as `--help` prints it.\n"]
    for path, command in commands(app.command, ("evenhand",)):
        context = click.Context(command, info_name=" ".join(path), max_content_width=100, terminal_width=100)
        parts.append(f"## `{' '.join(path)}`\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def http_page() -> str:
    """Every endpoint: parameters, body, answers, error codes."""
    document: dict[str, Any] = json.loads(openapi.document(all_routes()))
    intro = (
        "Every endpoint of the scoring service. A running server has the same at `/docs` and `/openapi.json`."
    )
    parts = [f"# HTTP\n\n{intro}\n"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts.append(f"## `{method.upper()} {path}`\n\n{operation.get('summary', '')}\n")
            if operation.get("description"):
                parts.append(_paragraphs(operation["description"]) + "\n")
            if operation.get("parameters"):
                parts.append("| parameter | in | required | type | meaning |\n|---|---|---|---|---|")
                parts.extend(_parameter(one) for one in operation["parameters"])
                parts.append("")
            body = _schema_name(operation.get("requestBody", {}))
            if body:
                parts.append(f"Body: `{body}`.\n")
            parts.append(
                "Answers: "
                + "; ".join(
                    f"`{status}`" + (f" {name}" if (name := _schema_name(answer)) else "")
                    for status, answer in operation["responses"].items()
                )
                + ".\n"
            )
    return "\n".join(parts)


def _parameter(one: Mapping[str, Any]) -> str:
    schema = one.get("schema", {})
    kind = schema.get("type") or " or ".join(
        sorted({str(x.get("type", "")) for x in schema.get("anyOf", [])})
    )
    cells = [f"`{one['name']}`", one["in"], "yes" if one.get("required") else "no", kind or "any"]
    return "| " + " | ".join([*cells, one.get("description", "")]).replace("\n", " ") + " |"


def _schema_name(holder: Mapping[str, Any]) -> str:
    for content in holder.get("content", {}).values():
        reference: str = content.get("schema", {}).get("$ref", "")
        if reference:
            return reference.rpartition("/")[2]
    return ""


def documented_settings() -> list[tuple[str, str]]:
    """The fields of `Settings` with the text under each."""
    (found,) = (
        node
        for node in ast.parse(Path(settings.__file__).read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Settings"
    )
    rows = []
    for field, text in zip(found.body, found.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr)
            assert isinstance(text.value, ast.Constant)
            rows.append((field.target.id, " ".join(str(text.value.value).split())))
    return rows


def settings_page() -> str:
    """Every environment variable."""
    rows = "\n".join(f"| `{name}` | {text} |" for name, text in documented_settings())
    return (
        "# Settings\n\nWhat the environment decides. An option on the command line wins over its variable.\n\n"
        f"| setting | variable and meaning |\n|---|---|\n{rows}\n"
    )


def files_page() -> str:
    """The fields of every artifact, from its JSON Schema."""
    intro = "The fields of the [files that a run leaves](../artifacts.md), from their JSON Schemas in `docs/schemas`."
    parts = [f"# File formats\n\n{intro}\n"]
    for name, schema in artifact_schemas().items():
        parts.append(f"## `{name}`\n")
        parts.append("| type | field | required |\n|---|---|---|")
        for kind, definition in {"(top)": schema, **schema.get("$defs", {})}.items():
            for field in definition.get("properties", {}):
                needed = "yes" if field in definition.get("required", ()) else "no"
                parts.append(f"| {kind} | `{field}` | {needed} |")
        parts.append("")
    return "\n".join(parts)


def decisions_page() -> str:
    """A list of the decision records with their status."""
    rows = []
    for path in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].lstrip("# ")
        status = re.search(r"(?im)^[-*\s]*\**status\**\s*:\s*(.+)$", text)
        rows.append(f"| [{title}]({path.name}) | {status[1].strip(' *') if status else ''} |")
    return (
        "# Decisions\n\nWhy things are as they are.\n\n| decision | status |\n|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )
