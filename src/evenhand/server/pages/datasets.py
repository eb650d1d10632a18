"""Datasets: the list, one dataset with its items and versions, adding items by hand and from a file."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from evenhand.core.errors import InputError, Refusal
from evenhand.core.jsontext import decode, encode_text
from evenhand.core.objects.datasets import (
    Dataset,
    DatasetItem,
    DatasetVersion,
    ImportReport,
    ItemChange,
    SkippedLine,
)
from evenhand.core.timestamps import now
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.forms import Upload as ChosenFile
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.ingest.upload import Upload
from evenhand.server.pages.frame import (
    Crumb,
    ListPage,
    ListQuery,
    NoFields,
    PageContext,
    age_of,
    form_route,
    here_of,
    own_project,
    page_route,
    person_of,
    redirect,
    respond,
)
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import project_path
from evenhand.server.pages.values import one_line, readable
from evenhand.store import datasets as store
from evenhand.store.connection import Connection
from evenhand.store.dataset_versions import list_changes, list_versions
from evenhand.store.datasets import ItemText
from evenhand.store.pages import has_more

LISTING = "datasets page"
ITEMS = "dataset items page"
PAGE_ROWS = 50
SHOWN_VERSIONS = 20
SHOWN_CHANGES = 100
SHOWN_SKIPPED = 20
SHORT = 120
"""Characters of an input before "Show more"."""


class DatasetsQuery(ListQuery, frozen=True, kw_only=True):
    """Which datasets."""


class DatasetsPage(ListPage, frozen=True, kw_only=True):
    """A page of the list."""

    template: ClassVar[str] = "datasets.html"
    section: ClassVar[str] = "datasets"
    has_views: ClassVar[bool] = True

    create: str


async def datasets(call: Call, query: DatasetsQuery) -> Answer:
    project_id, moment = call.params["project_id"], now()
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    here = here_of(call, query)

    def work(connection: Connection) -> DatasetsPage:
        found = store.list_datasets(connection, project_id=project_id, before=start, limit=PAGE_ROWS + 1)
        shown = found[:PAGE_ROWS]
        return DatasetsPage(
            title="Datasets",
            here=here,
            grid=_list_grid(shown, moment, project_id),
            create=project_path(project_id, "datasets"),
            next=here(cursor=make_cursor(LISTING, [shown[-1].id])) if has_more(found, PAGE_ROWS) else "",
            first=here() if query.cursor else "",
        )

    return await respond(call, work, query)


def _list_grid(found: Sequence[Dataset], moment: datetime, project_id: str) -> Grid:
    return Grid(
        caption="Datasets, newest first",
        columns=[
            Column(name="Name", kind="cut"),
            Column(name="Items", kind="num"),
            Column(name="Version", kind="num"),
            Column(name="Created", kind="num", order="descending"),
            Column(name="Updated", kind="num"),
        ],
        rows=[
            Row(
                href=project_path(project_id, "datasets", one.id),
                cells=[
                    Cell(text=one.name),
                    Cell(text=f"{one.item_count:,}", value=one.item_count),
                    Cell(text=f"v{one.version}", value=one.version),
                    Cell(text=age_of(one.created_at, moment), instant=one.created_at, value=one.created_at),
                    Cell(text=age_of(one.updated_at, moment), instant=one.updated_at, value=one.updated_at),
                ],
            )
            for one in found
        ],
    )


class NewDataset(Struct, frozen=True, kw_only=True):
    """A dataset to be made."""

    name: str = ""
    description: str = ""


async def create(call: Call, form: NewDataset) -> Answer:
    project_id, name = own_project(call), form.name.strip()
    if not 1 <= len(name) <= 250:
        raise Refusal(
            "INVALID_REQUEST", "A dataset needs a name of at most 250 characters.", {"field": "name"}
        )
    made = await call.service.database.write(
        partial(
            store.create_dataset,
            project_id=project_id,
            name=name,
            description=form.description.strip()[:10_000] or None,
        )
    )
    return await redirect(call, project_path(project_id, "datasets", made.id), f"Dataset '{name}' is there.")


class DatasetQuery(ListQuery, frozen=True, kw_only=True):
    """What is shown of a dataset."""

    version: Annotated[int, Meta(ge=1)] | None = None
    """The items of an earlier version."""
    since: Annotated[int, Meta(ge=1)] | None = None
    """What changed since this version."""
    add: bool = False
    """The form for a new item is open."""


class Item(Struct, frozen=True, kw_only=True):
    """A row of the items."""

    id: str
    input: str
    rest: str
    """The whole input, where it was cut."""
    expected: str
    source: str
    trace: str
    created_at: str
    age: str
    history: str
    remove: str


class DatasetPage(ListPage, frozen=True, kw_only=True):
    """One dataset."""

    template: ClassVar[str] = "dataset.html"
    section: ClassVar[str] = "datasets"
    has_views: ClassVar[bool] = True

    dataset: Dataset
    items: Sequence[Item]
    versions: Sequence[DatasetVersion]
    changes: Sequence[tuple[str, str]]
    """What changed since another version: `+` or `−`, and the input."""
    query: DatasetQuery


async def dataset(call: Call, query: DatasetQuery) -> Answer:
    project_id, dataset_id, moment = call.params["project_id"], call.params["dataset_id"], now()
    start = read_cursor(query.cursor, ITEMS, 1)[0] if query.cursor else None
    here = here_of(call, query)

    def work(connection: Connection) -> DatasetPage:
        found = store.get_dataset(connection, dataset_id, scope=project_id)
        items = store.list_items(
            connection,
            dataset_id,
            scope=project_id,
            after=start,
            limit=PAGE_ROWS + 1,
            version=query.version,
        )
        shown = items[:PAGE_ROWS]
        changes: list[ItemChange] = []
        if query.since is not None:
            listed = list_changes(
                connection,
                dataset_id,
                scope=project_id,
                start=query.since,
                end=query.version,
                after=None,
                limit=SHOWN_CHANGES,
            )
            changes = [change for _, change in listed]
        return DatasetPage(
            title=found.name,
            here=here,
            crumbs=(Crumb("Datasets", project_path(project_id, "datasets")),),
            dataset=found,
            items=[_item(one, moment, project_id) for one in shown],
            grid=_items_grid(shown),
            versions=list_versions(
                connection, dataset_id, scope=project_id, before=None, limit=SHOWN_VERSIONS
            ),
            changes=[("+" if one.change == "added" else "−", one_line(one.item.input)) for one in changes],
            query=query,
            next=here(cursor=make_cursor(ITEMS, [shown[-1].id])) if has_more(items, PAGE_ROWS) else "",
            first=here() if query.cursor else "",
        )

    return await respond(call, work, query)


def _item(one: DatasetItem, moment: datetime, project_id: str) -> Item:
    metadata = msgspec.json.decode(bytes(one.metadata)) if one.metadata is not None else {}
    source = metadata if isinstance(metadata, dict) else {}
    trace_id = source.get("source_trace_id")
    text, base = one_line(one.input, SHORT), project_path(project_id, "datasets", one.dataset_id)
    return Item(
        id=one.id,
        input=text,
        rest=readable(one.input).text[:20_000] if text.endswith("…") else "",
        expected=one_line(one.expected_output, SHORT) if one.expected_output is not None else "—",
        source="trace" if isinstance(trace_id, str) else "imported or added",
        trace=project_path(project_id, "traces", trace_id) if isinstance(trace_id, str) else "",
        created_at=one.created_at,
        age=age_of(one.created_at, moment),
        history=project_path(project_id, "items", one.id),
        remove=f"{base}/items/{one.id}/remove",
    )


def _items_grid(items: Sequence[DatasetItem]) -> Grid:
    """The items as they are exported, whole."""
    return Grid(
        caption="Items",
        columns=[Column(name=name) for name in ("id", "input", "expected_output", "metadata", "created_at")],
        rows=[
            Row(
                cells=[
                    Cell(text=one.id),
                    Cell(text=bytes(one.input).decode()),
                    Cell(text=bytes(one.expected_output).decode() if one.expected_output is not None else ""),
                    Cell(text=bytes(one.metadata).decode() if one.metadata is not None else ""),
                    Cell(text=one.created_at),
                ]
            )
            for one in items
        ],
    )


class NewItem(Struct, frozen=True, kw_only=True):
    """An item typed into the page."""

    input: str = ""
    expected: str = ""
    metadata: str = ""
    as_json: str = ""
    """Not empty: input and expected output are JSON."""


def _text_of(value: str, name: str, *, as_json: bool) -> str:
    """A field as the JSON text that is stored."""
    if not as_json:
        return encode_text(value)
    try:
        decode(value.encode())
    except InputError as error:
        raise Refusal("INVALID_REQUEST", f"'{name}' is not JSON: {error}", {"field": name}) from None
    return value


async def add_item(call: Call, form: NewItem) -> Answer:
    project_id, dataset_id = own_project(call), call.params["dataset_id"]
    if not form.input.strip():
        raise Refusal("INVALID_REQUEST", "An item needs an input.", {"field": "input"})
    metadata = None
    if form.metadata.strip():
        metadata = _text_of(form.metadata.strip(), "metadata", as_json=True)
        if not metadata.startswith("{"):
            raise Refusal("INVALID_REQUEST", "'metadata' must be a JSON object.", {"field": "metadata"})
    item = ItemText(
        input=_text_of(form.input, "input", as_json=bool(form.as_json)),
        expected_output=_text_of(form.expected, "expected", as_json=bool(form.as_json))
        if form.expected.strip()
        else None,
        metadata=metadata,
    )
    if item.input.strip() == "null":
        raise Refusal("INVALID_REQUEST", "An item's input cannot be null.", {"field": "input"})
    await call.service.database.write(
        partial(store.add_item, dataset_id=dataset_id, item=item, scope=project_id)
    )
    return await redirect(call, project_path(project_id, "datasets", dataset_id), "The item was added.")


async def remove_item(call: Call, form: NoFields) -> Answer:
    project_id, dataset_id = own_project(call), call.params["dataset_id"]
    await call.service.database.write(
        partial(
            store.remove_item,
            dataset_id=dataset_id,
            item_id=call.params["item_id"],
            scope=project_id,
            actor=person_of(call.access),
        )
    )
    return await redirect(
        call,
        project_path(project_id, "datasets", dataset_id),
        "The item was removed; earlier versions keep it.",
    )


class ImportForm(Struct, frozen=True, kw_only=True):
    """A file of JSON lines."""

    file: ChosenFile | None = None
    """Its content."""


class ImportedPage(PageContext, frozen=True, kw_only=True):
    """What an import did, with the lines that were left out."""

    template: ClassVar[str] = "imported.html"
    section: ClassVar[str] = "datasets"

    dataset: Dataset
    report: ImportReport
    skipped: Sequence[SkippedLine]


async def import_file(call: Call, form: ImportForm) -> Answer:
    project_id, dataset_id = own_project(call), call.params["dataset_id"]
    content = b"" if form.file is None else form.file.content
    if not content.strip():
        raise Refusal("INVALID_REQUEST", "Choose a file with a JSON object per line.", {"field": "file"})
    limits = call.service.config.limits
    with Upload(limits.import_line_bytes, limits.import_lines) as upload:
        await asyncio.to_thread(upload.feed, content)
        await asyncio.to_thread(upload.finish)
        report = await call.service.database.write(
            partial(
                store.import_items,
                dataset_id=dataset_id,
                items=upload.items(),
                report=upload.report,
                scope=project_id,
            )
        )
    here = here_of(call)

    def work(connection: Connection) -> ImportedPage:
        found = store.get_dataset(connection, dataset_id, scope=project_id)
        return ImportedPage(
            title="Import",
            here=here,
            crumbs=(
                Crumb("Datasets", project_path(project_id, "datasets")),
                Crumb(found.name, project_path(project_id, "datasets", dataset_id)),
            ),
            dataset=found,
            report=report,
            skipped=report.skipped[:SHOWN_SKIPPED],
        )

    return await respond(call, work)


ROUTES = (
    page_route(
        "/projects/{project_id}/datasets", datasets, query=DatasetsQuery, summary="The datasets of a project"
    ),
    form_route("/projects/{project_id}/datasets", create, NewDataset, summary="Make a dataset"),
    page_route(
        "/projects/{project_id}/datasets/{dataset_id}", dataset, query=DatasetQuery, summary="One dataset"
    ),
    form_route(
        "/projects/{project_id}/datasets/{dataset_id}/items", add_item, NewItem, summary="Add an item"
    ),
    form_route(
        "/projects/{project_id}/datasets/{dataset_id}/items/{item_id}/remove",
        remove_item,
        NoFields,
        summary="Take an item out of a dataset",
    ),
    form_route(
        "/projects/{project_id}/datasets/{dataset_id}/import",
        import_file,
        ImportForm,
        summary="Import JSON lines into a dataset",
    ),
)
