"""Datasets and their items."""

from functools import partial

from msgspec import Struct

from evenhand.core.objects.datasets import Dataset, DatasetItem, Deleted
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, Text, trimmed
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.server.ingest.items import ItemCreate, item_text
from evenhand.store import datasets as store
from evenhand.store.projects import in_project

LISTING = "datasets"
ITEMS = "dataset_items"


class DatasetCreate(Struct, frozen=True, kw_only=True):
    """A dataset to be made."""

    project_id: Name
    """The project that it will belong to."""
    name: Name
    """Unique in its project; white space around it is dropped."""
    description: Text | None = None
    """For people."""


class ProjectQuery(Paging, frozen=True, kw_only=True):
    """What lists of a project take."""

    project_id: str | None = None
    """The project; required."""


class ItemQuery(Paging, frozen=True, kw_only=True):
    """Which items."""

    version: int | None = None
    """Those of this version of the dataset; the newest when absent."""


async def create(call: Call, body: DatasetCreate) -> Answer:
    name = trimmed(body.name, "name")
    create_dataset = partial(
        store.create_dataset, project_id=body.project_id, name=name, description=body.description
    )
    return await call.write(partial(in_project, owner=call.owner(body.project_id), work=create_dataset))


async def list_all(call: Call, query: ProjectQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.read(
        lambda connection: store.list_datasets(
            connection, project_id=project_id, before=after[0] if after else None, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, LISTING, lambda dataset: (dataset.id,)))


async def get(call: Call) -> Answer:
    dataset_id = call.params["dataset_id"]
    return json_answer(
        await call.read(lambda connection: store.get_dataset(connection, dataset_id, scope=call.scope))
    )


async def delete(call: Call) -> Answer:
    dataset_id = call.params["dataset_id"]
    return await call.write(
        partial(store.delete_dataset, dataset_id=dataset_id, scope=call.scope, actor=call.access.token_id)
    )


async def add_item(call: Call, body: ItemCreate) -> Answer:
    dataset_id, item = call.params["dataset_id"], item_text(body)
    return await call.write(partial(store.add_item, dataset_id=dataset_id, item=item, scope=call.scope))


async def list_items(call: Call, query: ItemQuery) -> Answer:
    dataset_id = call.params["dataset_id"]
    limit, after = query.checked_limit(), query.after(ITEMS)
    rows = await call.read(
        lambda connection: store.list_items(
            connection,
            dataset_id,
            scope=call.scope,
            after=after[0] if after else None,
            limit=limit + 1,
            version=query.version,
        )
    )
    return json_answer(page_of(rows, limit, ITEMS, lambda item: (item.id,)))


ROUTES = (
    Route(
        operation="create_dataset",
        method="POST",
        path="/v1/datasets",
        handler=create,
        audience="token:write",
        request=DatasetCreate,
        response=Dataset,
        status=201,
        errors=("NOT_FOUND", "CONFLICT"),
        summary="Make a dataset",
        tag="Datasets",
    ),
    Route(
        operation="list_datasets",
        method="GET",
        path="/v1/datasets",
        handler=list_all,
        audience="token:read",
        query=ProjectQuery,
        response=Page[Dataset],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="List a project's datasets, newest first",
        tag="Datasets",
    ),
    Route(
        operation="get_dataset",
        method="GET",
        path="/v1/datasets/{dataset_id}",
        handler=get,
        audience="token:read",
        response=Dataset,
        errors=("NOT_FOUND",),
        summary="Read a dataset",
        tag="Datasets",
    ),
    Route(
        operation="delete_dataset",
        method="DELETE",
        path="/v1/datasets/{dataset_id}",
        handler=delete,
        audience="token:write",
        response=Deleted,
        errors=("NOT_FOUND",),
        summary="Delete a dataset and its items; experiments keep their runs",
        tag="Datasets",
    ),
    Route(
        operation="create_dataset_item",
        method="POST",
        path="/v1/datasets/{dataset_id}/items",
        handler=add_item,
        audience="token:write",
        request=ItemCreate,
        response=DatasetItem,
        status=201,
        errors=("NOT_FOUND",),
        summary="Add an item",
        tag="Datasets",
    ),
    Route(
        operation="list_dataset_items",
        method="GET",
        path="/v1/datasets/{dataset_id}/items",
        handler=list_items,
        audience="token:read",
        query=ItemQuery,
        response=Page[DatasetItem],
        errors=("NOT_FOUND",),
        summary="List a dataset's items, of any version, in the order they were added",
        tag="Datasets",
    ),
)
