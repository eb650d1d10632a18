"""Logs: JSON lines on standard error, without payloads and secrets."""

import logging
import sys
import traceback

import msgspec

from evenhand.core.errors import StoreUnavailable
from evenhand.core.timestamps import format_instant, now

log = logging.getLogger("evenhand.server")


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, message and the fields that were given.

    Of an exception it gives type and traceback, not the message, which may quote a request.
    """

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": format_instant(now()),
            "level": record.levelname.lower(),
            # The first line only: libraries may append the content of objects.
            "message": record.getMessage().partition("\n")[0],
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = kind_and_place(record.exc_info[1])
        return msgspec.json.encode(line).decode()


def kind_and_place(error: BaseException) -> str:
    """Types and tracebacks of the exception and its causes, without their messages."""
    parts: list[str] = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        # The database's error code replaces most of what its message says.
        code = getattr(one, "sqlstate", None) or getattr(one, "sqlite_errorname", None)
        kind = f"{type(one).__module__}.{type(one).__qualname__}{f' ({code})' if code else ''}"
        parts.append("".join(traceback.format_tb(one.__traceback__)) + kind)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return "\n\n".join(reversed(parts))


def warn_of(error: Exception, text: str) -> None:
    """Log what work in the background cannot do; an outage of the database has been told once already."""
    level = logging.DEBUG if isinstance(error, StoreUnavailable) else logging.WARNING
    log.log(level, text, extra={"fields": {"error": type(error).__name__}})


def set_up_logging(level: str) -> None:
    """Log our own messages from `level` on, and warnings of libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    everything = logging.getLogger()
    everything.handlers[:] = [handler]
    everything.setLevel(logging.WARNING)
    logging.getLogger("evenhand").setLevel(level.upper())
    # uvicorn warns about every malformed request, which anybody can send.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    logging.captureWarnings(True)
