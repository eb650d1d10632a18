"""Exports that stream: one JSON object to a line, or a Parquet file."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from evenhand.core.objects.datasets import DatasetItem
from evenhand.core.objects.experiments import Run
from evenhand.core.objects.scores import ListedScore
from evenhand.core.objects.traces import Trace
from evenhand.server.api.traces import span_pages, trace_pieces
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, StreamingAnswer
from evenhand.server.http.fields import instant_text, just_after
from evenhand.server.http.routes import Route
from evenhand.server.streams import NDJSON, PARQUET, ndjson_answer, ndjson_stream, read_pages
from evenhand.store.connection import Connection
from evenhand.store.datasets import get_dataset, list_items
from evenhand.store.experiments import get_experiment
from evenhand.store.pages import LAST
from evenhand.store.runs import RunFilter, list_runs
from evenhand.store.scores import ScoreFilter, list_project_scores
from evenhand.store.traces import TraceFilter, get_trace, list_traces

T = TypeVar("T")
ROWS = 200
PIECE = 256 * 1024


class ExportQuery(Struct, frozen=True, kw_only=True):
    """How the export looks."""

    format: Literal["ndjson", "parquet"] = "ndjson"
    """One JSON object to a line, or Parquet (nested values as JSON text; a trace with very many spans has several rows;
    needs the extra `parquet`)."""


class ItemExport(ExportQuery, frozen=True, kw_only=True):
    """Which items."""

    version: int | None = None
    """Those of this version of the dataset; the newest when absent."""


class ScoreExport(ExportQuery, frozen=True, kw_only=True):
    """Which scores."""

    project_id: str | None = None
    """The project; required."""
    scorer_name: str | None = None
    """Only this scorer's."""
    stored_after: str | None = field(default=None, name="after")
    """Stored after this instant (ISO 8601)."""
    stored_before: str | None = field(default=None, name="before")
    """Stored before this instant (ISO 8601)."""


class TraceExport(ExportQuery, frozen=True, kw_only=True):
    """Which traces."""

    project_id: str | None = None
    """The project; required."""


Pages = AsyncGenerator[list[T], None]


async def items(call: Call, query: ItemExport) -> Answer:
    dataset_id = call.params["dataset_id"]
    await call.read(lambda connection: get_dataset(connection, dataset_id, scope=call.scope))

    def read(connection: Connection, after: str | None) -> list[DatasetItem]:
        return list_items(
            connection, dataset_id, scope=call.scope, after=after, limit=ROWS, version=query.version
        )

    # A version that is not there is told before the first line.
    await call.read(
        lambda connection: list_items(
            connection, dataset_id, scope=call.scope, after=None, limit=1, version=query.version
        )
    )
    return _answer(query, read_pages(call, read, lambda item: item.id), DatasetItem, f"items-{dataset_id}")


async def runs(call: Call, query: ExportQuery) -> Answer:
    experiment_id = call.params["experiment_id"]
    await call.read(lambda connection: get_experiment(connection, experiment_id, scope=call.scope))

    def read(connection: Connection, after: str | None) -> list[Run]:
        rows = list_runs(
            connection,
            experiment_id,
            scope=call.scope,
            wanted=RunFilter(),
            after=None if after is None else (after,),
            limit=ROWS,
        )
        return [run for run, _ in rows]

    return _answer(query, read_pages(call, read, lambda run: run.id), Run, f"runs-{experiment_id}")


async def scores(call: Call, query: ScoreExport) -> Answer:
    project_id = call.listed_project(query.project_id)
    narrow = ScoreFilter(
        scorer_name=query.scorer_name or None,
        since="" if query.stored_after is None else just_after("after", query.stored_after),
        until=LAST if query.stored_before is None else instant_text("before", query.stored_before),
    )

    def read(connection: Connection, after: tuple[str, str] | None) -> list[ListedScore]:
        return list_project_scores(connection, project_id=project_id, narrow=narrow, before=after, limit=ROWS)

    pages = read_pages(call, read, lambda score: (score.created_at, score.id))
    return _answer(query, pages, ListedScore, f"scores-{project_id}")


