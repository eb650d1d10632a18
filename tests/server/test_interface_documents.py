"""`/openapi.json` and `/docs`: valid, complete, and with a sentence for every field."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.service import running_service

from evenhand.server.http.answers import STATUS
from evenhand.server.table import all_routes

VERBS = (
    "adjudicate|cancel|check|compare|complete|create|delete|export|flag|get|import|ingest|invite|list|queue|reserve"
    "|retry|revoke|search|skip|submit|unqueue|update"
)
ROUTES = [route for route in all_routes() if route.operation]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """The document and the page."""
    folder: Path = tmp_path_factory.mktemp("documents")
    with running_service(f"sqlite:///{folder / 'e.db'}") as service:
        document = service.raw("GET", "/openapi.json", token=None).body
        page = service.raw("GET", "/docs", token=None).body
    return document, page.decode()


def everything_in(value: Any) -> Iterator[Any]:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from everything_in(inner)


def test_the_document_describes_every_endpoint(served: tuple[dict[str, Any], str]) -> None:
    document, _ = served
    assert document["openapi"].startswith("3.1.")
    described = {
        (method.upper(), path) for path, operations in document["paths"].items() for method in operations
    }
    assert described == {(route.method, route.path) for route in ROUTES}
    operations = [one for operations in document["paths"].values() for one in operations.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    # Generated clients are read by people: a verb first, then what it is about, as in `create_score`.
    for one in operations:
        assert re.fullmatch(rf"({VERBS})(_[a-z]+)+", one["operationId"]), one["operationId"]
    for (_, path), one in zip(
        [(m, p) for p, found in document["paths"].items() for m in found], operations, strict=True
    ):
        named = {p["name"] for p in one["parameters"] if p["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", path))
        assert all("description" in answer for answer in one["responses"].values())


def test_only_pages_and_what_they_load_are_left_out_of_the_document() -> None:
    left_out = [route for route in all_routes() if not route.operation]
    assert all(route.is_page or route.tag in ("Pages", "Server") for route in left_out)
    assert not [route.path for route in left_out if route.path.startswith(("/v1/", "/api/"))]


def test_bodies_that_are_read_as_they_come_are_described(served: tuple[dict[str, Any], str]) -> None:
    """The import of JSON lines and OTLP have no schema of ours: the document says in words what they hold."""
    document, _ = served
    lines = document["paths"]["/v1/datasets/{dataset_id}/items/import"]["post"]
    assert set(lines["requestBody"]["content"]) == {"application/x-ndjson", "application/jsonl"}
    assert "create_dataset_item" in lines["requestBody"]["description"]
    assert lines["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "/ImportReport"
    )
    for route in ROUTES:
        assert bool(route.body_text) == route.reads_body, route.path
    export = document["paths"]["/v1/exports/scores"]["get"]["responses"]["200"]["content"]
    assert set(export) == {"application/x-ndjson", "application/vnd.apache.parquet"}


def test_every_schema_is_one_and_every_reference_leads_somewhere(
    served: tuple[dict[str, Any], str],
) -> None:
    document, _ = served
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    references = {one["$ref"] for one in everything_in(document) if isinstance(one, dict) and "$ref" in one}
    assert references <= {f"#/components/schemas/{name}" for name in schemas}


def test_every_field_is_explained(served: tuple[dict[str, Any], str]) -> None:
    document, _ = served
    for name, schema in document["components"]["schemas"].items():
        for field, wanted in schema["properties"].items():
            assert wanted.get("description"), f"{name}.{field}"
    asked = [
        parameter
        for operations in document["paths"].values()
        for operation in operations.values()
        for parameter in operation["parameters"]
        if parameter["in"] != "path"
    ]
    assert asked
    assert all(parameter["description"] for parameter in asked)


def test_the_page_has_every_endpoint_object_and_code_and_no_word_of_the_implementation(
    served: tuple[dict[str, Any], str],
) -> None:
    document, page = served
    for route in ROUTES:
        assert f"{route.method} {route.path}" in unescape(page)
    for name in document["components"]["schemas"]:
        assert f"<h3 id={name}>" in page
    assert set(re.findall(r"href=#(\w+)", page)) <= set(re.findall(r"<h3 id=(\w+)>", page))
    internal = {"INTERNAL_ERROR", "METHOD_NOT_ALLOWED"}
    assert all(code in page for code in set(STATUS) - internal)
    for word in ("msgspec", "Annotated", "Struct", "Optional[", "Literal", "<script", "https://"):
        assert word not in page
