"""Benchmarks in Python files."""

from pathlib import Path

import pytest

from evenhand.benchmarks import find_benchmarks
from evenhand.core.errors import InputError, UnknownName

HEAD = """
from evenhand.benchmarks import benchmark
from evenhand.scoring.registry import scorer
"""
ONE = """
@benchmark(name="{name}", dataset="rows.jsonl", prompt="{{q}}")
@scorer
def {name}(sample):
    return {{"correct": True}}
"""


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_file_may_define_several_and_one_can_be_picked(tmp_path: Path) -> None:
    spec = write(tmp_path / "mine.py", HEAD + ONE.format(name="first") + ONE.format(name="second"))
    assert [found.name for found in find_benchmarks(spec)] == ["first", "second"]
    assert [found.name for found in find_benchmarks(f"{spec}:second")] == ["second"]
    assert find_benchmarks(spec)[0].home == tmp_path
    with pytest.raises(UnknownName, match="did you mean second"):
        find_benchmarks(f"{spec}:secnd")


def test_modules_beside_the_file_can_be_imported(tmp_path: Path) -> None:
    write(tmp_path / "neighbour_of_bench.py", "NAME = 'fine'\n")
    text = HEAD + "from neighbour_of_bench import NAME\n" + ONE.format(name="x").replace('"x"', "NAME")
    assert find_benchmarks(write(tmp_path / "b.py", text))[0].name == "fine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "defines no benchmark"),
        ("def f(:\n", r"bad\.py:1: "),
        ("x = 1\ny = 1 / 0\n", r"bad\.py:2: ZeroDivisionError"),
        ("import no_such_module_anywhere\n", "No module named"),
        (
            HEAD + ONE.format(name="a") + ONE.format(name="a").replace("def a", "def b"),
            "two benchmarks of one name",
        ),
    ],
)
def test_a_bad_file_is_a_sentence_with_a_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        find_benchmarks(write(tmp_path / "bad.py", text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.py: no such file"):
        find_benchmarks(str(tmp_path / "gone.py"))
