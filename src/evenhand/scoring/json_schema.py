"""Structured output: JSON found in a response and checked against a JSON Schema (draft 2020-12).

A schema that names another known draft in `$schema` is read as that draft; an unknown `$schema` is an error, and
so is a reference to anything outside the schema.
"""

from functools import lru_cache
from typing import Any

import msgspec

from evenhand.core.errors import OptionError
from evenhand.core.sample import response_text
from evenhand.scoring.definition import scorer
from evenhand.scoring.json_text import extract_json, find_json
from evenhand.scoring.schema_check import SchemaCheck
from evenhand.scoring.schema_limits import MAX_EXPANDED, check_limits, expanded_size, node_count
from evenhand.scoring.schema_worker import check_schema_apart, errors_apart
from evenhand.scoring.types import ScorerInput

__all__ = ["check_schema", "extract_json", "json_schema", "validate_json_schema"]

MAX_CHECKS = 20_000_000
"""Schema nodes times instance values up to which validation runs in this process."""
SMALL_TEXT = 1_000
"""Characters up to which a response is too short to hold many values."""

_key = msgspec.json.Encoder().encode


def validate_json_schema(text: str, schema: Any) -> dict[str, Any]:
    """Find the JSON in `text` and validate it.

    `valid`, `extracted` and `score` (1.0 or 0.0); `errors` says why when it is not valid. An invalid schema
    raises `OptionError`.
    """
    compiled = check_schema(schema)
    value, problem = find_json(text)
    if problem is not None:
        return {"valid": False, "extracted": None, "errors": [f"invalid JSON: {problem}"], "score": 0.0}
    errors = compiled.errors(value, len(response_text(text) or ""))
    if not errors:
        return {"valid": True, "extracted": value, "score": 1.0}
    return {"valid": False, "extracted": value, "errors": errors, "score": 0.0}


@scorer
def json_schema(sample: ScorerInput, schema: dict[str, Any] | bool | None = None) -> dict[str, Any]:
    """The JSON in the response has the form that `schema` (or `metadata["schema"]`) describes."""
    chosen = sample.metadata.get("schema") if schema is None else schema
    if chosen is None:
        raise OptionError("scorer 'json_schema' needs the option 'schema', or metadata[\"schema\"]")
    result = validate_json_schema(sample.response, chosen)
    result["correct"] = result.pop("valid")
    del result["score"]
    return result


class CompiledSchema:
    """A schema ready for use: in this process when it is sure to be quick, else in the worker."""

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        self._schema = schema
        self._size = expanded_size(schema)
        self._check: SchemaCheck | None = None
        if self._size is not None and self._size <= MAX_EXPANDED:
            check = SchemaCheck(schema)
            self._check = check if check.linear else None
        if self._check is None:
            check_schema_apart(schema)

    def errors(self, value: Any, length: int) -> list[str]:
        """Why the value does not have the schema's form; nothing when it does. `length` is that of its text."""
        check = self._check
        if check is None or (length > SMALL_TEXT and node_count(value) * (self._size or 1) > MAX_CHECKS):
            return errors_apart(self._schema, value)
        return [] if check.is_valid(value) else check.errors(value)


def check_schema(schema: Any) -> CompiledSchema:
    """The compiled schema, compiled once; `OptionError` when it is invalid or too large."""
    try:
        key = _key(schema)
    except (ValueError, TypeError, RecursionError) as error:
        raise OptionError(f"invalid JSON schema: {error}") from None
    return _compiled(key) if len(key) <= 4 * 65_536 else CompiledSchema(check_limits(schema))


@lru_cache(maxsize=256)
def _compiled(key: bytes) -> CompiledSchema:
    try:
        schema = msgspec.json.decode(key)
    except RecursionError:
        raise OptionError("the JSON schema is nested too deeply") from None
    return CompiledSchema(check_limits(schema))
