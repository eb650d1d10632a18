"""Texts of spans that come as log records: kept until their span is there, then part of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from evenhand.core.timestamps import format_instant, now
from evenhand.store.connection import Connection

KEPT = timedelta(days=7)
"""How long records are kept: a span that comes later than that comes without them."""
MAX_TEXTS = 1_000
"""Records of one span."""
MAX_BYTES = 16 * 1024 * 1024
"""Their length together."""
LOGGED_INPUT, LOGGED_OUTPUT = 1, 2


class SpanText(NamedTuple):
    """One record's text."""

    trace_id: str
    span_id: str
    place: str
    """`input` or `output`."""
    at_ns: int
    """Its time: texts are in this order."""
    digest: str
    """Of the text; a record that is sent again has the same."""
    whole: int
    """1 when it holds all messages, 0 when it is one of several."""
    text: str
    """JSON text."""


class Texts(NamedTuple):
    """The texts of one request."""

    project_id: str
    texts: Sequence[SpanText]


Span = tuple[str, str]
"""Trace id and span id."""


def add_texts(connection: Connection, texts: Texts) -> list[str]:
    """Keep the texts and give them to the spans that are there; why some are left out."""
    project_id = texts.project_id
    wanted = {(text.trace_id, text.span_id) for text in texts.texts}
    stored = _stored(connection, project_id, {trace_id for trace_id, _ in wanted})
    sizes: dict[Span, tuple[int, int]] = {
        span: (len(rows), sum(len(row.text) for row in rows)) for span, rows in stored.items()
    }
    known = {row[:5] for span in wanted for row in stored.get(span, ())}
    fresh: list[SpanText] = []
    full: set[Span] = set()
    for text in texts.texts:
        span = (text.trace_id, text.span_id)
        if text[:5] in known:
            continue
        count, size = sizes.get(span, (0, 0))
        if count >= MAX_TEXTS or size + len(text.text) > MAX_BYTES:
            full.add(span)
            continue
        known.add(text[:5])
        sizes[span] = (count + 1, size + len(text.text))
        fresh.append(text)
    received_at = format_instant(now())
    if fresh:
        connection.run_many(
            "INSERT INTO span_texts (project_id, trace_id, span_id, place, at_ns, digest, whole, text, received_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(project_id, *text, received_at) for text in fresh],
        )
        keys: dict[str, str] = dict(
            connection.look_up(
                "id, trace_key",
                "FROM traces WHERE id IN [?] AND project_id = ?",
                sorted({text.trace_id for text in fresh}),
                project_id,
            )()
        )
        for text in fresh:
            stored[(text.trace_id, text.span_id)].append(text)
        changed = {(text.trace_id, text.span_id) for text in fresh}
        _join(connection, keys, {span: stored[span] for span in changed})
    return [
        f"span '{span_id}': the log has more than {MAX_TEXTS} messages or {MAX_BYTES >> 20} MiB for it"
        for _, span_id in sorted(full)
    ]


def ask_waiting(connection: Connection, project_id: str, trace_ids: list[str]) -> Callable[[], set[str]]:
    """Those of the traces that the log has texts for, as `Connection.ask` does it."""
    rows = connection.look_up(
        "trace_id",
        "FROM span_texts WHERE trace_id IN [?] AND project_id = ? GROUP BY trace_id",
        trace_ids,
        project_id,
    )
    return lambda: {row[0] for row in rows()}


def join_waiting(
    connection: Connection, project_id: str, keys: Mapping[str, str], spans: Iterable[Span]
) -> None:
    """Give spans that were just stored the texts that came before them. `keys`: the traces that have such texts."""
    stored = _stored(connection, project_id, keys)
    _join(connection, keys, {span: stored[span] for span in spans if span in stored})


def forget_texts(connection: Connection, project_id: str, trace_ids: Sequence[str]) -> None:
    """Forget what the log had for traces that are deleted."""
    connection.run("DELETE FROM span_texts WHERE project_id = ? AND trace_id IN [?]", project_id, trace_ids)


def forget_old_texts(connection: Connection) -> None:
    """Forget the records of more than a week ago."""
    connection.run("DELETE FROM span_texts WHERE received_at < ?", format_instant(now() - KEPT))


def _stored(
    connection: Connection, project_id: str, trace_ids: Iterable[str]
) -> defaultdict[Span, list[SpanText]]:
    rows = connection.look_up(
        "trace_id, span_id, place, at_ns, digest, whole, text",
        "FROM span_texts WHERE trace_id IN [?] AND project_id = ?",
        sorted(trace_ids),
        project_id,
    )()
    found: defaultdict[Span, list[SpanText]] = defaultdict(list)
    for row in rows:
        found[(row[0], row[1])].append(SpanText(*row))
    return found


def _join(connection: Connection, keys: Mapping[str, str], texts: Mapping[Span, Sequence[SpanText]]) -> None:
    """Write what the texts add up to into the spans that are there, except over texts of their own."""
    for (trace_id, span_id), rows in texts.items():
        key = keys.get(trace_id)
        if key is None:
            continue
        for column, mark in (("input", LOGGED_INPUT), ("output", LOGGED_OUTPUT)):
            value = _added_up([row for row in rows if row.place == column])
            if value is not None:
                connection.run(
                    f"UPDATE spans SET {column} = ?, logged = logged | {mark}"  # noqa: S608  constants
                    f" WHERE trace_key = ? AND id = ? AND ({column} IS NULL OR logged & {mark} <> 0)",
                    value,
                    key,
                    span_id,
                )


def _added_up(rows: Sequence[SpanText]) -> str | None:
    """The messages as a list, in the order of their times; a record that holds all of them is taken as it is."""
    if not rows:
        return None
    ordered = sorted(rows, key=lambda row: (row.at_ns, row.digest))
    whole = [row for row in ordered if row.whole]
    return whole[-1].text if whole else f"[{','.join(row.text for row in ordered)}]"
