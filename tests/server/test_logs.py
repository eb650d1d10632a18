"""Logs are JSON lines without payloads, whoever writes them."""

import json
import logging
import subprocess
import sys

import pytest

from evenhand.server.http.logs import JsonLines, kind_and_place

LIBRARIES = """
import asyncio, logging, warnings
from evenhand.server.http.logs import set_up_logging

set_up_logging("info")
log = logging.getLogger("evenhand.server")
log.debug("not this one")
log.info("ours", extra={"fields": {"token": "id"}})
logging.getLogger("uvicorn.error").info("not this one")
warnings.warn("a warning", stacklevel=1)

async def forgotten():
    raise ValueError("planted payload")

async def main():
    asyncio.ensure_future(forgotten())
    await asyncio.sleep(0)

asyncio.run(main())
try:
    raise KeyError("planted payload")
except KeyError:
    log.exception("unexpected error")
"""


def test_every_line_is_JSON_and_no_exception_tells_what_it_was_about() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", LIBRARIES], capture_output=True, text=True, timeout=300
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["level"] for line in lines] == ["info", "warning", "error", "error"]
    assert lines[0]["token"] == "id"
    assert "a warning" in lines[1]["message"]
    assert lines[2]["message"] == "Task exception was never retrieved"
    assert "builtins.ValueError" in lines[2]["exception"]
    assert lines[3]["message"] == "unexpected error"
    assert "builtins.KeyError" in lines[3]["exception"]
    assert "line" in lines[3]["exception"]
    assert "planted payload" not in done.stderr.replace('raise KeyError("planted payload")', "").replace(
        'raise ValueError("planted payload")', ""
    )


def test_what_led_to_an_exception_is_told_too() -> None:
    def cause() -> None:
        raise ValueError("planted")

    try:
        try:
            cause()
        except ValueError as error:
            raise RuntimeError("planted") from error
    except RuntimeError as error:
        told = kind_and_place(error)
    assert "in cause" in told
    assert told.index("builtins.ValueError") < told.index("builtins.RuntimeError")


def test_of_a_database_error_the_code_is_told() -> None:
    class Broken(Exception):
        sqlstate = "23505"

    assert kind_and_place(Broken("Key (name)=(planted) exists")).endswith("Broken (23505)")


@pytest.mark.parametrize("text", ["plain", "two\nlines", 'quote " and \x00'])
def test_a_line_is_one_line(text: str) -> None:
    record = logging.LogRecord("evenhand", logging.INFO, "", 0, text, None, None)
    formatted = JsonLines().format(record)
    assert "\n" not in formatted
    assert json.loads(formatted)["message"] == text.partition("\n")[0]
