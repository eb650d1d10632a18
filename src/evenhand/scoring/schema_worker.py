"""Validation in a worker, for schemas that could take for ever.

Recursive references, references that multiply, look-around patterns and very large instances are validated here.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from evenhand.core.errors import OptionError, ScoringError
from evenhand.scoring.schema_check import SchemaCheck
from evenhand.scoring.worker import Reply, Worker, serve

TIME_LIMIT = 2.0
"""Seconds after which validating one instance is stopped."""
REMEMBERED = 100
"""How many schemas the worker keeps compiled."""

_worker = Worker("evenhand.scoring.schema_worker", time_limit=TIME_LIMIT)


def check_schema_apart(schema: dict[str, Any] | bool) -> None:
    """Compile the schema; `OptionError` when it is invalid."""
    with _worker.ask([schema]) as reply:
        _first(reply())


def errors_apart(schema: dict[str, Any] | bool, instance: Any) -> list[str]:
    """The errors of the instance, none when it is valid; `ScorerTimeout` past the limit."""
    with _worker.ask([schema, instance]) as reply:
        if _first(reply()):
            return []
        try:
            errors: list[str] = reply()["errors"]
        except ScoringError:
            # The verdict is known. Listing the errors ran into the limit of time, or on a fast machine of memory first.
            return ["the value does not have the schema's form; finding out where took too long"]
    return errors


def _first(reply: Reply) -> bool:
    if "schema_error" in reply:
        raise OptionError(reply["schema_error"])
    return bool(reply["valid"])


class _Answers:
    """The worker's side."""

    def __init__(self) -> None:
        self._known: dict[bytes, SchemaCheck] = {}

    def __call__(self, line: bytes) -> Iterator[Reply]:
        schema, *instance = msgspec.json.decode(line, type=list[msgspec.Raw])
        try:
            check = self._compiled(bytes(schema))
        except OptionError as error:
            yield {"schema_error": str(error)}
            return
        if not instance:
            yield {"valid": True}
            return
        value = msgspec.json.decode(instance[0])
        valid = check.is_valid(value)
        yield {"valid": valid}
        if not valid:
            yield {"errors": check.errors(value)}

    def _compiled(self, schema: bytes) -> SchemaCheck:
        if schema not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[schema] = SchemaCheck(msgspec.json.decode(schema))
        return self._known[schema]


if __name__ == "__main__":
    serve(_Answers())
