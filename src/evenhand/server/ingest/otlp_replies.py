"""OTLP's answers, in protobuf and JSON. Small messages that need no generated classes."""

import msgspec

JSON = "application/json"
PROTOBUF = "application/x-protobuf"
SPANS, LOG_RECORDS, DATA_POINTS = "rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"
"""What an answer calls the number of things that were left out, by signal; in protobuf all are the same field."""


def response_body(content_type: str, rejected: int = 0, message: str = "", counted: str = SPANS) -> bytes:
    """The answer to an export, with a partial success when something was rejected or there is something to say."""
    if not rejected and not message:
        return b"{}" if content_type == JSON else b""
    if content_type == JSON:
        return msgspec.json.encode({"partialSuccess": {counted: str(rejected), "errorMessage": message}})
    partial = (_varint_field(1, rejected) if rejected else b"") + _text_field(2, message)
    return bytes_field(1, partial)


def status_body(content_type: str, code: int, message: str) -> bytes:
    """A `google.rpc.Status`, the body of every OTLP error."""
    if content_type == JSON:
        return msgspec.json.encode({"code": code, "message": message})
    return _varint_field(1, code) + _text_field(2, message)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def bytes_field(number: int, payload: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint_field(tag: int, number: int) -> bytes:
    return _varint(tag << 3) + _varint(number)


def _text_field(tag: int, text: str) -> bytes:
    return bytes_field(tag, text.encode("utf-8"))
