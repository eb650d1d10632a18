"""Who may call each endpoint: every row says so, and every row is listed here."""

import http.client
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.service import ADMIN, ServiceUnderTest, running_service

from evenhand.core.objects.projects import Role
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, json_answer
from evenhand.server.http.auth import LOGIN_LINK, Access
from evenhand.server.http.routes import Route
from evenhand.server.table import all_routes

AUDIENCES = {
    ("GET", "/"): "session:review",
    ("GET", "/docs"): "public",
    ("GET", "/docs/icon.svg"): "public",
    ("GET", "/docs/style.css"): "public",
    ("GET", "/healthz"): "public",
    ("GET", "/login"): "public",
    ("HEAD", "/login"): "public",
    ("POST", "/login"): "public",
    ("POST", "/logout"): "session:review",
    ("GET", "/metrics"): "public",
    ("GET", "/openapi.json"): "public",
    ("GET", "/projects"): "session:review",
    ("GET", "/projects/{project_id}"): "session:review",
    ("GET", "/projects/{project_id}/queue"): "session:review",
    ("GET", "/projects/{project_id}/queue/{trace_id}"): "session:review",
    ("POST", "/projects/{project_id}/queue/{trace_id}"): "session:review",
    ("POST", "/projects/{project_id}/queue/{trace_id}/skip"): "session:review",
    ("GET", "/projects/{project_id}/agreement"): "session:read",
    ("GET", "/projects/{project_id}/scorers"): "session:read",
    ("GET", "/projects/{project_id}/scorers/{scorer_name}"): "session:read",
    ("GET", "/live"): "session:read",
    ("POST", "/projects/{project_id}/views"): "session:write",
    ("POST", "/projects/{project_id}/views/{view_id}/delete"): "session:write",
    ("GET", "/projects/{project_id}/ab"): "session:read",
    ("POST", "/projects/{project_id}/ab"): "session:write",
    ("GET", "/projects/{project_id}/ab/of"): "session:read",
    ("GET", "/projects/{project_id}/ab/{report_id}"): "session:read",
    ("POST", "/projects/{project_id}/ab/{report_id}/delete"): "session:write",
    ("GET", "/projects/{project_id}/ab/{control_id}/{treatment_id}"): "session:read",
    ("GET", "/projects/{project_id}/shares"): "session:write",
    ("POST", "/projects/{project_id}/shares"): "session:write",
    ("POST", "/projects/{project_id}/shares/{share_id}/revoke"): "session:write",
    ("GET", "/shared/{secret}"): "public",
    ("GET", "/projects/{project_id}/settings"): "session:admin",
    ("POST", "/projects/{project_id}/settings/people"): "session:admin",
    ("POST", "/projects/{project_id}/settings/project"): "session:admin",
    ("POST", "/projects/{project_id}/settings/people/{person_id}/link"): "session:admin",
    ("POST", "/projects/{project_id}/settings/people/{person_id}/shut-out"): "session:admin",
    ("POST", "/projects/{project_id}/settings/tokens"): "session:admin",
    ("POST", "/projects/{project_id}/settings/tokens/{token_id}/revoke"): "session:admin",
    ("GET", "/projects/{project_id}/queues"): "session:write",
    ("POST", "/projects/{project_id}/queues"): "session:write",
    ("GET", "/projects/{project_id}/queues/{queue_id}"): "session:review",
    ("GET", "/projects/{project_id}/queues/{queue_id}/add"): "session:write",
    ("POST", "/projects/{project_id}/queues/{queue_id}/add"): "session:write",
    ("POST", "/projects/{project_id}/queues/{queue_id}/close"): "session:write",
    ("POST", "/projects/{project_id}/queues/{queue_id}/reopen"): "session:write",
    ("POST", "/projects/{project_id}/queues/{queue_id}/items/{review_item_id}/review"): "session:review",
    ("POST", "/projects/{project_id}/queues/{queue_id}/items/{review_item_id}/skip"): "session:review",
    ("POST", "/projects/{project_id}/queues/{queue_id}/items/{review_item_id}/flag"): "session:review",
    ("POST", "/projects/{project_id}/queues/{queue_id}/items/{review_item_id}/adjudicate"): "session:write",
    ("POST", "/projects/{project_id}/queue/{trace_id}/annotations/{annotation_id}/item"): "session:review",
    ("GET", "/projects/{project_id}/dashboard"): "session:read",
    ("GET", "/projects/{project_id}/traces"): "session:read",
    ("POST", "/projects/{project_id}/traces/{trace_id}/queue"): "session:write",
    ("GET", "/projects/{project_id}/compare"): "session:read",
    ("GET", "/projects/{project_id}/compare/{base_id}/{other_id}"): "session:read",
    ("GET", "/projects/{project_id}/datasets"): "session:read",
    ("POST", "/projects/{project_id}/datasets"): "session:write",
    ("GET", "/projects/{project_id}/datasets/{dataset_id}"): "session:read",
    ("POST", "/projects/{project_id}/datasets/{dataset_id}/import"): "session:write",
    ("POST", "/projects/{project_id}/datasets/{dataset_id}/items"): "session:write",
    ("POST", "/projects/{project_id}/datasets/{dataset_id}/items/{item_id}/remove"): "session:write",
    ("GET", "/projects/{project_id}/experiments"): "session:read",
    ("GET", "/projects/{project_id}/experiments/{experiment_id}"): "session:read",
    ("POST", "/projects/{project_id}/experiments/{experiment_id}/complete"): "session:write",
    ("GET", "/projects/{project_id}/items/{item_id}"): "session:read",
    ("GET", "/projects/{project_id}/jobs"): "session:read",
    ("POST", "/projects/{project_id}/jobs/retry"): "session:write",
    ("POST", "/projects/{project_id}/jobs/{job_id}/retry"): "session:write",
    ("GET", "/projects/{project_id}/rules"): "session:read",
    ("POST", "/projects/{project_id}/rules"): "session:write",
    ("POST", "/projects/{project_id}/rules/{rule_id}"): "session:write",
    ("POST", "/projects/{project_id}/rules/{rule_id}/backfill"): "session:write",
    ("POST", "/projects/{project_id}/rules/{rule_id}/delete"): "session:write",
    ("GET", "/projects/{project_id}/sessions"): "session:read",
    ("GET", "/projects/{project_id}/sessions/{session_id}"): "session:read",
    ("GET", "/projects/{project_id}/traces/{trace_id}"): "session:read",
    ("POST", "/projects/{project_id}/traces/{trace_id}/annotations"): "session:write",
    ("POST", "/projects/{project_id}/traces/{trace_id}/annotations/{annotation_id}/item"): "session:write",
    ("POST", "/projects/{project_id}/traces/{trace_id}/delete"): "session:write",
    ("GET", "/projects/{project_id}/traces/{trace_id}/spans/{span_id}/{which}"): "session:read",
    ("GET", "/projects/{project_id}/search"): "session:read",
    ("GET", "/readyz"): "public",
    ("GET", "/static/{digest}/{name}"): "public",
    ("POST", "/theme"): "public",
    ("GET", "/v1/annotations"): "token:read",
    ("POST", "/v1/annotations"): "token:write",
    ("GET", "/v1/annotations/{annotation_id}"): "token:read",
    ("POST", "/v1/annotations/{annotation_id}/to-dataset-item"): "token:write",
    ("GET", "/v1/audit"): "token:admin",
    ("GET", "/v1/datasets"): "token:read",
    ("POST", "/v1/datasets"): "token:write",
    ("DELETE", "/v1/datasets/{dataset_id}"): "token:write",
    ("GET", "/v1/datasets/{dataset_id}"): "token:read",
    ("GET", "/v1/datasets/{dataset_id}/items"): "token:read",
    ("POST", "/v1/datasets/{dataset_id}/items"): "token:write",
    ("POST", "/v1/datasets/{dataset_id}/items/import"): "token:write",
    ("POST", "/v1/datasets/{dataset_id}/items/from-span"): "token:write",
    ("GET", "/v1/datasets/{dataset_id}/items/{item_id}"): "token:read",
    ("DELETE", "/v1/datasets/{dataset_id}/items/{item_id}"): "token:write",
    ("GET", "/v1/datasets/{dataset_id}/items/{item_id}/runs"): "token:read",
    ("GET", "/v1/datasets/{dataset_id}/versions"): "token:read",
    ("GET", "/v1/datasets/{dataset_id}/difference"): "token:read",
    ("GET", "/v1/experiments"): "token:read",
    ("POST", "/v1/experiments"): "token:write",
    ("GET", "/v1/experiments/{experiment_id}"): "token:read",
    ("GET", "/v1/experiments/{experiment_id}/compare/{other_id}"): "token:read",
    ("POST", "/v1/experiments/{experiment_id}/complete"): "token:write",
    ("GET", "/v1/experiments/{experiment_id}/runs"): "token:read",
    ("POST", "/v1/experiments/{experiment_id}/runs"): "token:write",
    ("GET", "/v1/experiments/{experiment_id}/summary"): "token:read",
    ("POST", "/v1/experiments/{experiment_id}/threshold"): "token:read",
    ("GET", "/v1/jobs"): "token:read",
    ("GET", "/v1/jobs/{job_id}"): "token:read",
    ("POST", "/v1/jobs/{job_id}/retry"): "token:write",
    ("POST", "/v1/jobs/retry"): "token:write",
    ("GET", "/v1/people"): "token:admin",
    ("POST", "/v1/people"): "token:admin",
    ("DELETE", "/v1/people/{person_id}"): "token:admin",
    ("POST", "/v1/people/{person_id}/login-link"): "token:admin",
    ("GET", "/v1/queues"): "token:review",
    ("POST", "/v1/queues"): "token:write",
    ("GET", "/v1/queues/{queue_id}"): "token:review",
    ("PATCH", "/v1/queues/{queue_id}"): "token:write",
    ("GET", "/v1/queues/{queue_id}/agreement"): "token:read",
    ("GET", "/v1/queues/{queue_id}/items"): "token:read",
    ("POST", "/v1/queues/{queue_id}/items"): "token:write",
    ("GET", "/v1/queues/{queue_id}/items/{review_item_id}"): "token:review",
    ("POST", "/v1/queues/{queue_id}/items/{review_item_id}/adjudicate"): "token:write",
    ("POST", "/v1/queues/{queue_id}/items/{review_item_id}/flag"): "token:review",
    ("POST", "/v1/queues/{queue_id}/items/{review_item_id}/review"): "token:review",
    ("POST", "/v1/queues/{queue_id}/items/{review_item_id}/skip"): "token:review",
    ("POST", "/v1/queues/{queue_id}/next"): "token:review",
    ("GET", "/v1/projects"): "token:read",
    ("POST", "/v1/projects"): "token:admin",
    ("GET", "/v1/projects/{project_id}"): "token:read",
    ("GET", "/v1/projects/{project_id}/summary"): "token:read",
    ("GET", "/v1/queue"): "token:read",
    ("GET", "/v1/rules"): "token:read",
    ("POST", "/v1/rules"): "token:write",
    ("DELETE", "/v1/rules/{rule_id}"): "token:write",
    ("PATCH", "/v1/rules/{rule_id}"): "token:write",
    ("POST", "/v1/rules/{rule_id}/backfills"): "token:write",
    ("GET", "/v1/rules/{rule_id}/backfills"): "token:read",
    ("GET", "/v1/rules/{rule_id}/backfills/{backfill_id}"): "token:read",
    ("DELETE", "/v1/rules/{rule_id}/backfills/{backfill_id}"): "token:write",
    ("GET", "/v1/rules/{rule_id}"): "token:read",
    ("GET", "/v1/scorers"): "token:read",
    ("GET", "/v1/scores"): "token:read",
    ("GET", "/v1/scores/history"): "token:read",
    ("GET", "/v1/search"): "token:read",
    ("GET", "/v1/exports/datasets/{dataset_id}/items"): "token:read",
    ("GET", "/v1/exports/experiments/{experiment_id}/runs"): "token:read",
    ("GET", "/v1/exports/scores"): "token:read",
    ("GET", "/v1/exports/traces"): "token:read",
    ("GET", "/v1/scores/{score_id}"): "token:read",
    ("DELETE", "/v1/scores/{score_id}"): "token:write",
    ("DELETE", "/v1/experiments/{experiment_id}"): "token:write",
    ("DELETE", "/v1/projects/{project_id}"): "token:admin",
    ("PATCH", "/v1/projects/{project_id}"): "token:admin",
    ("POST", "/v1/scores"): "token:write",
    ("POST", "/v1/scores/batch"): "token:write",
    ("GET", "/v1/sessions"): "token:read",
    ("GET", "/v1/tokens"): "token:admin",
    ("POST", "/v1/tokens"): "token:admin",
    ("DELETE", "/v1/tokens/{token_id}"): "token:admin",
    ("GET", "/v1/traces"): "token:read",
    ("POST", "/v1/traces"): "token:write",
    ("POST", "/v1/logs"): "token:write",
    ("POST", "/v1/metrics"): "token:write",
    ("POST", "/api/public/otel/v1/traces"): "token:write",
    ("POST", "/v1/traces/ingest"): "token:write",
    ("DELETE", "/v1/traces/{trace_id}"): "token:write",
    ("GET", "/v1/traces/{trace_id}"): "token:read",
    ("DELETE", "/v1/traces/{trace_id}/queue"): "token:write",
    ("POST", "/v1/traces/{trace_id}/queue"): "token:write",
}


