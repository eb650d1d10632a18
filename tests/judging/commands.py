"""Commands as a user runs them, for the tests of this folder."""

import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evenhand.cli.app import main


class Done(NamedTuple):
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def evenhand(*args: str, cwd: Path, **environ: str) -> Done:
    """The command line as it runs, but in this process: starting one takes longer than judging."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setenv("EVENHAND_CACHE", str(cwd / "cache"))
        for name, value in environ.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as left:
            main(list(args))
    return Done(int(left.value.code or 0), out.getvalue(), err.getvalue())


@contextmanager
def mock_model(*options: str) -> Iterator[str]:
    """`evenhand mock-model`, a process of its own, which ends quietly on Ctrl-C."""
    command = [sys.executable, "-m", "evenhand", "mock-model", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 0
            assert process.stderr.read() == ""


def write_lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