async def traces(call: Call, query: TraceExport) -> Answer:
    project_id = call.listed_project(query.project_id)

    def read(connection: Connection, after: str | None) -> list[tuple[str, Trace]]:
        # One by one: a trace may have ten thousand spans.
        rows = list_traces(connection, project_id=project_id, narrow=TraceFilter(), before=after, limit=1)
        return [(key, get_trace(connection, row.id, scope=project_id)) for key, row in rows]

    async def parts() -> AsyncGenerator[list[Trace], None]:
        """Traces; of a long one a few spans at a time, as a row of their own."""
        async with aclosing(read_pages(call, read, lambda pair: pair[0])) as pages:
            async for pairs in pages:
                for _, trace in pairs:
                    async with aclosing(span_pages(call, trace)) as more:
                        async for spans in more:
                            yield [replace(trace, spans=spans)]

    async def lines() -> AsyncGenerator[bytes, None]:
        async with aclosing(read_pages(call, read, lambda pair: pair[0])) as pages:
            async for pairs in pages:
                for _, trace in pairs:
                    async with aclosing(trace_pieces(call, trace)) as pieces:
                        async for piece in pieces:
                            yield piece
                    yield b"\n"

    name = f"traces-{project_id}"
    if query.format == "ndjson":
        return ndjson_stream(lines(), file_name=f"{name}.jsonl")
    return _answer(query, parts(), Trace, name)


def _answer(query: ExportQuery, pages: Pages[Any], kind: type[Struct], name: str) -> Answer:
    if query.format == "ndjson":
        return ndjson_answer(pages, file_name=f"{name}.jsonl")
    from evenhand.server.parquet_files import ParquetFile  # pyarrow is an extra

    return StreamingAnswer(_parquet(pages, partial(ParquetFile, kind)), content_type=PARQUET.encode())


async def _parquet(pages: Pages[Any], make: Callable[..., Any]) -> AsyncGenerator[bytes, None]:
    """The file is made on disk, because its table of contents comes last, and then sent in pieces."""
    with tempfile.TemporaryFile(prefix="evenhand-export-") as spool:
        async with aclosing(pages):
            file = make(spool)
            async for rows in pages:
                await asyncio.to_thread(file.add, rows)
            await asyncio.to_thread(file.close)
        spool.seek(0)
        while piece := await asyncio.to_thread(spool.read, PIECE):
            yield piece


def _route(
    operation: str, path: str, handler: Any, query: Any, summary: str, errors: tuple[str, ...]
) -> Route:
    return Route(
        operation=operation,
        method="GET",
        path=path,
        handler=handler,
        audience="token:read",
        query=query,
        stream_types=(NDJSON, PARQUET),
        errors=(*errors, "NOT_INSTALLED"),
        summary=summary,
        tag="Exports",
    )


ROUTES = (
    _route(
        "export_dataset_items",
        "/v1/exports/datasets/{dataset_id}/items",
        items,
        ItemExport,
        "Export a dataset's items, of any version",
        ("NOT_FOUND",),
    ),
    _route(
        "export_runs",
        "/v1/exports/experiments/{experiment_id}/runs",
        runs,
        ExportQuery,
        "Export an experiment's runs with their scores",
        ("NOT_FOUND",),
    ),
    _route(
        "export_scores",
        "/v1/exports/scores",
        scores,
        ScoreExport,
        "Export a project's scores, newest first",
        ("PROJECT_REQUIRED", "NOT_FOUND"),
    ),
    _route(
        "export_traces",
        "/v1/exports/traces",
        traces,
        TraceExport,
        "Export a project's traces with their spans, newest first",
        ("PROJECT_REQUIRED", "NOT_FOUND"),
    ),
)
