"""Saved views: a name for the filters, order and columns of a list, for everybody in the project."""

from functools import partial

from msgspec import Struct

from evenhand.core.errors import Refusal
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.pages.frame import NoFields, form_route, person_of, redirect
from evenhand.server.pages.links import project_path
from evenhand.store import views as store

MAX_NAME = 80
MAX_QUERY = 2_000


class ViewForm(Struct, frozen=True, kw_only=True):
    """The state of a page, and what to call it."""

    page: str
    """The page's path within the project."""
    name: str
    query: str = ""


def view_address(project_id: str, page: str, query: str) -> str:
    """Where a view is shown."""
    path = project_path(project_id, *page.split("/"))
    return f"{path}?{query}" if query else path


async def save(call: Call, form: ViewForm) -> Answer:
    project_id, name = call.params["project_id"], form.name.strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise Refusal("INVALID_REQUEST", f"A view's name has 1 to {MAX_NAME} characters.")
    if len(form.query) > MAX_QUERY or not form.query.isascii() or not form.query.isprintable():
        raise Refusal("INVALID_REQUEST", f"A view has at most {MAX_QUERY:,} characters of filters.")
    if not form.page or len(form.page) > MAX_QUERY or {"", ".", ".."} & set(form.page.split("/")):
        raise Refusal("INVALID_REQUEST", "Say which page the view is of.")
    view = await call.service.database.write(
        partial(
            store.save_view,
            project_id=project_id,
            page=form.page,
            name=name,
            query=form.query,
            made_by=person_of(call.access),
        )
    )
    return await redirect(call, view_address(project_id, view.page, view.query), f"Saved as “{view.name}”.")


async def delete(call: Call, form: NoFields) -> Answer:
    project_id = call.params["project_id"]
    gone = await call.service.database.write(
        partial(store.delete_view, view_id=call.params["view_id"], project_id=project_id)
    )
    return await redirect(
        call, view_address(project_id, gone.page, ""), f"The view “{gone.name}” was deleted."
    )


_VIEWS = "/projects/{project_id}/views"
ROUTES = (
    form_route(_VIEWS, save, ViewForm, summary="Save a view of a page"),
    form_route(f"{_VIEWS}/{{view_id}}/delete", delete, NoFields, summary="Delete a saved view"),
)
