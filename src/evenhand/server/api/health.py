"""Is it up, is it ready, how busy is it, and what can it do."""

from msgspec import Struct

from evenhand.core.errors import Refusal, StoreError
from evenhand.core.spans import microseconds
from evenhand.core.timestamps import now, parse_instant
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, json_answer
from evenhand.server.http.reference import icon, style_sheet
from evenhand.server.http.routes import Route
from evenhand.server.http.telemetry import METRICS_TYPE, JobFigures, render, render_jobs
from evenhand.store.jobs import open_jobs


class Health(Struct, frozen=True, kw_only=True):
    """The answer to a probe."""

    status: str
    """`ok`."""


async def healthz(call: Call) -> Answer:
    return json_answer(Health(status="ok"))


async def readyz(call: Call) -> Answer:
    if call.service.stopping:
        raise Refusal("UNAVAILABLE", "The server is stopping.")
    try:
        await call.read(lambda connection: connection.one("SELECT 1"))
    except StoreError:
        raise Refusal("UNAVAILABLE", "The database gives no answer.") from None
    return json_answer(Health(status="ok"))


async def metrics(call: Call) -> Answer:
    service = call.service
    page = render(service.telemetry, service.database.writer, service.budget.used)
    try:
        waiting = await call.read(open_jobs)
    except StoreError:
        pass  # the rest is of use even while the database gives no answer, or just then
    else:
        now_us = microseconds(now())
        ages = [
            (status, count, max(now_us - microseconds(parse_instant(oldest)), 0) / 1e6)
            for status, count, oldest in waiting
        ]
        page += render_jobs(JobFigures(ages, service.jobs.ended, service.jobs.models.usages()))
    return Answer(200, page, content_type=METRICS_TYPE)


async def openapi(call: Call) -> Answer:
    return Answer(200, call.service.documents["openapi"]())


async def reference(call: Call) -> Answer:
    return Answer(200, call.service.documents["reference"](), content_type=b"text/html; charset=utf-8")


async def style(call: Call) -> Answer:
    return Answer(200, style_sheet(), content_type=b"text/css; charset=utf-8")


async def picture(call: Call) -> Answer:
    return Answer(200, icon(), content_type=b"image/svg+xml")


ROUTES = (
    Route(
        operation="get_health",
        method="GET",
        path="/healthz",
        handler=healthz,
        audience="public",
        response=Health,
        summary="The process is up",
        tag="Server",
    ),
    Route(
        operation="get_readiness",
        method="GET",
        path="/readyz",
        handler=readyz,
        audience="public",
        response=Health,
        errors=("UNAVAILABLE",),
        summary="Requests will be answered",
        tag="Server",
    ),
    Route(
        operation="get_metrics",
        method="GET",
        path="/metrics",
        handler=metrics,
        audience="public",
        summary="Prometheus metrics",
        tag="Server",
    ),
    Route(
        operation="get_openapi_document",
        method="GET",
        path="/openapi.json",
        handler=openapi,
        audience="public",
        summary="This interface as OpenAPI 3.1",
        tag="Server",
    ),
    Route(
        operation="get_reference_page",
        method="GET",
        path="/docs",
        handler=reference,
        audience="public",
        summary="This interface as a page",
        tag="Server",
    ),
    Route(
        operation="get_reference_style",
        method="GET",
        path="/docs/style.css",
        handler=style,
        audience="public",
        summary="The page's style",
        tag="Server",
    ),
    Route(
        method="GET",
        path="/docs/icon.svg",
        handler=picture,
        audience="public",
        summary="The pages' icon",
        tag="Server",
    ),
)
