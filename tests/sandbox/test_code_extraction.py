"""What of a response is code, and how it is joined with the prompt."""

import ast

import pytest

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
        ("", ""),
    ],
)
def test_code_is_the_first_fenced_block_or_the_text(response: str, code: str) -> None:
    assert extract_code(response) == code


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
