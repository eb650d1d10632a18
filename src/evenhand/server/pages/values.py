"""Values from applications as people read them: text, chats, JSON as a tree. Text from users is text.

| value | shown |
|---|---|
| string | as it is |
| messages (an object with `messages`, or a list of messages) | role blocks, earlier ones folded; badge "chat format" |
| other objects and arrays | a folding tree, or formatted text |
| number, boolean | as text |
| null, absent | — |

Values over 10 KB show their first 2 KB until the rest is asked for; past 1 MB there is only the download.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

import msgspec
from markupsafe import Markup, escape
from msgspec import Raw, Struct

from evenhand.core.jsontext import spelled

LARGE = 10 * 1024
"""Bytes from which on a value is cut."""
FIRST = 2 * 1024
"""Characters that are shown of a value that is cut."""
DOWNLOAD_ONLY = 1024 * 1024
"""Bytes from which on a value is not put into a page."""
FOLDED_DEPTH = 3
"""Levels of a tree that are open at first."""

Form = Literal["", "chat", "json", "text", "markdown"]


class Message(Struct, frozen=True, kw_only=True):
    """One message of a chat."""

    role: str
    """`user`, `assistant`, `system`, `tool`, or whatever the application says."""
    text: str
    """What it says; parts that are no text are JSON."""
    name: str = ""
    """Of the tool or the speaker."""


class Shown(Struct, frozen=True, kw_only=True):
    """A value, ready for the macro `value` of `parts.html`."""

    kind: Literal["none", "text", "chat", "json", "cut", "download"]
    """How it is drawn."""
    forms: tuple[Form, ...] = ()
    """The other ways to look at it."""
    form: Form = ""
    """This one."""
    text: str = ""
    """Plain text, or the first part of it."""
    tree: Markup = Markup()
    """The JSON tree, or the Markdown."""
    system: tuple[Message, ...] = ()
    """The system prompt, folded."""
    earlier: tuple[Message, ...] = ()
    """Messages before the last question, folded."""
    messages: tuple[Message, ...] = ()
    """The last question and what follows it."""
    size: int = 0
    """Bytes."""


def show_value(raw: Raw | bytes | None, form: Form = "", *, full: bool = False) -> Shown:
    """A stored JSON value for developers, in the form that they chose."""
    data = b"null" if raw is None else bytes(raw)
    size = len(data)
    if size >= DOWNLOAD_ONLY:
        return Shown(kind="download", size=size, text=data[:FIRST].decode("utf-8", "ignore"))
    value = msgspec.json.decode(data)
    if value is None:
        return Shown(kind="none")
    if size > LARGE and not full:
        return Shown(kind="cut", size=size, text=formatted(value)[:FIRST])
    if isinstance(value, str):
        return _text(value, form, size)
    if not isinstance(value, dict | list):
        return Shown(kind="text", text=spelled(value), size=size)
    messages = read_messages(value)
    forms: tuple[Form, ...] = ("chat", "json", "text") if messages else ("json", "text")
    chosen = form if form in forms else forms[0]
    if chosen == "chat" and messages:
        system, earlier, last = split_messages(messages)
        return Shown(
            kind="chat", forms=forms, form=chosen, system=system, earlier=earlier, messages=last, size=size
        )
    if chosen == "text":
        return Shown(kind="text", forms=forms, form=chosen, text=formatted(value), size=size)
    return Shown(kind="json", forms=forms, form="json", tree=Markup("").join(_tree(value, 0)), size=size)


def _text(value: str, form: Form, size: int) -> Shown:
    if form == "markdown":
        return Shown(kind="json", forms=("text", "markdown"), form=form, tree=markdown(value), size=size)
    looks_formatted = any(mark in value for mark in ("**", "\n#", "\n- ", "\n* ", "```", "`", "](", "\n1. "))
    forms: tuple[Form, ...] = ("text", "markdown") if looks_formatted else ()
    return Shown(kind="text", forms=forms, form="text", text=value, size=size)


def formatted(value: Any) -> str:
    """A value as plain text: JSON on several lines, a string as it is."""
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def one_line(raw: Raw | bytes | None, length: int = 120) -> str:
    """A value as a line of a table, without JSON where it is a chat; cut to `length` characters."""
    text = " ".join(readable(raw).text[: 4 * length].split())
    return text if len(text) <= length else text[: length - 1] + "…"


class Readable(Struct, frozen=True, kw_only=True):
    """A value for people who read no JSON."""

    text: str
    """The last user message of a chat, the text, or the fields of an object in words; `—` for nothing."""
    chat: bool = False
    """Whether it was a chat."""
    earlier: tuple[Message, ...] = ()
    """Messages before it."""


def readable(raw: Raw | bytes | None) -> Readable:
    """A stored JSON value for reviewers: never JSON."""
    value = None if raw is None else msgspec.json.decode(bytes(raw))
    if value is None or value == "":
        return Readable(text="—")
    messages = read_messages(value)
    if messages:
        at = max((n for n, one in enumerate(messages) if one.role == "user"), default=len(messages) - 1)
        return Readable(text=messages[at].text or "—", chat=True, earlier=tuple(messages[:at]))
    return Readable(text="\n".join(_in_words(value, "")) or "—")


def _in_words(value: Any, indent: str) -> Iterator[str]:
    """An object as lines of `name: value`, an array as lines with dashes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list) and inner:
                yield f"{indent}{key}:"
                yield from _in_words(inner, indent + "  ")
            else:
                yield f"{indent}{key}: {_scalar(inner)}"
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, dict | list) and inner:
                lines = list(_in_words(inner, indent + "  "))
                yield f"{indent}– {lines[0].strip()}"
                yield from lines[1:]
            else:
                yield f"{indent}– {_scalar(inner)}"
    else:
        yield f"{indent}{_scalar(value)}"


