"""A trace's spans as rows of a tree with their place in time."""

from collections import deque
from collections.abc import Iterator, Sequence

from msgspec import Struct

from evenhand.core.spans import dollars
from evenhand.store.trace_tree import SpanRow

MOST_ROWS = 5_000
"""More rows than this are not sent at once; subtrees open on demand."""
FIRST_ROWS = 500
"""Rows of a larger tree that are sent at first: those nearest to the top."""
BLOCK = 100
"""Rows per block that the browser may leave undrawn while it is out of sight."""
DEEPEST = 16
"""Levels that are still indented further."""


class TreeRow(Struct, frozen=True, kw_only=True):
    """One span with its place in the tree and in time."""

    span: SpanRow
    depth: int
    """0 for the first."""
    left: float
    """Where it starts, in per cent of the whole."""
    width: float
    """How long it took, in per cent of the whole."""
    spans: int
    """Spans under it."""
    hidden: int
    """Those of them that are not shown."""
    tokens: int
    """Its own and those under it."""
    cost: float | None
    """The same in dollars; None when no part is known."""

    @property
    def indent(self) -> int:
        return min(self.depth, DEEPEST)

    @property
    def tone(self) -> str:
        """The colour of its bar: errors, models, other work; spans with children are paler."""
        return "f-err" if self.span.failed else "f-acc" if self.span.model else "f-flat"


class Tree(Struct, frozen=True, kw_only=True):
    """What is shown of a trace."""

    rows: Sequence[TreeRow]
    total_ms: float
    """The length of the time axis."""
    start_us: int
    """Its start."""
    path: Sequence[SpanRow]
    """The spans above the one that the tree is focused on."""

    @property
    def blocks(self) -> list[Sequence[TreeRow]]:
        return [self.rows[at : at + BLOCK] for at in range(0, len(self.rows), BLOCK)]

    @property
    def hidden(self) -> int:
        return sum(row.hidden for row in self.rows)


def draw_up(
    spans: Sequence[SpanRow], *, focus: str = "", deepest: int | None = None, most: int = MOST_ROWS
) -> Tree:
    """The tree of `spans`, or of the one named `focus`; `deepest` limits its levels.

    A span whose parent is not there stands at the top, so that nothing is left out while spans still arrive. Where there
    are more than `most` rows, the first `FIRST_ROWS` from the top are shown, or `most` where one span has too many children.
    """
    by_id = {span.id: span for span in spans}
    children: dict[str, list[SpanRow]] = {}
    tops: list[SpanRow] = []
    for span in spans:
        parent = span.parent_span_id
        if parent in by_id:
            children.setdefault(parent, []).append(span)
        else:
            tops.append(span)
    if focus in by_id:
        tops = [by_id[focus]]
    order = list(tops)
    for span in order:  # grows while it is read: parents before their children
        order += children.get(span.id, ())
    sums = _sums(order, children)
    shown = _nearest(tops, children, deepest, FIRST_ROWS if len(order) > most else most)
    if len(shown) < min(FIRST_ROWS, len(order)) / 5:  # one span has very many children: all of them, or none
        shown = _nearest(tops, children, deepest, most)
    start, end = time_range(order)
    whole = max(end - start, 1)
    rows = []
    for span, depth in _depth_first(tops, children, shown):
        own = children.get(span.id, ())
        count, tokens, cost = sums[span.id]
        rows.append(
            TreeRow(
                span=span,
                depth=depth,
                left=round(100 * (span.start_us - start) / whole, 2),
                width=round(max(0.3, 100 * (_end(span) - span.start_us) / whole), 2),
                spans=count - 1,
                hidden=0 if not own or own[0].id in shown else count - 1,
                tokens=tokens,
                cost=dollars(cost),
            )
        )
    return Tree(rows=rows, total_ms=whole / 1000, start_us=start, path=_above(focus, by_id))


def time_range(spans: Sequence[SpanRow]) -> tuple[int, int]:
    """When the first of them starts, and when the last one ends; microseconds."""
    if not spans:
        return 0, 0
    starts = [span.start_us for span in spans]
    # Most spans have ended: their ends need no function call each.
    ends = [span.end_us for span in spans if span.end_us is not None]
    ends += [_end(span) for span in spans if span.end_us is None]
    return min(starts), max(*starts, *ends)


def _end(span: SpanRow) -> int:
    if span.end_us is not None:
        return max(span.end_us, span.start_us)
    return span.start_us + int((span.duration_ms or 0) * 1000)


def _depth_first(
    tops: Sequence[SpanRow], children: dict[str, list[SpanRow]], shown: set[str]
) -> Iterator[tuple[SpanRow, int]]:
    """What is shown, each span with its level."""
    waiting = [(span, 0) for span in reversed(tops)]
    while waiting:
        span, depth = waiting.pop()
        yield span, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(span.id, [])) if child.id in shown]


def _sums(
    order: Sequence[SpanRow], children: dict[str, list[SpanRow]]
) -> dict[str, tuple[int, int, int | None]]:
    """For each span: how many there are with those under it, their tokens, and what they cost."""
    sums: dict[str, tuple[int, int, int | None]] = {}
    for span in reversed(order):  # children before their parents
        count, tokens, cost = 1, span.tokens, span.cost_pico
        for child in children.get(span.id, ()):
            more, more_tokens, more_cost = sums[child.id]
            count, tokens = count + more, tokens + more_tokens
            if more_cost is not None:
                cost = (cost or 0) + more_cost
        sums[span.id] = (count, tokens, cost)
    return sums


def _nearest(
    tops: Sequence[SpanRow], children: dict[str, list[SpanRow]], deepest: int | None, most: int
) -> set[str]:
    """The spans nearest to the top. The children of one span are shown together or not at all."""
    shown = {span.id for span in tops}
    waiting = deque((span, 0) for span in tops)
    while waiting:
        span, depth = waiting.popleft()
        own = children.get(span.id, [])
        if not own or (deepest is not None and depth >= deepest) or len(shown) + len(own) > most:
            continue
        shown.update(child.id for child in own)
        waiting += [(child, depth + 1) for child in own]
    return shown


def _above(focus: str, by_id: dict[str, SpanRow]) -> list[SpanRow]:
    path: list[SpanRow] = []
    span = by_id.get(focus)
    while span is not None and span.parent_span_id in by_id and len(path) < 1_000:
        span = by_id[span.parent_span_id]
        path.append(span)
    return path[::-1]
