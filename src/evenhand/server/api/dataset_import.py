"""Importing JSON lines into a dataset."""

import asyncio
import hashlib

from evenhand.core.objects.datasets import ImportReport
from evenhand.server.answers import Answer
from evenhand.server.bodies import pieces
from evenhand.server.call import Call
from evenhand.server.importing import Upload
from evenhand.server.routes import Route
from evenhand.store.connection import Connection
from evenhand.store.datasets import add_items, get_dataset


async def import_items(call: Call) -> Answer:
    dataset_id, limits = call.params["dataset_id"], call.service.config.limits
    if call.idempotency_key is None:
        # Before the body is read; a repeated request gets its first answer, whatever became of the dataset.
        await call.read(lambda connection: get_dataset(connection, dataset_id, scope=call.scope))
    digest = hashlib.sha256()
    with Upload(limits.import_line_bytes) as upload:
        async for piece in pieces(call.receive, call.headers, limits.import_bytes):
            digest.update(piece)
            await asyncio.to_thread(upload.feed, piece)
        await asyncio.to_thread(upload.finish)
        call.take_fingerprint(digest.digest())

        def work(connection: Connection) -> ImportReport:
            add_items(connection, dataset_id, upload.items(), scope=call.scope)
            return upload.report()

        return await call.write(work)


ROUTES = (
    Route(
        method="POST",
        path="/v1/datasets/{dataset_id}/items/import",
        handler=import_items,
        role="write",
        streams=True,
        media_types=("application/x-ndjson", "application/jsonl"),
        response=ImportReport,
        errors=("NOT_FOUND",),
        body_limit="import",
        summary="Import JSON lines: good lines become items, bad ones are reported",
        tag="Datasets",
    ),
)
