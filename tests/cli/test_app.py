"""The command line as a whole: its list of commands, its errors, and how quickly it answers."""

import importlib
import os
import subprocess
import sys

import click
import pytest

from evenhand.cli.app import COMMANDS


def evenhand(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evenhand", *args], capture_output=True, text=True, timeout=300
    )


def test_help_lists_every_command() -> None:
    done = evenhand("--help")
    assert done.returncode == 0
    for name, entry in COMMANDS.items():
        assert name in done.stdout
        assert entry.summary


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_exists_and_its_help_has_an_example(name: str) -> None:
    command = importlib.import_module(COMMANDS[name].module).command
    assert isinstance(command, click.Command)
    done = evenhand(name, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("evenhand " + name) > 1  # the line of usage is not an example


def test_an_unknown_command_is_bad_usage_with_a_sentence() -> None:
    for wrong, meant in (
        (["scor"], "unknown command 'scor'; did you mean score"),
        (["eval", "rum"], "unknown command 'rum'; did you mean run?"),
        (["ab", "analyse"], "unknown command 'analyse'; did you mean analyze?"),
        (["zzz"], "unknown command 'zzz'; known: ab, compare,"),
    ):
        done = evenhand(*wrong)
        assert done.returncode == 64
        assert meant in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["ab", "db", "eval", "judge", "token"])
def test_no_summary_of_a_command_is_cut(name: str) -> None:
    assert "..." not in evenhand(name, "--help").stdout.split("Commands:")[1]


def test_import_brings_in_no_heavy_package() -> None:
    heavy = ["numpy", "scipy", "aiohttp", "rich", "uvicorn", "sqlite3", "asyncio"]
    program = f"import sys, evenhand, evenhand.cli.app; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


LISTS = (["score", "--list"], ["score", "--list", "--format", "json"], ["eval", "list"])


@pytest.mark.parametrize("args", LISTS)
def test_a_reader_that_went_away_is_no_verdict(args: list[str]) -> None:
    """1 would read as BLOCK or NO-GO; 141 is what the shell says of SIGPIPE."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "evenhand", *args], stdout=writing, stderr=subprocess.PIPE, timeout=300
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("args", LISTS)
def test_a_full_disk_is_a_sentence(args: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "evenhand", *args], stdout=full, stderr=subprocess.PIPE, timeout=300
        )
    assert done.returncode == 74
    assert done.stderr == b"Error: the output cannot be written: No space left on device\n"
