"""JSON in and out, strictly.

Text from outside is hostile: NaN and Infinity, numbers out of range, nesting without end, lone surrogates and
invalid UTF-8 all end in `InputError` with a reason, never in another exception and never in a changed value.
NaN and Infinity never leave the process either.
"""

import json
import math
import re
from functools import lru_cache
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
_ALWAYS_FINITE = frozenset({str, int, bool, type(None)})
_ENCODER = msgspec.json.Encoder()
_DECODE_ANY = msgspec.json.Decoder().decode
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
        return _DECODE_ANY(data) if type is Any else _decoder(type).decode(data)
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None
    except msgspec.DecodeError as error:
        raise InputError(f"invalid JSON: {reason_for(error, data)}") from None
    except RecursionError:
        raise InputError(f"JSON is nested too deeply (more than {max_depth} levels)") from None
    except UnicodeDecodeError as error:
        raise InputError(f"invalid UTF-8 at byte {error.start}") from None


@lru_cache(maxsize=256)
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:  # noqa: A002  msgspec's name
    return msgspec.json.Decoder(type)


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


class _Repeated(Exception):
    """Carries the key."""


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _Repeated(key)
        seen.add(key)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InputError("invalid JSON: Number out of range")
    return number


_KEY_READER = json.JSONDecoder(object_pairs_hook=_refuse_repeated, parse_float=_finite)


def repeated_key(data: bytes) -> str | None:
    """A key that some object in the well-formed text names twice; None when there is none.

    The whole text is read for this: `InputError` when one of its numbers is out of range.
    """
    try:
        _KEY_READER.decode(data.decode("utf-8", "surrogatepass"))
    except _Repeated as found:
        return str(found)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return None  # malformed; the decoder says where
    except ValueError:  # more digits than Python reads
        raise InputError("invalid JSON: Number out of range") from None
    return None


def check_keys(data: bytes) -> None:
    """`InputError` when an object in the well-formed text names a key twice: one of the values would be lost."""
    key = repeated_key(data)
    if key is not None:
        raise InputError(f"duplicate key '{key[:100]}'")


def keeps_keys(data: bytes, encoded: bytes) -> bool:
    """Whether `encoded`, written from what was decoded from `data`, surely has every key of it.

    Every key comes with one colon, and colons inside strings survive decoding and encoding. What was decoded may have
    dropped keys and values, but must have invented none. For very many small records only: everywhere else
    `repeated_key` costs too little to matter (docs/decisions/0148-repeated-keys-by-the-standard-hook.md).
    """
    # One byte is found much sooner than several: without a backslash nothing is escaped.
    if b"\\" in data and _ESCAPED_COLON in data:
        return False
    return encoded.count(b":") == data.count(b":")


def encode(value: Any) -> bytes:
    """Compact JSON; `ValueError` for a number that JSON cannot carry."""
    return _without_nan(value, _ENCODER.encode(value))


def encode_text(value: Any) -> str:
    """`encode` as a string."""
    return encode(value).decode("utf-8")


def canonical(value: Any) -> bytes:
    """One spelling per value: sorted keys, no spaces. Equal values give equal bytes."""
    return _without_nan(value, _CANONICAL.encode(value))


def spelled(value: Any) -> str:
    """A JSON value as the one text that it is compared by: `canonical`, with 1.0 written as 1.

    JSON has one kind of number, and RFC 8785 writes one without a fraction as an integer.
    """
    return canonical(_whole_numbers(value)).decode("utf-8")


def _whole_numbers(value: Any) -> Any:
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case dict():
            return {key: _whole_numbers(item) for key, item in value.items()}
        case list() | tuple():
            return [_whole_numbers(item) for item in value]
        case _:
            return value


def _without_nan(value: Any, encoded: bytes) -> bytes:
    # msgspec writes NaN and the infinities as null: without that word there is nothing to look for.
    if b"null" in encoded:
        checked_finite(value)
    return encoded


def checked_finite(value: Any) -> Any:
    """The value itself; `ValueError` when a NaN or an infinity is in it (msgspec would write null)."""
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) in _ALWAYS_FINITE:
            continue
        if isinstance(item, float):
            if not math.isfinite(item):
                raise ValueError("NaN and Infinity cannot be written as JSON")
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            stack.extend(item)
        elif isinstance(item, msgspec.Struct):
            stack.extend(msgspec.structs.astuple(item))
    return value
