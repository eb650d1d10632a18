"""What went into a span and what came out, wherever its instrumentation put them.

The first place that has something wins. An attribute that was used is removed, so that the metadata do not repeat it.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.server.ingest.otlp_wire import WireEvent

_ENCODER = msgspec.json.Encoder()


def encoded(value: Any) -> str:
    """The value as JSON text."""
    return _ENCODER.encode(value).decode()


def json_text(value: Any) -> str:
    """JSON text of an attribute; one that carries JSON in a string is unpacked."""
    if isinstance(value, str):
        try:
            jsontext.decode(value)
        except InputError:
            pass  # a plain string after all
        else:
            return value
    return encoded(value)


def json_or_words(value: Any) -> str:
    """As `json_text` for attributes that hold plain words too: only objects and arrays are taken for JSON, so that an
    answer of "42" stays a text."""
    looks_like_json = isinstance(value, str) and value.lstrip()[:1] in ("{", "[")
    return json_text(value) if looks_like_json else encoded(value)


class Place(NamedTuple):
    """An attribute that holds a text, and how it is read."""

    name: str
    read: Callable[[Any], str] = json_text


class Places(NamedTuple):
    """Where an input (or output) may be found."""

    attributes: tuple[Place, ...]
    """Single attributes, in order of preference."""
    value: str
    """OpenInference's attribute, which has a note beside it of what it is."""
    mime_type: str
    """That note."""
    older: str
    """The attribute, the attribute of events, and the prefix of numbered attributes in older conventions."""
    numbered: str
    """The prefix of OpenInference's numbered messages."""
    events: tuple[str, ...]
    """The events that hold it in older conventions."""
    trace: str
    """Langfuse's attribute for the whole trace."""


INPUT = Places(
    (
        Place("gen_ai.input.messages"),
        Place("langfuse.observation.input", json_or_words),
        Place("mlflow.spanInputs"),
        Place("ai.prompt.messages"),
        Place("ai.prompt"),
        Place("ai.toolCall.args"),
        Place("ai.values"),
        Place("ai.value"),
        Place("gen_ai.tool.call.arguments"),
        Place("tool_arguments"),
        Place("traceloop.entity.input"),
    ),
    "input.value",
    "input.mime_type",
    "gen_ai.prompt",
    "llm.input_messages.",
    ("gen_ai.prompt", "gen_ai.content.prompt"),
    "langfuse.trace.input",
)
OUTPUT = Places(
    (
        Place("gen_ai.output.messages"),
        Place("langfuse.observation.output", json_or_words),
        Place("mlflow.spanOutputs"),
        Place("ai.response.object"),
        Place("ai.toolCall.result"),
        Place("gen_ai.tool.call.result", json_or_words),
        Place("tool_response", json_or_words),
        Place("final_result", json_or_words),
        Place("traceloop.entity.output"),
    ),
    "output.value",
    "output.mime_type",
    "gen_ai.completion",
    "llm.output_messages.",
    ("gen_ai.completion", "gen_ai.content.completion"),
    "langfuse.trace.output",
)
_NAMES = {
    id(places): frozenset(place.name for place in places.attributes)
    | {places.value, places.older, places.trace}
    for places in (INPUT, OUTPUT)
}
AGENT_MESSAGES = ("pydantic_ai.all_messages", "all_messages_events")
"""What an agent of pydantic-ai heard and said, all in one list."""
MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
"""Events that are one message each, and whose."""
CHOICE = "gen_ai.choice"


def take_texts(attributes: dict[str, Any], events: list[WireEvent]) -> tuple[str | None, str | None]:
    """Input and output as JSON text; they are removed where they were found."""
    written = _content(attributes, events, OUTPUT) or _vercel_output(attributes)
    read = _content(attributes, events, INPUT)
    if read is None or written is None:
        said_in, said_out = _agent_texts(attributes)
        read, written = read or said_in, written or said_out
    if events and (read is None or written is None):
        heard, said = _message_events(events, missing=(read is None, written is None))
        read, written = read or heard, written or said
    return read, written


