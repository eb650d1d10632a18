"""What of a response is code, and how it is joined with the prompt."""

import ast
from typing import SupportsIndex

import pytest
from tests.growth import grows_no_faster_than_linearly

from evenhand.core.errors import OptionError, ScoringError
from evenhand.scoring.code_execution import build_program, code_sandbox, extract_code, trusted_part
from evenhand.scoring.types import ScorerInput

PROMPT = '''import math
from typing import List

LIMIT = 3

def helper(x):
    return x + 1

def area(r: float) -> float:
    """The area of a circle.
    >>> area(0)
    0.0
    """
'''


def sample(response: str, **metadata: object) -> ScorerInput:
    values = {"_prompt": PROMPT, "_test": "assert area(0) == 0", "entry_point": "area"}
    return ScorerInput(response=response, target="area", metadata={**values, **metadata})


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("Sure!\n```py\nx = 1\n```\nand\n```\ny = 2\n```", "x = 1\n"),
        ("~~~~\nx = '''\n```\n'''\n~~~~\n", "x = '''\n```\n'''\n"),
        ("````python\nx = '```'\n```\ny\n````", "x = '```'\n```\ny\n"),
        ("```python\nx = 1\ny = 2", "x = 1\ny = 2"),
        ("1. Do this:\n   ```python\n   if x:\n       y = 1\n   ```\n", "if x:\n    y = 1\n"),
        ("    return x + 1\n", "    return x + 1\n"),
        ("use `x = 1`", "use `x = 1`"),
        ("```python\r\nx = 1\r\n```\r\n", "x = 1\r\n"),
        ("~~~ python `x`\n```\ny = 2\n```", "y = 2\n"),
        ("```\nx\n~~~\n``\n ````  \nz", "x\n~~~\n``\n"),
        ("```\n```", ""),
        ("", ""),
    ],
)
def test_code_is_the_first_fenced_block_or_the_text(response: str, code: str) -> None:
    assert extract_code(response) == code


class Counted(str):
    """A text that counts the characters which are looked at through it or cut out of it."""

    looked_at = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = super().__getitem__(key)
        Counted.looked_at += len(found)
        return found

    def find(self, sub: str, start: SupportsIndex | None = 0, end: SupportsIndex | None = None) -> int:
        found = super().find(sub, start, end)
        Counted.looked_at += (len(self) if found < 0 else found + 1) - int(start or 0)
        return found


HOSTILE = {
    "tildes and a backtick": lambda n: "~" * n + "`",
    "lines of tildes and a backtick": lambda n: ("~" * 50 + "`\n") * (n // 52),
    "backticks": lambda n: "`" * n + " `",
    "blanks": lambda n: " " * n,
    "an opening that nothing closes": lambda n: "```\n" + "``\n" * (n // 3),
    "indents": lambda n: " " * (n // 2) + "```\n" + " " * (n // 2),
    "line breaks": lambda n: "\n" * n,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_is_linear_in_the_length_of_the_response(name: str) -> None:
    """Twice each character is the most: once to find the end of its line and once to cut the line out.

    Lines that were cut out are plain text and gone over by one regular expression without backtracking; processor
    time shows it: quadratic work on 8 times the text takes 64 times as long.
    """
    text = HOSTILE[name](80_000)
    Counted.looked_at = 0
    assert extract_code(Counted(text)) is not None
    assert Counted.looked_at <= 2 * len(text)
    assert grows_no_faster_than_linearly(lambda size: extract_code(HOSTILE[name](size)), 800_000)


def test_a_body_continues_the_stub() -> None:
    program = build_program(sample("    return math.pi * r * r\n"), "    return math.pi * r * r\n")
    assert program.source == PROMPT + "    return math.pi * r * r\n"
    assert program.entry_point == "area"


def test_a_completion_that_defines_the_entry_point_is_not_glued_under_the_stub() -> None:
    code = "def area(r):\n    return math.pi * r * r\n"
    program = build_program(sample(code), code)
    names = [node.name for node in ast.parse(program.source).body if isinstance(node, ast.FunctionDef)]
    assert names == ["helper", "area"]
    assert "import math" in program.source


def test_helpers_and_imports_of_the_prompt_are_trusted_and_stubs_are_not() -> None:
    trusted = trusted_part(PROMPT, "area")
    assert "def helper" in trusted
    assert "import math" in trusted
    assert "LIMIT = 3" in trusted
    assert "area" not in trusted


def test_a_prompt_that_ends_in_a_bare_header_is_understood() -> None:
    assert trusted_part("import re\ndef add(a, b):\n", "add") == "import re"
    assert trusted_part("Write a function that adds.", "add") == ""


def test_the_entry_point_is_found_in_the_prompt_when_no_field_names_it() -> None:
    code = "def area(r):\n    return 0\n"
    assert build_program(sample(code, entry_point=None), code).entry_point == "area"


def test_a_sample_without_a_test_is_an_error_not_a_grade() -> None:
    with pytest.raises(ScoringError) as caught:
        build_program(sample("x = 1", _test=" "), "x = 1")
    assert caught.value.kind == "no_test"


def test_a_limit_that_is_none_is_refused() -> None:
    with pytest.raises(OptionError, match="timeout"):
        code_sandbox(sample("x = 1"), timeout=-1.0)
    asked = sample("x = 1")
    asked.config = {"memory_bytes": "much"}
    with pytest.raises(OptionError, match="memory_bytes"):
        code_sandbox(asked)
