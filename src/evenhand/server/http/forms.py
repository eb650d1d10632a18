"""Forms of pages: what a browser posts, as a typed value.

Both encodings of HTML are read: `application/x-www-form-urlencoded`, and `multipart/form-data` for forms with a file.
A field that is given several times, such as ticked boxes, belongs into a `list[str]`.
"""

import typing
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import HTTP
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from evenhand.core.errors import Refusal

MEDIA_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
SECRET = "_secret"  # noqa: S105  the name of a field
MAX_FIELDS = 1_000


class Upload(Struct, frozen=True):
    """A file that somebody chose."""

    name: str
    """As the browser calls it; only for people."""
    content: bytes
    """The whole file."""


def read_fields(body: bytes, content_type: str) -> dict[str, list[str | Upload]]:
    """Every field with its values, in the order they came."""
    if content_type.partition(";")[0].strip().lower() == MEDIA_TYPES[1]:
        pairs = _multipart(body, content_type)
    else:
        pairs = _urlencoded(body)
    found: dict[str, list[str | Upload]] = {}
    for name, value in pairs:
        if isinstance(value, str) and "\x00" in value:
            raise Refusal("INVALID_REQUEST", f"'{name[:100]}' cannot contain the character NUL.")
        found.setdefault(name, []).append(value)
    return found


def _urlencoded(body: bytes) -> list[tuple[str, str | Upload]]:
    try:
        # Browsers send line breaks as CR LF.
        return [
            (name, value.replace("\r\n", "\n"))
            for name, value in parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                encoding="utf-8",
                errors="strict",
                max_num_fields=MAX_FIELDS,
            )
        ]
    except ValueError:
        raise Refusal("INVALID_REQUEST", "The form cannot be read.") from None


def _multipart(body: bytes, content_type: str) -> list[tuple[str, str | Upload]]:
    head = b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n"
    message = BytesParser(_class=EmailMessage, policy=HTTP).parsebytes(head + body)
    parts = [part for part in message.iter_parts() if isinstance(part, EmailMessage)]
    if message.defects or not message.is_multipart() or len(parts) > MAX_FIELDS:
        raise Refusal("INVALID_REQUEST", "The form cannot be read.")
    found: list[tuple[str, str | Upload]] = []
    for part in parts:
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(content, bytes):
            raise Refusal("INVALID_REQUEST", "The form cannot be read.")
        file_name = part.get_filename()
        if file_name is not None:
            found.append((name, Upload(file_name, content)))
            continue
        try:
            found.append((name, content.decode("utf-8").replace("\r\n", "\n")))
        except UnicodeDecodeError:
            raise Refusal("INVALID_REQUEST", "The form cannot be read.") from None
    return found


def typed_form(fields: dict[str, list[str | Upload]], wanted: Any) -> Any:
    """The fields as `wanted`; an empty field of an optional or numeric type counts as not given."""
    given: dict[str, Any] = {}
    for name, (is_list, keeps_empty) in _shape(wanted).items():
        values = fields.get(name)
        if values is None:
            continue
        if is_list:
            given[name] = values
        elif len(values) > 1:
            raise Refusal("INVALID_REQUEST", f"'{name}' is given twice.", {"field": name})
        elif values[0] != "" or keeps_empty:
            given[name] = values[0]
    try:
        return msgspec.convert(given, type=wanted, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal("INVALID_REQUEST", f"In the form: {error}") from None


@cache
def _shape(wanted: Any) -> dict[str, tuple[bool, bool]]:
    """For each field: whether it takes several values, and whether an empty text is a value."""
    return {
        field.encode_name: (typing.get_origin(field.type) is list, field.type is str)
        for field in msgspec.structs.fields(wanted)
    }