def _content(attributes: dict[str, Any], events: list[WireEvent], places: Places) -> str | None:
    if not attributes.keys().isdisjoint(_NAMES[id(places)]):
        for place in places.attributes:
            if place.name in attributes:
                return place.read(attributes.pop(place.name))
        if places.value in attributes:
            value = attributes.pop(places.value)
            # The note is of no use once the value was read.
            is_json = attributes.pop(places.mime_type, None) == "application/json"
            return json_text(value) if is_json else encoded(value)
    for event in events:
        found = event.attributes.get(places.attributes[0].name)
        if found is None and event.name in places.events:
            found = event.attributes.get(places.older)
        if found is not None:
            events.remove(event)
            return json_text(found)
    if places.older in attributes:
        return json_text(attributes.pop(places.older))
    messages = _numbered(attributes, places.older + ".") or _numbered(attributes, places.numbered, "message.")
    if messages:
        return encoded(messages)
    return json_or_words(attributes.pop(places.trace)) if places.trace in attributes else None


def _numbered(attributes: dict[str, Any], prefix: str, inner: str = "") -> list[dict[str, Any]]:
    """`gen_ai.prompt.0.role`, `gen_ai.prompt.0.content`, ... as a list of messages, taken out of `attributes`."""
    rows: dict[int, dict[str, Any]] = {}
    for name in [name for name in attributes if name.startswith(prefix)]:
        index, _, rest = name[len(prefix) :].partition(".")
        if index.isascii() and index.isdigit() and len(index) < 6 and rest:
            rows.setdefault(int(index), {})[rest.removeprefix(inner)] = attributes.pop(name)
    return [rows[index] for index in sorted(rows)]


def _vercel_output(attributes: dict[str, Any]) -> str | None:
    """A text, a list of tool calls, or both."""
    if "ai.response.text" not in attributes and "ai.response.toolCalls" not in attributes:
        return None
    words = attributes.pop("ai.response.text", None)
    calls = attributes.pop("ai.response.toolCalls", None)
    if calls is None:
        return encoded(words)
    if not words:
        return json_text(calls)
    return f'{{"text":{encoded(words)},"toolCalls":{json_text(calls)}}}'


def _agent_texts(attributes: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """What an agent was asked and what it said last. The list of all its messages stays in the metadata: it has more."""
    for name in AGENT_MESSAGES:
        text = attributes.get(name)
        if not isinstance(text, str):
            continue
        try:
            messages = jsontext.decode(text, type=list[dict[str, Any]])
        except InputError:
            continue
        first = attributes.get("pydantic_ai.new_message_index", 0)
        roles = [message.get("role") for message in messages]
        start = first if type(first) is int and 0 <= first < len(messages) else 0
        end = roles.index("assistant", start) if "assistant" in roles[start:] else len(messages)
        said = messages[-1] if roles[-1:] == ["assistant"] and len(messages) > end else None
        return encoded(messages[:end]) if end else None, None if said is None else encoded([said])
    return None, None


def _message_events(events: list[WireEvent], missing: tuple[bool, bool]) -> tuple[str | None, str | None]:
    """Messages that are events of the span, one each; they are removed from `events`."""
    heard: list[Any] = []
    said: list[Any] = []
    for event in list(events):
        found = message_of(event.name, None, event.attributes)
        if found is None:
            continue
        is_output, message = found
        if missing[1] if is_output else missing[0]:
            (said if is_output else heard).append(message)
            events.remove(event)
    return encoded(heard) if heard else None, encoded(said) if said else None


def message_of(name: str, body: Any, attributes: Mapping[str, Any]) -> tuple[bool, dict[str, Any]] | None:
    """Whether it belongs to the output, and the message of an event `gen_ai.*.message` or `gen_ai.choice`.

    Its content is the body of a log record, the attribute `gen_ai.event.content` (JSON), or the attributes themselves.
    """
    is_choice = name == CHOICE
    if not is_choice and name not in MESSAGE_EVENTS:
        return None
    content = attributes.get("gen_ai.event.content") if body is None else body
    if content is None:
        content = {
            key: value for key, value in attributes.items() if key not in ("gen_ai.system", "event.name")
        }
    if isinstance(content, str):
        try:
            content = jsontext.decode(content)
        except InputError:
            content = {"content": content}
    if not isinstance(content, dict):
        content = {"content": content}
    if not is_choice:
        return False, {"role": MESSAGE_EVENTS[name], **content}
    message = content.get("message")
    if isinstance(message, str):
        try:
            message = jsontext.decode(message)
        except InputError:
            message = {"content": message}
    if not isinstance(message, dict):
        return True, {"role": "assistant", **content}
    rest = {key: value for key, value in content.items() if key not in ("message", "index")}
    return True, {"role": "assistant", **message, **rest}
