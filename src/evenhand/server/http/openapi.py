"""The OpenAPI document, generated from the route table."""

from collections.abc import Sequence
from typing import Any

import msgspec

from evenhand import __version__
from evenhand.server.http.answers import STATUS, ErrorEnvelope
from evenhand.server.http.field_texts import field_texts, structs_in
from evenhand.server.http.routes import Route

GENERAL_ERRORS = (
    "INVALID_REQUEST",
    "UNAUTHORIZED",
    "TOO_MANY_REQUESTS",
    "OVERLOADED",
    "UNAVAILABLE",
    "QUERY_TIMEOUT",
)
BODY_ERRORS = ("PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "REQUEST_TIMEOUT", "CONFLICT")
_REF = "#/components/schemas/{name}"


def error_codes(route: Route) -> list[str]:
    """Every error code that the endpoint can answer with."""
    codes = list(GENERAL_ERRORS)
    if route.role is None:
        codes.remove("UNAUTHORIZED")
    if route.request is not None or route.reads_body:
        codes += BODY_ERRORS
    if route.method == "POST":
        codes.append("CONFLICT")  # an Idempotency-Key used twice
    if route.role in ("write", "admin"):
        codes += ["FORBIDDEN", "INSUFFICIENT_STORAGE"]
    return list(dict.fromkeys([*codes, *route.errors]))


def schemas(routes: Sequence[Route]) -> dict[str, dict[str, Any]]:
    """The schema of every object in bodies and answers, by its name, with a sentence for every field."""
    types = [
        wanted
        for route in routes
        for wanted in (route.request, route.response, *route.other_answers.values())
        if _is_type(wanted)
    ]
    _, components = msgspec.json.schema_components([*types, ErrorEnvelope], ref_template=_REF)
    for struct in structs_in([*types, ErrorEnvelope]):
        names = {field.name: field.encode_name for field in msgspec.structs.fields(struct)}
        for component in components.values():
            # A generic type has a component for each of its uses: `Page[Score]`.
            if component.get("title", "").partition("[")[0] == struct.__name__:
                for field, text in field_texts(struct).items():
                    component["properties"][names[field]]["description"] = text
    return components


def document(routes: Sequence[Route]) -> bytes:
    """OpenAPI 3.1 as JSON."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Evenhand", "version": __version__},
            "paths": paths,
            "components": {
                "schemas": schemas(routes),
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
        }
    )


def _is_type(wanted: Any) -> bool:
    return wanted is not None and wanted is not dict


def schema_of(wanted: Any) -> dict[str, Any]:
    """The schema of one type; objects are references."""
    (schema,), _ = msgspec.json.schema_components([wanted], ref_template=_REF)
    return dict(schema)


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.operation,
        "tags": [route.tag],
        "parameters": parameters(route),
        "responses": _responses(route),
    }
    if route.role is not None:
        operation["security"] = [{"token": []}]
        operation["x-role"] = route.role
    if route.request is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {media: {"schema": schema_of(route.request)} for media in route.media_types},
        }
    elif route.reads_body:
        operation["requestBody"] = {
            "required": True,
            "description": route.body_text,
            "content": {media: {"schema": {"type": "string"}} for media in route.media_types},
        }
    return operation


def parameters(route: Route) -> list[dict[str, Any]]:
    """What the endpoint takes in its path, headers and query."""
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.parameters
    ]
    if route.method == "POST" and route.role is not None:
        found.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "The same key and body get the first answer again; another body is CONFLICT.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
            }
        )
    if _is_type(route.query):
        texts = field_texts(route.query)
        found += [
            {
                "name": field.encode_name,
                "in": "query",
                "required": field.required,
                "description": texts.get(field.name, ""),
                "schema": schema_of(field.type),
            }
            for field in msgspec.structs.fields(route.query)
        ]
    return found


def _responses(route: Route) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done."}
    if _is_type(route.response):
        success["content"] = {"application/json": {"schema": schema_of(route.response)}}
    if route.stream_types:
        success["content"] = {media: {"schema": {"type": "string"}} for media in route.stream_types}
    responses: dict[str, Any] = {str(route.status): success}
    for status, wanted in route.other_answers.items():
        content = {"application/json": {"schema": schema_of(wanted)}}
        responses[str(status)] = {"description": "Done.", "content": content}
    by_status: dict[int, list[str]] = {}
    for code in error_codes(route):
        by_status.setdefault(STATUS[code], []).append(code)
    for status, codes in sorted(by_status.items()):
        responses[str(status)] = {
            "description": ", ".join(codes),
            "content": {"application/json": {"schema": schema_of(ErrorEnvelope)}},
        }
    if route.render_error is not None:
        for answer in responses.values():
            answer["content"] = {media: {} for media in route.media_types}
    return responses
