"""Models that need no endpoint: `mock` gives scripted answers, `echo` gives the prompt back."""

import asyncio
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from evenhand.benchmarks.template import as_text
from evenhand.core.errors import OptionError
from evenhand.core.jsontext import canonical
from evenhand.evaluation.suites.reading import check_keys, mapping
from evenhand.evaluation.tasks import Task
from evenhand.testing.script import DEFAULT_ANSWER

MOCK_KEYS = ("answers", "answer", "right", "wrong", "latency")


class ScriptedTask(Task, frozen=True, kw_only=True):
    """A built-in model as what is under test: its script decides its answers, so the script is its fingerprint."""

    script: dict[str, Any]
    """What it was told to say."""

    @property
    def fingerprint(self) -> dict[str, Any]:
        return {"name": self.name, "parts": self.script}


class Mock:
    """Scripted answers: by parts of the prompt, or the expected answer on a share of the rows."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self._answers: dict[str, str] = script.get("answers", {})
        self._answer: str = script.get("answer", DEFAULT_ANSWER)
        self._right: float | None = script.get("right")
        self._wrong: str = script.get("wrong", "I do not know.")
        self._latency: float = script.get("latency", 0.0)

    async def __call__(self, input: Any, item: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002  the task's name
        if self._latency:
            await asyncio.sleep(self._latency)
        asked = prompt_text(input)
        said = next((text for part, text in self._answers.items() if part in asked), None)
        if said is None:
            said = self._answer if self._right is None else self._drawn(item)
        return {
            "output": said,
            "usage": {"input_tokens": len(asked.split()), "output_tokens": len(said.split())},
        }

    def _drawn(self, item: Mapping[str, Any]) -> str:
        # By the row alone: a model of a larger share is right wherever one of a smaller share is.
        row = [item["expected"], item["metadata"], item["repeat"]]
        place = int.from_bytes(blake2b(canonical(row), digest_size=8).digest(), "big") / 2**64
        assert self._right is not None
        return as_text(item["expected"]) if place < self._right else self._wrong


async def echo(input: Any) -> dict[str, Any]:  # noqa: A002  the task's name
    """The prompt itself; of a conversation its messages as JSON, as they would be sent."""
    return {"output": input if isinstance(input, str) else as_text(input), "cost": 0.0}


def prompt_text(asked: Any) -> str:
    """What was asked, as one text."""
    if isinstance(asked, str):
        return asked
    return "\n\n".join(as_text(turn["content"]) for turn in asked)


def mock_task(name: str, given: Any, where: str) -> ScriptedTask:
    """The mock of this script; `OptionError` names what is wrong with it."""
    script = {} if given is None else mapping(given, where)
    check_keys(script, MOCK_KEYS, where)
    answers = script.get("answers", {})
    if not isinstance(answers, dict) or not all(
        isinstance(one, str | int | float) for one in answers.values()
    ):
        raise OptionError(f"{where}: 'answers' maps parts of prompts to answers")
    script = {**script, "answers": {str(part): str(said) for part, said in answers.items()}}
    for key in ("answer", "wrong"):
        if key in script:
            script[key] = str(script[key])
    for key, top in (("right", 1.0), ("latency", 60.0)):
        value = script.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= top:
            raise OptionError(f"{where}: '{key}' is a number from 0 to {top:g}")
    return ScriptedTask(function=Mock(script), name=name, script=script)


def echo_task(name: str = "echo") -> ScriptedTask:
    """The model that gives the prompt back."""
    return ScriptedTask(function=echo, name=name, script={"echo": True})