def _scalar(value: Any) -> str:
    if value is None or value in ({}, []):
        return "—"
    return value if isinstance(value, str) else spelled(value)


def read_messages(value: Any) -> list[Message]:
    """The messages of a chat; empty for anything else."""
    given = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(given, list) or not given:
        return []
    found = []
    for one in given:
        if not isinstance(one, Mapping) or not isinstance(one.get("role"), str):
            return []
        content = one.get("content", one.get("parts"))
        calls = one.get("tool_calls")
        parts = [_content(content)] if content is not None else []
        parts += [formatted(calls)] if calls else []
        name = one.get("name") or one.get("tool_call_id") or ""
        found.append(
            Message(role=one["role"], text="\n".join(parts), name=name if isinstance(name, str) else "")
        )
    return found


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return formatted(content)


def _part(part: Any) -> str:
    if isinstance(part, Mapping):
        for key in ("text", "content"):
            if isinstance(part.get(key), str):
                return str(part[key])
    return formatted(part)


def split_messages(
    messages: list[Message],
) -> tuple[tuple[Message, ...], tuple[Message, ...], tuple[Message, ...]]:
    """The system prompt, what came before the last question, and the last question with what follows it."""
    start = 0
    while start < len(messages) and messages[start].role in ("system", "developer"):
        start += 1
    rest = messages[start:]
    last = max((n for n, one in enumerate(rest) if one.role == "user"), default=0)
    return tuple(messages[:start]), tuple(rest[:last]), tuple(rest[last:])


def _tree(value: Any, depth: int, comma: str = "") -> Iterator[Markup]:
    """Nested `<details>`; every text is escaped. `comma` belongs to the closing bracket, on its line."""
    if isinstance(value, dict) and value:
        entries = [(escape(msgspec.json.encode(key).decode()), inner) for key, inner in value.items()]
        yield from _level(
            "{",
            "}" + comma,
            [(Markup('<span class="k">{}</span>: ').format(k), v) for k, v in entries],
            depth,
        )
    elif isinstance(value, list) and value:
        yield from _level("[", "]" + comma, [(Markup(), inner) for inner in value], depth)
    else:
        yield _leaf(value) + comma


def _level(opening: str, closing: str, entries: list[tuple[Markup, Any]], depth: int) -> Iterator[Markup]:
    count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    is_open = Markup(" open") if depth < FOLDED_DEPTH else Markup()
    yield Markup('<details{}><summary>{}<span class="cnt">{} {}</span></summary><ul>').format(
        is_open, opening, count, closing
    )
    for at, (key, inner) in enumerate(entries):
        yield Markup("<li>{}").format(key)
        yield from _tree(inner, depth + 1, "" if at == len(entries) - 1 else ",")
        yield Markup("</li>")
    yield Markup("</ul>{}</details>").format(closing)


def _leaf(value: Any) -> Markup:
    kind = "s" if isinstance(value, str) else "nn"
    return Markup('<span class="{}">{}</span>').format(kind, msgspec.json.encode(value).decode())


def markdown(text: str) -> Markup:
    """Markdown as HTML that can do nothing: no HTML of its own, no images, no links that lead anywhere."""
    from nh3 import clean

    tags = {
        "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "s", "code", "pre", "blockquote",
        "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    cleaned = clean(_markdown_parser().render(text), tags=tags, attributes={}, link_rel=None)
    return Markup('<div class="md">{}</div>').format(Markup(cleaned))  # noqa: S704  cleaned above


@cache
def _markdown_parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
