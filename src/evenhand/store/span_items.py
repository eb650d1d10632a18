"""Dataset items made of spans."""

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.datasets import DatasetItem
from evenhand.store.connection import Connection
from evenhand.store.datasets import ItemText, add_item, get_dataset
from evenhand.store.projects import Scope, not_found
from evenhand.store.traces import find_trace, first_call


class SpanItem(Struct, frozen=True, kw_only=True):
    """What an item is made of."""

    trace_id: str
    """The trace."""
    span_id: str | None
    """The span; None for the root."""
    project_id: str | None
    """The trace's project, where the request says so."""
    use_output: bool
    """Whether the span's output is what is expected."""
    expected_output: str | None
    """What is expected otherwise: JSON text."""
    metadata: str | None
    """A JSON object as text."""


def add_span_item(connection: Connection, dataset_id: str, wanted: SpanItem, *, scope: Scope) -> DatasetItem:
    """A new item in a dataset of the span's own project."""
    dataset = get_dataset(connection, dataset_id, scope=scope)
    if wanted.project_id not in (None, dataset.project_id):
        raise not_found("trace", wanted.trace_id)
    trace = find_trace(connection, wanted.trace_id, scope=dataset.project_id)
    span_id = wanted.span_id or trace[3]
    if span_id is None:
        raise Refusal("NO_ROOT_SPAN", "The trace has no root span yet.", {"trace_id": wanted.trace_id})
    row = connection.one("SELECT input, output FROM spans WHERE trace_key = ? AND id = ?", trace[0], span_id)
    if row is None:
        raise not_found("span", span_id)
    given, output = row
    if given is None and output is None and span_id == trace[3]:
        # As the trace shows it: a root without texts has those of its first model call.
        _, given, output = first_call(connection, trace[0]) or (None, None, None)
    if given is None or given == "null":
        raise Refusal(
            "INVALID_REQUEST",
            "The span has no input, and an item needs one.",
            {"trace_id": wanted.trace_id, "span_id": span_id},
        )
    source = {"source_trace_id": wanted.trace_id, "source_span_id": span_id}
    # The rest is kept as it came: numbers of any length, and their spelling.
    kept: dict[str, msgspec.Raw] = {}
    if wanted.metadata is not None:
        kept = msgspec.json.decode(wanted.metadata, type=dict[str, msgspec.Raw])
    item = ItemText(
        input=given,
        expected_output=output if wanted.use_output else wanted.expected_output,
        metadata=encode_text({**kept, **source}),
    )
    return add_item(connection, dataset_id, item, scope=scope)
