"""`evenhand mock-model`: a local chat endpoint with scripted answers."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import get_args

import click

from evenhand.core.errors import Unavailable
from evenhand.testing.faults import FaultKind, FaultPlan
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import DEFAULT_ANSWER, Script, read_script

EXAMPLES = """
\b
Examples:
  evenhand mock-model --answer "The answer is 42."
  evenhand mock-model --answers script.jsonl --port 8001 --latency 0.05
  evenhand mock-model --fault-rate 0.3 --fault rate_limit --fault cut --seed 7

A line of a script is a condition and an answer; the first match is used:

\b
  {"contains": "capital of France", "answer": "Paris"}
  {"equals": "2+2?", "answers": ["5", "4"]}
  {"contains": "prove", "answer": "<think>First, ", "finish_reason": "length"}
  {"answer": "I do not know."}

In an answer, {{nonce}} becomes the code that a judge's prompt asks to be repeated.
"""


@click.command(epilog=EXAMPLES)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--answers", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Script of JSON lines."
)
@click.option("--answer", default=DEFAULT_ANSWER, help="Answer when no line of the script matches.")
@click.option("--latency", default=0.0, show_default=True, help="Seconds before each answer.")
@click.option(
    "--fault-rate",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of requests that fail.",
)
@click.option(
    "--fault",
    "kinds",
    multiple=True,
    type=click.Choice(get_args(FaultKind)),
    help="Which faults; several times for several. By default the common ones.",
)
@click.option("--retry-after", default="0", show_default=True, help="Retry-After of an injected 429.")
@click.option("--slow-seconds", default=5.0, show_default=True, help="How long the fault 'slow' takes.")
@click.option("--seed", default=0, show_default=True, help="Seed of the faults.")
@click.option(
    "--reject",
    "rejects",
    multiple=True,
    help="Refuse requests with this field (max_tokens, temperature, ...); several times for several.",
)
@click.option("--no-structured-output", is_flag=True, help="Refuse response_format with a 400.")
def command(
    host: str,
    port: int,
    answers: Path | None,
    answer: str,
    latency: float,
    fault_rate: float,
    kinds: tuple[FaultKind, ...],
    retry_after: str,
    slow_seconds: float,
    seed: int,
    rejects: tuple[str, ...],
    no_structured_output: bool,
) -> None:
    """Serve a mock model: an OpenAI-compatible endpoint for demos and tests. Prints its base URL."""
    plan = FaultPlan(
        rate=fault_rate,
        kinds=kinds or FaultPlan().kinds,
        seed=seed,
        retry_after=retry_after,
        slow_seconds=slow_seconds,
    )
    script = read_script(answers, default=answer) if answers is not None else Script([], default=answer)
    server = MockModel(
        script,
        latency=latency,
        faults=plan,
        rejects=rejects,
        host=host,
        port=port,
        structured_output=not no_structured_output,
        keep_calls=False,
    )
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(server))


async def _serve(server: MockModel) -> None:
    try:
        await server.start()
    except OSError as error:
        raise Unavailable(f"cannot listen there: {error.strerror or error}") from None
    async with server:
        click.echo(server.url)
        await asyncio.Event().wait()
