"""Compiled templates are used again, and nothing depends on them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Prints the report, and whether Jinja2 had to compile anything for it.
PROGRAM = """
import jinja2
compiled = []
compile_ = jinja2.Environment.compile
jinja2.Environment.compile = lambda *a, **k: (compiled.append(1), compile_(*a, **k))[1]
from evenhand.reports.components import Paragraph, Section
from evenhand.reports.rendering import document
print(len(compiled[:]), document("Title", [Section("Words", [Paragraph("a < b")])]), len(compiled))
"""


def made(folder: Path, *flags: str) -> tuple[str, int]:
    """The document, and how many templates were compiled for it, by a new process with this folder for bytecode."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder)
    command = [sys.executable, *flags, "-c", PROGRAM]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    text, _, count = found.rstrip().rpartition(" ")
    return text, int(count)


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.template"))


def test_the_second_process_compiles_nothing(tmp_path: Path) -> None:
    first, compiled = made(tmp_path)
    assert compiled == len(kept(tmp_path)) > 0
    assert "a &lt; b" in first
    assert made(tmp_path) == (first, 0)


@pytest.mark.parametrize("damage", [b"", b"j2", b"nonsense" * 100])
def test_a_damaged_file_is_compiled_anew(tmp_path: Path, damage: bytes) -> None:
    first, compiled = made(tmp_path)
    for path in kept(tmp_path):
        path.write_bytes(path.read_bytes()[:20] + damage if damage != b"nonsense" * 100 else damage)
    assert made(tmp_path) == (first, compiled)
    assert made(tmp_path) == (first, 0)


def test_nothing_is_written_where_python_may_write_no_bytecode(tmp_path: Path) -> None:
    _, compiled = made(tmp_path, "-B")
    assert compiled > 0
    assert kept(tmp_path) == []
