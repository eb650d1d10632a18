"""Importing JSON lines into a dataset."""

import asyncio
import hashlib
from functools import partial

from evenhand.core.objects.datasets import ImportReport
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.bodies import body_chunks
from evenhand.server.http.routes import Route
from evenhand.server.ingest.upload import Upload
from evenhand.store import datasets as store


async def import_items(call: Call) -> Answer:
    dataset_id, limits = call.params["dataset_id"], call.service.config.limits
    if call.idempotency_key is None:
        # Before the body is read; a repeated request gets its first answer, whatever became of the dataset.
        await call.read(lambda connection: store.get_dataset(connection, dataset_id, scope=call.scope))
    digest = hashlib.sha256()
    with Upload(limits.import_line_bytes, limits.import_lines) as upload:
        async for piece in body_chunks(call.receive, call.headers, limits.import_bytes):
            digest.update(piece)
            await asyncio.to_thread(upload.feed, piece)
        await asyncio.to_thread(upload.finish)
        call.take_fingerprint(digest.digest())
        return await call.write(
            partial(
                store.import_items,
                dataset_id=dataset_id,
                items=upload.items(),
                report=upload.report,
                scope=call.scope,
            )
        )


ROUTES = (
    Route(
        operation="import_dataset_items",
        method="POST",
        path="/v1/datasets/{dataset_id}/items/import",
        handler=import_items,
        audience="token:write",
        reads_body=True,
        body_text="One item to a line, each a JSON object as `create_dataset_item` takes it.",
        media_types=("application/x-ndjson", "application/jsonl"),
        response=ImportReport,
        errors=("NOT_FOUND",),
        body_limit="import",
        summary="Import JSON lines: good lines become items, bad ones are reported",
        tag="Datasets",
    ),
)
