"""No program forges a pass, and none escapes its grade: attacks that were tried, and every combination of them."""

# ruff: noqa: ISC004  programs are written as joined lines

from pathlib import Path

import pytest
from tests.sandbox.forging import ATTACKS, DEMANDS, PLACES, combination, combinations, grades, shared_programs
from tests.sandbox.forging_by_hand import PROGRAMS

from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import Program, ResourceLimits


def not_wrong(found: dict[str, str]) -> dict[str, str]:
    return {name: grade for name, grade in found.items() if grade != "graded wrong"}


async def test_programs_that_were_tried_by_hand_are_graded_wrong(sandbox: Pool, shared_data: Path) -> None:
    programs = shared_programs(shared_data)
    assert len(programs) == 112
    assert not_wrong(await grades(sandbox, programs)) == {}


async def test_more_programs_are_graded_wrong(sandbox: Pool) -> None:
    assert len({row["name"] for row in PROGRAMS}) == len(PROGRAMS)
    assert not_wrong(await grades(sandbox, PROGRAMS, ResourceLimits(wall_seconds=10.0, cpu_seconds=10))) == {}


async def test_every_attack_is_graded_wrong_in_some_places(bubblewrap: Pool) -> None:
    programs = list(combinations())[::5]
    # 57 attacks x 14 places / 5: every attack, place and demand is in it.
    assert len(programs) == -(-len(ATTACKS) * len(PLACES) // 5)
    parts = [set(part) for part in zip(*(row["name"].split(" / ") for row in programs), strict=True)]
    assert parts == [set(ATTACKS), set(PLACES), set(DEMANDS)]
    assert not_wrong(await grades(bubblewrap, programs)) == {}


@pytest.mark.slow
async def test_every_attack_is_graded_wrong_in_every_place(sandbox: Pool) -> None:
    assert not_wrong(await grades(sandbox, list(combinations()))) == {}


@pytest.mark.parametrize("place", PLACES)
async def test_control_the_same_place_with_the_right_answer_passes(bubblewrap: Pool, place: str) -> None:
    row = combination("3", "3", place, "equal")
    if "method" in place:
        row["test"] = row["test"].replace("found == 3", "found.startswith == 3")
    assert await grades(bubblewrap, [row]) == {row["name"]: "forged a pass"}, "3 is what the test expects"


async def test_a_program_that_ends_its_sandbox_is_wrong_and_not_ungraded(bubblewrap: Pool) -> None:
    # The test's own process ends at once, without a word, as a crash of the interpreter would.
    program = Program(
        source="def f():\n    return 1",
        test="import os\nos._exit(1) if f() else None",
        limits=ResourceLimits(wall_seconds=60.0, cpu_seconds=60),
    )
    execution = bubblewrap.execute(program)
    assert execution.ending == "lost"
    assert execution.grade is not None
    assert (execution.grade.passed, execution.grade.reason) == (False, "ended_early")


@pytest.mark.parametrize(
    ("source", "test"),
    [
        (
            "def f(x):\n    return type(x)",
            "assert f(3) == int and f('') in (str, bytes) and isinstance(3, f(1))",
        ),
        ("def f(x):\n    return type(x)", "assert f(3) is int and f('') is not int and f(3) is f(4)"),
        (
            "def f(x):\n    return type(x)",
            "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertIs(f(1), int)\n"
            "        self.assertIsNot(f(1), str)\n        self.assertIs(f(None), type(None))",
        ),
        (
            "class P:\n    def __init__(self, x):\n        self.x = x\n    def __eq__(self, o):\n"
            "        return self.x == o.x\n    def __hash__(self):\n        return hash(self.x)",
            "assert len({P(1), P(1), P(2)}) == 2 and P(2) in {P(1), P(2)}",
        ),
        (
            "def f(x):\n    return {'int': int}[x]",
            "assert f('int')('12') == 12 and f('int').__name__ == 'int'",
        ),
        ("def f(x):\n    return x.keys()", "assert f({1: 2}) == {1} and list(f({3: 4})) == [3]"),
        ("def f(x):\n    return x.items()", "assert sorted(f({1: 2})) == [(1, 2)] and f({1: 2}) == {(1, 2)}"),
        (
            "class Bad(ValueError):\n    def __init__(self, code):\n        super().__init__('bad')\n        self.code = code\n"
            "def f(x):\n    raise Bad(x)",
            "try:\n    f(7)\nexcept Bad as error:\n    assert error.code == 7 and str(error) == 'bad'\nelse:\n    assert 0",
        ),
        (
            "import collections\nclass A:\n    pass\ndef f():\n    return A()\ndef g():\n    return iter([1])",
            "from collections.abc import Iterable, Iterator\n"
            "assert not isinstance(f(), Iterable) and isinstance(g(), Iterator)",
        ),
        (
            "class Colour:\n    RED = 1",
            "import enum\nassert Colour.RED == 1",
        ),
        ("def f():\n    return 1", "class TestF:\n    def test_f(self):\n        assert f() == 1"),
    ],
)
async def test_what_honest_programs_need(bubblewrap: Pool, source: str, test: str) -> None:
    grade = bubblewrap.execute(
        Program(source=source, test=test, limits=ResourceLimits(wall_seconds=60.0))
    ).grade
    assert grade is not None
    assert grade.passed, grade


def test_members_of_the_prompts_enumerations_are_themselves(bubblewrap: Pool) -> None:
    trusted = (
        "import enum, functools\nclass Colour(enum.Enum):\n    RED = 1\n    BLUE = 2\nclass Rank(enum.IntEnum):\n    LOW = 1\n"
        "class Square:\n    def __init__(self, side):\n        self.side = side\n"
        "    @functools.cached_property\n    def area(self):\n        return self.side**2\n"
    )
    source = trusted + (
        "def f(x):\n    return Colour.BLUE if x is Colour.RED else x\ndef rank():\n    return Rank.LOW\n"
        "def square(lie):\n    found = Square(3)\n    found.area\n    found.area = found.area - lie\n    return found"
    )
    test = (
        "assert f(Colour.RED) is Colour.BLUE and f(3) == 3 and rank() is Rank.LOW\n"
        "assert square(0).area == 9 and square(5).area == 9"
    )
    program = Program(source=source, test=test, trusted=trusted, limits=ResourceLimits(wall_seconds=60.0))
    grade = bubblewrap.execute(program).grade
    assert grade is not None
    assert grade.passed, grade


@pytest.mark.parametrize(
    "run",
    [
        "unittest.main(argv=['x'], exit=False)",
        "unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T))",
        "unittest.main(argv=['x'])",
        "",
    ],
)
def test_a_failure_that_unittest_only_prints_is_a_failure(bubblewrap: Pool, run: str) -> None:
    test = f"import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(f(), 2)\n{run}"
    found = {}
    for answer in (1, 2):
        program = Program(
            source=f"def f():\n    return {answer}", test=test, limits=ResourceLimits(wall_seconds=60.0)
        )
        grade = bubblewrap.execute(program).grade
        assert grade is not None
        found[answer] = grade.reason
    assert found == {1: "wrong_answer", 2: "passed"}
