"""What an agent reports about itself: one JSON document, or JSON lines."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from evenhand.ab.record import RULES
from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.evaluation.trials.suite import USAGE_FIELDS, FieldSource, UsageSource

MAX_BYTES = 256 << 20


class Reported(Struct, frozen=True, kw_only=True):
    """The fields of a record, and what went wrong; a field that is not known is None."""

    values: dict[str, Any]
    error: str = ""


def read_usage(usage: UsageSource, path: Path) -> Reported:
    """Read the usage of one run. Nothing here is ever made up: what is not there is None."""
    missing: dict[str, Any] = dict.fromkeys(USAGE_FIELDS)
    try:
        if path.stat().st_size > MAX_BYTES:
            return Reported(values=missing, error=f"the usage file is larger than {MAX_BYTES >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        return Reported(values=missing, error=f"no usage: {error.strerror or error}")
    if usage.format == "json":
        try:
            documents = [jsontext.decode(data)]
        except InputError as error:
            return Reported(values=missing, error=f"no usage: {error.reason}")
    else:
        documents = [document for document in _lines(data) if _matches(document, usage.where)]
        if not documents:
            return Reported(values=missing, error="no usage: no line of JSON that counts")
    values, wrong = dict(missing), []
    for name, source in usage.fields.items():
        found = _combined(documents, source, name)
        if found is not None and not RULES[name].accepts(found):
            wrong.append(f"{name} is {jsontext.encode_text(found)[:60]}")
            found = None
        values[name] = found
    return Reported(values=values, error=f"usage that cannot be used: {', '.join(wrong)}" if wrong else "")


def _lines(data: bytes) -> Iterable[Any]:
    for line in data.splitlines():
        try:
            yield jsontext.decode(line)
        except InputError:
            continue  # agents mix prose into their logs


def _matches(document: Any, where: Mapping[str, Any]) -> bool:
    return isinstance(document, dict) and all(
        at(document, path) == value and type(at(document, path)) is type(value)
        for path, value in where.items()
    )


def at(document: Any, path: str) -> Any:
    """The value at a dotted path; None when there is none."""
    for step in path.split("."):
        if isinstance(document, dict):
            document = document.get(step)
        elif (
            isinstance(document, list)
            and step.lstrip("-").isdigit()
            and -len(document) <= int(step) < len(document)
        ):
            document = document[int(step)]
        else:
            return None
    return document


def _combined(documents: list[Any], source: str | FieldSource, name: str) -> Any:
    if isinstance(source, str):
        source = FieldSource(path=source, combine="sum" if RULES[name].kind == "number" else "last")
    found = [value for document in documents if (value := at(document, source.path)) is not None]
    if source.combine == "count":
        return len(found)
    if not found:
        return None
    if len(found) == 1 or source.combine == "last":
        return found[-1]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
        return found[-1]
    return max(found) if source.combine == "max" else sum(found)