def test_every_endpoint_is_listed_with_its_audience() -> None:
    """A new or changed row must be entered above, where a reviewer sees it."""
    assert {(route.method, route.path): route.audience for route in all_routes()} == AUDIENCES


def test_whatever_a_page_changes_is_a_form_with_its_secret() -> None:
    changing = [route for route in all_routes() if route.is_page and route.method not in ("GET", "HEAD")]
    assert changing
    assert [route.path for route in changing if route.form is None] == []


async def who(call: Call) -> Answer:
    return json_answer({"token_id": call.access.token_id})


def test_a_route_without_an_audience_cannot_be_made() -> None:
    row: dict[str, Any] = {"method": "GET", "path": "/v1/x", "handler": who, "summary": "x"}
    with pytest.raises(TypeError, match="audience"):
        Route(**row)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUnderTest]:
    pages = (
        Route(method="GET", path="/x", handler=who, summary="x", audience="session:read"),
        Route(method="POST", path="/x", handler=who, summary="x", audience="session:write"),
        Route(method="GET", path="/v1/x", handler=who, summary="x", audience="token:read"),
    )
    folder: Path = tmp_path_factory.mktemp("audience")
    with running_service(f"sqlite:///{folder / 'audience.db'}", routes=(*all_routes(), *pages)) as running:
        yield running


