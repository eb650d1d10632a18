"""A planted key is in the requests to its own endpoint, and nowhere else."""

import logging
import traceback
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evenhand.core.errors import ModelError, OptionError
from evenhand.core.secret import Secret
from evenhand.judging.pipeline import judge_samples
from evenhand.models.config import EndpointConfig, RetryPolicy
from evenhand.models.connect import connect
from evenhand.models.port import ChatRequest, user
from evenhand.scoring.judge import Judge
from evenhand.scoring.types import ScorerInput
from evenhand.testing.faults import KINDS, FaultPlan
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall

PLANTED = "sk-planted-7f3a9c0e51"


def echoing(call: MockCall) -> MockAnswer:
    """An endpoint that repeats the key: in its reply, or in an error."""
    if "refuse" in call.prompt:
        return MockAnswer(text=f"Incorrect API key provided: {PLANTED}", status=401)
    if "break" in call.prompt:
        return MockAnswer(text=f"cannot serve {call.headers['authorization']}", status=503)
    return MockAnswer(text=f"your key is {PLANTED}")


def files_in(folder: Path) -> list[str]:
    return [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
async def test_the_key_is_in_nothing_that_is_written(
    tmp_path: Path, dialect: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    written: list[str] = []
    answer = echoing if dialect == "openai" else (lambda _: MockAnswer(text=f"it is {PLANTED}"))
    async with MockModel(answer) as server:
        config = EndpointConfig(
            base_url=server.url,
            model="m",
            dialect=dialect,
            api_key=Secret(PLANTED),
            cache_path=tmp_path / "cache.db",
            retry=RetryPolicy(tries=2, first_delay=0.001),
        )
        model = connect(config)
        for text in ("fine", "refuse", "break"):
            try:
                reply = await model.complete(ChatRequest(messages=(user(text),)))
                written += [repr(reply), msgspec.json.encode(reply).decode()]
            except ModelError as error:
                written += [str(error), repr(error), "".join(traceback.format_exception(error))]
        samples = [
            (n, ScorerInput(response=f"{text} {n}")) for n, text in enumerate(("fine", "refuse", "break"))
        ]
        records = await judge_samples(Judge(model), samples)
        written += [repr(records), msgspec.json.encode(list(records.values())).decode()]
        written += [repr(config), str(config), repr(model), repr(model.usage)]
        await model.aclose()
        header = "authorization" if dialect == "openai" else "x-api-key"
        assert all(PLANTED in call.headers[header] for call in server.calls)
    files = files_in(tmp_path)
    assert files
    written += files
    written += [record.getMessage() for record in caplog.records]
    written += list(capfd.readouterr())
    assert len(written) > 8
    for text in written:
        assert PLANTED not in text


@pytest.mark.parametrize("kind", KINDS)
async def test_the_key_is_in_no_error(kind: Any) -> None:
    async with MockModel(faults=FaultPlan(rate=1.0, kinds=(kind,), slow_seconds=30)) as server:
        model = connect(
            EndpointConfig(
                base_url=server.url,
                model="m",
                api_key=Secret(PLANTED),
                timeout=0.5 if kind in ("slow", "drip") else 60.0,
                retry=RetryPolicy(tries=1),
            )
        )
        with pytest.raises(ModelError) as caught:
            await model.complete(ChatRequest(messages=(user("x"),)))
        await model.aclose()
    shown = "".join(traceback.format_exception(caught.value, chain=True))
    chain: BaseException | None = caught.value
    while chain is not None:
        shown += repr(chain)
        chain = chain.__cause__
    assert PLANTED not in shown


def test_a_key_cannot_be_written_as_json() -> None:
    config = EndpointConfig(base_url="http://h/v1", model="m", api_key=Secret(PLANTED))
    with pytest.raises(TypeError):
        msgspec.json.encode(config)
    with pytest.raises(OptionError) as caught:
        EndpointConfig(base_url=f"http://user:{PLANTED}@h/v1", model="m")
    assert PLANTED not in str(caught.value)
    with pytest.raises(OptionError) as caught:
        EndpointConfig(base_url=f"ftp://user:{PLANTED}@h/v1", model="m")
    assert PLANTED not in str(caught.value)
