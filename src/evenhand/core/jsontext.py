"""JSON in and out, strictly.

Text from outside is hostile: NaN and Infinity, numbers out of range, nesting without end, lone surrogates and
invalid UTF-8 all end in `InputError` with a reason, never in another exception and never in a changed value.
NaN and Infinity never leave the process either.
"""

import json
import math
import re
from typing import Any, TypeVar, overload

import msgspec

from evenhand.core.errors import InputError

MAX_DEPTH = 100
"""How deep arrays and objects may nest."""

T = TypeVar("T")
_QUOTED = re.compile(rb'"[^"]*"')
_ALIKE = bytes.maketrans(b"{}", b"[]")
_NEITHER_QUOTE_NOR_BRACKET = bytes(byte for byte in range(256) if byte not in b'"[]{}')
# An escaped backslash, a pair of surrogates, or a surrogate alone: only the last has group 1.
_SURROGATES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_SHORT = 65_536
_FLAT = 100
"""More keys than a body without objects inside has."""
_ENCODER = msgspec.json.Encoder()
_DECODE_ANY = msgspec.json.Decoder().decode
_DECODE_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_ESCAPED_COLON = b"\\u003"
_CANONICAL = msgspec.json.Encoder(order="sorted")


@overload
def decode(text: str | bytes, *, max_depth: int = MAX_DEPTH) -> Any: ...
@overload
def decode(text: str | bytes, *, type: type[T], max_depth: int = MAX_DEPTH) -> T: ...


def decode(text: str | bytes, *, type: Any = Any, max_depth: int = MAX_DEPTH) -> Any:  # noqa: A002  msgspec's name
    """The value that `text` stands for, checked against `type`; `InputError` when there is none."""
    try:
        data = text.encode("utf-8") if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise InputError(f"text holds a lone surrogate at character {error.start}") from None
    check_depth(data, max_depth)
    try:
        return _DECODE_ANY(data) if type is Any else msgspec.json.decode(data, type=type)
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None
    except msgspec.DecodeError as error:
        raise InputError(f"invalid JSON: {reason_for(error, data)}") from None
    except RecursionError:
        raise InputError(f"JSON is nested too deeply (more than {max_depth} levels)") from None
    except UnicodeDecodeError as error:
        raise InputError(f"invalid UTF-8 at byte {error.start}") from None


def without_lone_surrogates(data: bytes) -> bytes:
    """JSON text with U+FFFD in place of surrogates that have no partner, as a cut emoji leaves them."""
    return _SURROGATES.sub(lambda found: b"\\ufffd" if found[1] else found[0], data)


def reason_for(error: msgspec.DecodeError, data: bytes) -> str:
    """What is wrong with the text. Of a lone surrogate the decoder only says that something is cut off."""
    said = str(error)
    if (
        any(word in said for word in ("truncated", "surrogate", "escape"))
        and without_lone_surrogates(data) != data
    ):
        return "it holds a lone surrogate (\\ud800 to \\udfff), which is no character"
    return said


def check_depth(data: bytes, max_depth: int = MAX_DEPTH) -> None:
    """`InputError` when arrays and objects nest deeper than `max_depth`; cheap, and without decoding anything."""
    # Most texts are short of brackets altogether; only the others are worth a look. Counting those of a long text
    # takes longer than the look does.
    if len(data) <= _SHORT and data.count(b"[") + data.count(b"{") <= max_depth:
        return
    # Every step works on the whole text at once: escapes go, then everything but quotes and brackets (all made
    # alike), then the strings (empty now, unless they held brackets), then brackets, one level after the other.
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    bare = data.translate(_ALIKE, _NEITHER_QUOTE_NOR_BRACKET)
    bare = _QUOTED.sub(b"", bare.replace(b'""', b""))
    for _ in range(max_depth):
        shorter = bare.replace(b"[]", b"")
        if len(shorter) == len(bare):
            return  # nothing left, or not well-formed: the decoder says where
        bare = shorter
    if b"[]" in bare:
        raise InputError(f"JSON is nested too deeply (more than {max_depth} levels)")


def repeated_key(data: bytes) -> str | None:
    """A key that some object in the well-formed text names twice; None when there is none.

    Every key comes with one colon, and colons inside strings survive decoding and encoding. So a text whose colons
    are all still there after both has lost no key. Only the others are read by the slow, exact reader.

    A text with objects inside objects is read whole for this: `InputError` when one of its numbers is out of range.
    """
    colons = data.count(b":")
    try:
        if colons <= _FLAT and len(_DECODE_TOP(data)) == colons:
            return None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # no object
    try:
        whole = _DECODE_ANY(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"invalid JSON: {error}") from None
    return lost_key(data, whole)


def lost_key(data: bytes, value: Any) -> str | None:
    """`repeated_key` of a text that was already decoded, without a type, to `value`."""
    try:
        encoded = _ENCODER.encode(value)
    except OverflowError:  # a number that cannot be written
        return _first_repeated_key(data)
    return None if keeps_keys(data, encoded) else _first_repeated_key(data)


def keeps_keys(data: bytes, encoded: bytes) -> bool:
    """Whether `encoded`, written from what was decoded from `data`, surely has every key of it.

    What was decoded may have dropped keys and values, but must have invented none.
    """
    # One byte is found much sooner than several: without a backslash nothing is escaped.
    if b"\\" in data and _ESCAPED_COLON in data:
        return False
    return encoded.count(b":") == data.count(b":")


def check_keys(data: bytes, value: Any) -> None:
    """`InputError` when an object in `data`, which was decoded to `value`, names a key twice: a value was lost."""
    key = lost_key(data, value)
    if key is not None:
        raise InputError(f"the key '{key[:100]}' is there twice")


class _Repeated(Exception):
    """Carries the key."""


def _once_each(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _Repeated(key)
        seen.add(key)


def _first_repeated_key(data: bytes) -> str | None:
    try:
        json.loads(data, object_pairs_hook=_once_each, parse_int=str, parse_float=str)
    except _Repeated as found:
        return str(found)
    except (ValueError, RecursionError):
        return None  # not well-formed: whoever decodes it says where
    return None


def encode(value: Any) -> bytes:
    """Compact JSON; `ValueError` for a number that JSON cannot carry."""
    return _ENCODER.encode(checked_finite(value))


def encode_text(value: Any) -> str:
    """`encode` as a string."""
    return encode(value).decode("utf-8")


def canonical(value: Any) -> bytes:
    """One spelling per value: sorted keys, no spaces. Equal values give equal bytes."""
    return _CANONICAL.encode(checked_finite(value))


def checked_finite(value: Any) -> Any:
    """The value itself; `ValueError` when a NaN or an infinity is in it (msgspec would write null)."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                raise ValueError("NaN and Infinity cannot be written as JSON")
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            stack.extend(item)
        elif isinstance(item, msgspec.Struct):
            stack.extend(getattr(item, name) for name in item.__struct_fields__)
    return value
