"""What the tests of the runner share: a benchmark of numbers, the command, artifacts read back."""

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from evenhand.benchmarks.definition import Benchmark, benchmark
from evenhand.cli.app import main
from evenhand.evaluation.config import RunConfig, Service
from evenhand.scoring.registry import scorer
from evenhand.scoring.text import exact_match
from evenhand.scoring.types import ScorerInput
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall


def doubles(count: int = 20, **options: Any) -> Benchmark:
    """Asks for the double of each number; problem i has category even or odd."""

    def rows() -> list[dict[str, Any]]:
        return [{"n": n, "target": str(2 * n), "category": "odd" if n % 2 else "even"} for n in range(count)]

    @benchmark(name="doubles", dataset=rows, prompt="What is twice {n}?", **options)
    @scorer
    def made(sample: ScorerInput) -> Any:
        """The number itself."""
        return {**exact_match(sample), "extracted": sample.response.strip() or None}

    return made


def doubling(call: MockCall) -> str:
    """A model that is right except on multiples of five."""
    number = int(call.prompt.split()[-1].rstrip("?"))
    return str(2 * number + (number % 5 == 0))


def config_for(server: MockModel, **options: Any) -> RunConfig:
    """A run against a mock endpoint, quick to give up."""
    return RunConfig(model=Service(url=server.url, id="m", tries=1), **options)


def refusing(status: int, text: str = "no") -> Any:
    """A model that answers every call with an HTTP error."""
    return lambda call: MockAnswer(text=text, status=status)


def lines(path: Path) -> list[dict[str, Any]]:
    """A JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def timeless(folder: Path) -> dict[str, Any]:
    """All that a run says about its samples, without times and ids."""
    results = lines(folder / "results.jsonl")
    for row in results:
        row["usage"].pop("duration_seconds", None)
    trajectories = lines(folder / "trajectories.jsonl")
    for row in trajectories:
        for name in ("latency_seconds", "attempts"):
            row.pop(name, None)
    bundle = json.loads(next(folder.glob("eval-*.json")).read_text())
    for name in ("run_id", "created_at"):
        bundle.pop(name)
    failures = json.loads((folder / "failure_analysis.json").read_text())
    return {"results": results, "trajectories": trajectories, "bundle": bundle, "failures": failures}


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def evenhand(*arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> Done:
    """The command, in this process: the same code from the first argument to the exit status."""
    words = [str(argument) for argument in arguments]
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(cwd or Path.cwd()))
        stack.enter_context(mock.patch.dict(os.environ, env or {}))
        stack.enter_context(mock.patch.object(sys, "argv", ["evenhand", *words]))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            main(words)
        except SystemExit as exit_:
            status = int(exit_.code or 0)
    return Done(status, out.getvalue(), err.getvalue())
