"""Searching names, inputs and outputs of spans, newest traces first.

Every word of the query must stand in the span, as a part of a longer one too: so words of two Chinese characters are
found, Arabic with and without its article, and half of an identifier. Texts are compared as they read, whatever their
JSON looks like: case does not count, and neither do the escapes of characters nor compatibility forms. There is no index
to keep up with: a call looks at a bounded number of spans, and its cursor goes on from there.
"""

import time
import unicodedata
from collections import defaultdict
from typing import Any, NamedTuple

from evenhand.core.errors import InputError
from evenhand.core.jsontext import decode
from evenhand.core.objects.search import Found
from evenhand.store.connection import Connection, Row
from evenhand.store.pages import LAST
from evenhand.store.spans import created_at_of

TRACES = 200
"""Traces that are read at once."""
MOST_SPANS = 20_000
"""Spans that one call looks at."""
MOST_CHARACTERS = 64 * 1024 * 1024
"""Characters of texts that one call looks at."""
CHUNK_CHARACTERS = 4 * 1024 * 1024
"""Characters that are in memory at once, those of a single trace excepted."""
SECONDS = 1.5
"""How long one call goes on reading more traces."""
PLACES = ("name", "input", "output")
AROUND = 60
"""Characters of an excerpt on both sides."""


class Searched(NamedTuple):
    """What one call found."""

    found: list[Found]
    last: str | None
    """The key of the last trace that was looked at; None when there are no more."""


def normal(text: str) -> str:
    """Text as it is compared."""
    return unicodedata.normalize("NFKC", text).casefold()


def words_of(query: str) -> list[str]:
    """The parts of a query, all of which must be there; at most twenty."""
    return list(dict.fromkeys(normal(query).split()))[:20]


def search_spans(
    connection: Connection,
    *,
    project_id: str,
    words: list[str],
    before: str | None,
    limit: int,
) -> Searched:
    """Spans with all the words in their name, input or output. A page ends with a whole trace."""
    found: list[Found] = []
    last = before or LAST
    spans, characters, end = 0, 0, time.monotonic() + SECONDS
    while True:
        traces = connection.all(
            "SELECT trace_key, id FROM traces WHERE (project_id, trace_key) < (?, ?) AND project_id >= ?"
            " ORDER BY project_id DESC, trace_key DESC LIMIT ?",
            project_id,
            last,
            project_id,
            TRACES,
        )
        if not traces:
            return Searched(found, None)
        for chunk in _chunks(connection, traces):
            rows = connection.look_up(
                "trace_key, id, name, input, output, start_us",
                "FROM spans WHERE trace_key IN [?]",
                [row[0] for row in chunk],
            )()
            by_trace: defaultdict[str, list[Row]] = defaultdict(list)
            for row in rows:
                by_trace[row[0]].append(row)
                characters += len(row[3] or "") + len(row[4] or "")
            for key, trace_id in chunk:
                spans += len(by_trace[key])
                last = key
                for row in sorted(by_trace[key], key=lambda row: (row[5], row[1])):
                    hit = _hit(row, words)
                    if hit is not None:
                        place, excerpt = hit
                        found.append(
                            Found(
                                trace_id=trace_id,
                                span_id=row[1],
                                name=row[2],
                                place=place,
                                excerpt=excerpt,
                                created_at=created_at_of(key),
                            )
                        )
                if len(found) >= limit:
                    return Searched(found, last)
            if spans >= MOST_SPANS or characters >= MOST_CHARACTERS or time.monotonic() > end:
                return Searched(found, last)


def _chunks(connection: Connection, traces: list[Row]) -> list[list[Row]]:
    """Traces that are read together: a few megabytes, or one trace."""
    lengths: dict[str, int] = dict(
        connection.look_up(
            "trace_key, SUM(COALESCE(LENGTH(input), 0) + COALESCE(LENGTH(output), 0) + 200)",
            "FROM spans WHERE trace_key IN [?] GROUP BY trace_key",
            [row[0] for row in traces],
        )()
    )
    chunks: list[list[Row]] = [[]]
    characters = 0
    for row in traces:
        length = int(lengths.get(row[0], 0))
        if chunks[-1] and characters + length > CHUNK_CHARACTERS:
            chunks.append([])
            characters = 0
        chunks[-1].append(row)
        characters += length
    return chunks


def _hit(row: Row, words: list[str]) -> tuple[str, str] | None:
    """Where the first word stands, and an excerpt, if all words are in the span."""
    texts = row[2], readable(row[3]), readable(row[4])
    # Words hold no white space: none begins in one text and ends in the next.
    together = normal("\n".join(texts))
    for word in words:
        if word not in together:
            return None
    for place, text in zip(PLACES, texts, strict=True):
        compared = normal(text)
        at = compared.find(words[0])
        if at >= 0:
            # Most texts keep their length when they are made comparable; of the others the comparable form is shown.
            shown = text if len(text) == len(compared) else compared
            start, end = max(0, at - AROUND), at + len(words[0]) + AROUND
            cut = shown[start:end].replace("\n", " ")
            return place, ("…" if start else "") + cut + ("…" if end < len(shown) else "")
    return None


def readable(text: str | None) -> str:
    """The texts in a JSON value, without its escapes, one to a line."""
    if text is None:
        return ""
    if "\\" not in text:
        return text
    try:
        value = decode(text)
    except InputError:
        return text
    parts: list[str] = []
    stack: list[Any] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            parts.append(one)
        elif isinstance(one, dict):
            for key, inner in reversed(one.items()):
                stack += (inner, key)
        elif isinstance(one, list):
            stack += reversed(one)
        else:
            parts.append(str(one))
    return "\n".join(parts)
