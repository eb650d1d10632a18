"""Batches of spans on the writer's thread: checked beside what is stored, then written with their scores and jobs."""

from collections.abc import Sequence
from typing import NamedTuple

from evenhand.core.errors import Refusal
from evenhand.core.objects.traces import SpansAccepted
from evenhand.store import spans
from evenhand.store.arrivals import Batch
from evenhand.store.connection import Connection
from evenhand.store.inline import InlineResult, attach
from evenhand.store.projects import Scope, create_project, must_be_made
from evenhand.store.targets import Target
from evenhand.store.texts import Texts, add_texts


class Sender(NamedTuple):
    """Who sent spans, as far as the store cares."""

    scope: Scope
    """The only project that the sender may write to; None for all."""
    may_create: bool
    """Whether a project that does not exist is made."""


class SpanBatch(NamedTuple):
    """Checked spans with their inline scores."""

    sender: Sender
    spans: Batch
    trace_ids: list[str]
    """The traces, in the order they came."""
    scores: list[InlineResult]
    job_counts: list[int]
    """How many jobs were made, once the batch is stored."""


def store_spans(connection: Connection, sender: Sender, batch: Batch, *, resend: bool) -> spans.Ingested:
    """Check, then store: a batch that is refused has changed nothing, so batches need no savepoints, for which the
    embedded database would copy every page that it changes."""
    known = spans.look(connection, batch)
    missing = must_be_made(
        batch.project_id, known=known.project, scope=sender.scope, may_create=sender.may_create
    )
    checked = spans.check(connection, batch, known, resend=resend)
    if missing:
        create_project(connection, project_id=batch.project_id, name=batch.project_id)
    return spans.write(connection, checked)


def store_texts(connection: Connection, sender: Sender, texts: Texts) -> list[str]:
    """Store texts that came as log records; why some were left out."""
    known = connection.one("SELECT 1 FROM projects WHERE id = ?", texts.project_id) is not None
    if must_be_made(texts.project_id, known=known, scope=sender.scope, may_create=sender.may_create):
        create_project(connection, project_id=texts.project_id, name=texts.project_id)
    return add_texts(connection, texts)


def store_batches(connection: Connection, batches: Sequence[SpanBatch]) -> list[SpansAccepted | Exception]:
    """Store batches of the native ingest; one that is refused is its own error."""
    return [_store_batch(connection, batch) for batch in batches]


def _store_batch(connection: Connection, batch: SpanBatch) -> SpansAccepted | Exception:
    project_id, records = batch.spans.project_id, batch.spans.spans
    try:
        result = store_spans(connection, batch.sender, batch.spans, resend=False)
    except Refusal as error:
        return error

    def target(index: int) -> Target:
        span = records[index]
        return Target(type="span", id=span.id, project_id=project_id, trace_key=result.keys[span.trace_id])

    skipped, jobs = attach(connection, batch.scores, target)
    batch.job_counts.append(len(jobs) + result.job_count)
    return SpansAccepted(accepted=len(records), trace_ids=batch.trace_ids, skipped=skipped, jobs=jobs)


def faults_of(result: spans.Ingested) -> list[str]:
    """Why spans were left out, for people."""
    return [f"span '{fault.span.id}': {fault.code}: {fault.reason}" for fault in result.faults]


def store_export(connection: Connection, sender: Sender, batch: Batch) -> list[str]:
    """Store a batch of an exporter; why spans were left out."""
    return faults_of(store_spans(connection, sender, batch, resend=True))


def store_exports(
    connection: Connection, exports: Sequence[tuple[Sender, Batch]]
) -> list[spans.Ingested | Exception]:
    """Store batches of exporters, which may send a span again."""
    results: list[spans.Ingested | Exception] = []
    for sender, batch in exports:
        try:
            results.append(store_spans(connection, sender, batch, resend=True))
        except Refusal as error:
            results.append(error)
    return results
