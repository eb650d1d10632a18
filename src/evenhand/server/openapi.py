"""The OpenAPI document, generated from the route table."""

from collections.abc import Sequence
from typing import Any

import msgspec

from evenhand import __version__
from evenhand.server.answers import STATUS, ErrorEnvelope
from evenhand.server.routes import Route

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
    if route.request is not None or route.streams:
        codes += BODY_ERRORS
    if route.method == "POST":
        codes.append("CONFLICT")  # an Idempotency-Key used twice
    if route.role in ("write", "admin"):
        codes += ["FORBIDDEN", "INSUFFICIENT_STORAGE"]
    return list(dict.fromkeys([*codes, *route.errors]))


def document(routes: Sequence[Route]) -> bytes:
    """OpenAPI 3.1 as JSON."""
    types = [
        wanted
        for route in routes
        for wanted in (route.request, route.response, route.query, *route.other_answers.values())
        if _is_type(wanted)
    ]
    _, components = msgspec.json.schema_components([*types, ErrorEnvelope], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Evenhand", "version": __version__},
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
        }
    )


def _is_type(wanted: Any) -> bool:
    return wanted is not None and wanted is not dict


def _schema(wanted: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([wanted], ref_template=_REF)
    return dict(schema)


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.tag}.{route.method}.{route.path}".lower(),
        "tags": [route.tag],
        "parameters": _parameters(route),
        "responses": _responses(route),
    }
    if route.role is not None:
        operation["security"] = [{"token": []}]
        operation["x-role"] = route.role
    if route.request is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {media: {"schema": _schema(route.request)} for media in route.media_types},
        }
    elif route.streams:
        operation["requestBody"] = {
            "required": True,
            "content": {media: {"schema": {"type": "string"}} for media in route.media_types},
        }
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
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
                "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
            }
        )
    if _is_type(route.query):
        found += [
            {
                "name": field.encode_name,
                "in": "query",
                "required": field.required,
                "schema": _schema(field.type),
            }
            for field in msgspec.structs.fields(route.query)
        ]
    return found


def _responses(route: Route) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done."}
    if _is_type(route.response):
        success["content"] = {"application/json": {"schema": _schema(route.response)}}
    responses: dict[str, Any] = {str(route.status): success}
    for status, wanted in route.other_answers.items():
        content = {"application/json": {"schema": _schema(wanted)}}
        responses[str(status)] = {"description": "Done.", "content": content}
    by_status: dict[int, list[str]] = {}
    for code in error_codes(route):
        by_status.setdefault(STATUS[code], []).append(code)
    for status, codes in sorted(by_status.items()):
        responses[str(status)] = {
            "description": ", ".join(codes),
            "content": {"application/json": {"schema": _schema(ErrorEnvelope)}},
        }
    if route.refused is not None:
        for answer in responses.values():
            answer["content"] = {media: {} for media in route.media_types}
    return responses