def cookie(service: ServiceUnderTest, role: Role) -> str:
    sessions = service.sessions
    session = sessions.open_now(Access(token_id=LOGIN_LINK, role=role, scope=None))
    return f"{sessions.cookie.decode()}={session}"


def status(service: ServiceUnderTest, method: str, path: str, **headers: str) -> int:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)) as connection:
        connection.request(method, path, headers=sent)
        return connection.getresponse().status


def test_a_token_opens_no_page_and_a_session_no_endpoint(service: ServiceUnderTest) -> None:
    own = cookie(service, "admin")
    assert status(service, "GET", "/x", Cookie=own) == 200
    assert status(service, "GET", "/v1/x", Authorization=f"Bearer {ADMIN}") == 200
    assert status(service, "GET", "/x", Authorization=f"Bearer {ADMIN}") == 401
    assert status(service, "GET", "/v1/x", Cookie=own) == 401
    assert status(service, "GET", "/x") == 401


def test_a_session_has_a_role(service: ServiceUnderTest) -> None:
    for role, expected in (("read", 403), ("write", 200), ("admin", 200)):
        own = cookie(service, role)  # type: ignore[arg-type]  # a literal of the tuple
        assert status(service, "POST", "/x", Cookie=own, Sec_Fetch_Site="same-origin") == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Origin": "http://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 403),
    ],
)
def test_pages_of_other_sites_cannot_use_a_session_to_change_something(
    service: ServiceUnderTest, headers: dict[str, str], expected: int
) -> None:
    sent = {name: value.format(port=service.port) for name, value in headers.items()}
    assert status(service, "POST", "/x", Cookie=cookie(service, "admin"), **sent) == expected
