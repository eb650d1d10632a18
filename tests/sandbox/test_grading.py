"""What a test can do with a program that lives in another process: nearly everything that it could in one."""

# ruff: noqa: ISC004  programs are written as joined lines

import pytest

from evenhand.core.errors import ScoringError
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import MEBIBYTE, Grade, Program, ResourceLimits
from evenhand.scoring.code_execution import code_sandbox, code_sandbox_async
from evenhand.scoring.types import ScorerInput


async def grade_program(
    pool: Pool, source: str, test: str, *, trusted: str = "", entry_point: str | None = None
) -> Grade:
    program = Program(
        source=source,
        test=test,
        trusted=trusted,
        entry_point=entry_point,
        limits=ResourceLimits(wall_seconds=100.0, cpu_seconds=60),
    )
    grade = (await pool.run(program)).grade
    assert grade is not None
    return grade


PASSES = {
    "plain values": (
        "def same(x):\n    return x",
        "for x in [None, True, -1, 2**200, 1.5, float('inf'), 'é\\ud800', b'x', [1, [2]], (1, (2,)), {1: {2}},\n"
        "          {'a': [None]}, frozenset({1}), 3j, range(3), slice(1, 2), int, ..., bytearray(b'ab'), '']:\n"
        "    got = same(x)\n"
        "    assert got == x and type(got) is type(x), x\n"
        "nan = same(float('nan'))\nassert nan != nan",
    ),
    "library values": (
        "from decimal import Decimal\nimport datetime, fractions, collections\n"
        "P = collections.namedtuple('P', 'x y')\n"
        "def f():\n    return [Decimal('1.10'), fractions.Fraction(1, 3), datetime.date(2020, 2, 29),\n"
        "        datetime.timedelta(1, 2), collections.Counter('aab'), collections.deque([1], 3), P(1, 2),\n"
        "        collections.OrderedDict(a=1), collections.defaultdict(int, a=1)]",
        "import datetime, decimal, fractions\n"
        "d, f3, day, delta, count, queue, point, ordered, default = f()\n"
        "assert d == decimal.Decimal('1.1') and f3 == fractions.Fraction(1, 3) and day.year == 2020\n"
        "assert delta.days == 1 and count['a'] == 2 and list(queue) == [1] and point.y == 2 and point == (1, 2)\n"
        "assert ordered == {'a': 1} == default",
    ),
    "arguments changed in place": (
        "def sort(x):\n    x.sort()\ndef put(d, k):\n    d[k] = [k]\n    d['n'].append(1)",
        "x = [3, 1, 2]\nassert sort(x) is None and x == [1, 2, 3]\n"
        "d = {'n': []}\ninner = d['n']\nput(d, 'k')\nassert d == {'n': [1], 'k': ['k']} and inner == [1]",
    ),
    "the argument itself comes back": (
        "def same(x):\n    return x\ndef first(x):\n    return x[0]",
        "x = [[1]]\nassert same(x) is x and first(x) is x[0]\ny = []\ny.append(y)\nassert same(y) is y",
    ),
    "generators and iterators": (
        "def count():\n    n = 0\n    while True:\n        yield n\n        n += 1\ndef pairs(x):\n    return zip(x, x)",
        "import itertools\nassert list(itertools.islice(count(), 3)) == [0, 1, 2]\n"
        "assert list(pairs([1])) == [(1, 1)]\ng = count()\nassert next(g) == 0 and next(g) == 1\nassert 5 in g",
    ),
    "functions of the test": (
        "def twice(f, x):\n    return f(f(x))\ndef total(it):\n    return sum(it)\ndef make(n):\n"
        "    def add(x):\n        return x + n\n    return add",
        "assert twice(lambda x: x * 3, 2) == 18 and total(i for i in range(4)) == 6 and make(2)(3) == 5\n"
        "assert twice(str.upper, 'a') == 'A'",
    ),
    "classes": (
        "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n"
        "    def pop(self): return self.items.pop()\n    def __len__(self): return len(self.items)\n"
        "    def __eq__(self, o): return self.items == o.items\n    def __getitem__(self, i): return self.items[i]",
        "s = Stack()\ns.push(4)\ns.push([5])\nassert len(s) == 2 and s[0] == 4 and s.pop() == [5]\n"
        "assert isinstance(s, Stack) and s.items == [4]\nt = Stack()\nt.push(4)\nassert s == t and s != Stack()\n"
        "try:\n    Stack().pop()\nexcept IndexError:\n    pass\nelse:\n    assert False",
    ),
    "exceptions": (
        "class Bad(ValueError): pass\nclass Worse(Bad): pass\n"
        "def f(x):\n    raise {1: KeyError('k'), 2: Worse('w'), 3: ZeroDivisionError()}[x]",
        "import unittest\nt = unittest.TestCase()\n"
        "with t.assertRaises(KeyError) as c: f(1)\nassert c.exception.args == ('k',)\n"
        "for kind in (ValueError, Bad, Worse):\n    with t.assertRaises(kind): f(2)\n"
        "with t.assertRaises(ArithmeticError): f(3)",
    ),
    "asynchronous functions": (
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x + 1",
        "import asyncio\nassert asyncio.run(f(1)) == 2\nasync def main():\n    return await f(2)\n"
        "assert asyncio.run(main()) == 3",
    ),
    "output and input": (
        "def hello():\n    print('hello', input('name? '))\ndef read():\n    import sys\n    return sys.stdin.read()",
        "import contextlib, io, sys\nfrom unittest.mock import patch\nout = io.StringIO()\n"
        "with contextlib.redirect_stdout(out), patch('builtins.input', return_value='Ann') as ask:\n    hello()\n"
        "assert out.getvalue() == 'hello Ann\\n', out.getvalue()\nask.assert_called_once_with('name? ')\n"
        "sys.stdin = io.StringIO('abc')\nassert read() == 'abc'",
    ),
    "global values": (
        "LIMIT = 3\nseen = []\ndef see(x):\n    seen.append(x)",
        "assert LIMIT == 3\nsee(1)\nassert seen == [1]",
    ),
    "unittest": (
        "def add(a, b):\n    return a + b",
        "import unittest\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)",
    ),
    "unittest.main": (
        "def add(a, b):\n    return a + b",
        "import unittest\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
        "unittest.main(argv=['x'])",
    ),
    "a test case beside other statements": (
        "class Adder:\n    def add(self, a, b):\n        return a + b",
        "import unittest\nadder = Adder()\nclass T(unittest.TestCase):\n    def test_add(self):\n"
        "        self.assertEqual(adder.add(1, 2), 3)",
    ),
    "asynchronous test functions": (
        "async def f(x):\n    return x + 1",
        "async def test_f():\n    assert await f(1) == 2",
    ),
    "test functions": ("def add(a, b):\n    return a + b", "def test_add():\n    assert add(1, 2) == 3"),
    "module imported by the program only": (
        "import math\ndef area(r):\n    return math.pi * r * r",
        "assert math.isclose(area(1), math.pi)",
    ),
    "match objects are true": (
        "import re\ndef ok(s):\n    return re.match('a', s)",
        "assert ok('abc')\nassert not ok('b')",
    ),
}


@pytest.mark.parametrize("name", PASSES)
async def test_a_right_program_passes(bubblewrap: Pool, name: str) -> None:
    source, test = PASSES[name]
    grade = await grade_program(bubblewrap, source, test)
    assert grade.passed, grade


async def test_instances_of_the_prompts_classes_travel_by_value(bubblewrap: Pool) -> None:
    trusted = "class Node:\n    def __init__(self, val, next=None):\n        self.val = val\n        self.next = next"
    source = trusted + (
        "\ndef reverse(node):\n    last = None\n    while node:\n        node.next, last, node = last, node, node.next\n"
        "    return last"
    )
    test = (
        "head = None\nfor n in range(3000):\n    head = Node(n, head)\nfirst = head\nr = reverse(head)\n"
        "assert type(r) is Node and r.val == 0 and r.next.val == 1 and first.next is None"
    )
    grade = await grade_program(bubblewrap, source, test, trusted=trusted)
    assert grade.passed, grade


@pytest.mark.parametrize(
    ("source", "test", "reason", "says"),
    [
        ("def f(): return 1", "assert f() == 2, 'off'", "wrong_answer", "off at line 1 of the test"),
        ("def f(): return [][1]", "f()", "program_error", "IndexError"),
        ("def f(:", "f()", "program_error", "SyntaxError"),
        ("1 / 0", "f()", "program_error", "ZeroDivisionError"),
        ("x = 1", "f()", "program_error", "name 'f' is not defined"),
        ("import os\nos._exit(3)", "f()", "ended_early", "before its test could start"),
        ("import os\ndef f(): os._exit(3)", "f()", "ended_early", "before its test did"),
        (
            "import os\ndef f(): os._exit(3)",
            "try:\n    f()\nexcept BaseException:\n    pass",
            "ended_early",
            "",
        ),
        ("def f():\n    while True: pass", "f()", "timeout", "time limit"),
        ("def f():\n    return bytearray(2_000_000_000)", "f()", "memory_limit", "memory"),
        ("def f():\n    while True: print('x' * 10000)", "f()", "output_limit", "output limit"),
        ("def f(): return 1", "assert f( == 1", "bad_test", "not Python"),
        ("def f(): return 1", "import no_such_module\nf()", "bad_test", "no_such_module"),
        ("def f(x): return 1", "class A: pass\nf(A())", "bad_test", "only the test knows"),
        ("class A: pass", "class B(A): pass", "bad_test", "derives a class"),
        (
            "def f(x): return 1",
            "import unittest\ny = f(1)\nclass T(unittest.TestCase):\n    def test(self):\n        assert f(1) == 2",
            "wrong_answer",
            "AssertionError",
        ),
        ("def f(x): return 1", "f(1)\ndef test_f():\n    assert f(1) == 2", "wrong_answer", ""),
        ("def f(x): return 1", "x = 1", "program_not_tested", "without using the program"),
        ("def f(x): return 1", "def check(candidate):\n    assert False", "program_not_tested", ""),
    ],
)
async def test_every_ending_has_its_reason(
    bubblewrap: Pool, source: str, test: str, reason: str, says: str
) -> None:
    limits = ResourceLimits(
        wall_seconds=2.0 if reason == "timeout" else 100.0, cpu_seconds=60, memory_bytes=128 * MEBIBYTE
    )
    program = Program(source=source, test=test, limits=limits)
    grade = (await bubblewrap.run(program)).grade
    assert grade is not None
    assert (grade.passed, grade.reason) == (False, reason), grade
    assert says in grade.message


async def test_what_a_graded_program_printed_is_kept(bubblewrap: Pool) -> None:
    source = "print('top')\ndef f():\n    print('call')\n    return f.__doc__"
    execution = await bubblewrap.run(
        Program(source=source, test="print('test')\nassert f() is f.__doc__ is None")
    )
    assert execution.grade is not None
    assert execution.grade.passed
    assert sorted(execution.stdout.split()) == [b"call", b"test", b"top"]


async def test_a_test_that_is_at_fault_is_an_error_not_a_grade(bubblewrap: Pool) -> None:
    sample = ScorerInput(
        response="def f(): return 1", metadata={"_test": "import no_such_module"}, sandbox=bubblewrap
    )
    with pytest.raises(ScoringError) as caught:
        await code_sandbox_async(sample)
    assert caught.value.kind == "bad_test"


def test_the_example_of_the_documentation(bubblewrap: Pool) -> None:
    sample = ScorerInput(
        response="```python\ndef add(a, b):\n    return a + b\n```",
        target="add",
        metadata={"_prompt": "def add(a, b):\n", "_test": "assert add(1, 2) == 3", "entry_point": "add"},
        sandbox=bubblewrap,
    )
    assert code_sandbox(sample) == {"correct": True, "extracted": "def add(a, b):\n    return a + b"}


def test_an_entry_point_may_have_the_name_of_a_builtin(bubblewrap: Pool) -> None:
    for body, correct in (("return -1", False), ("return a ** b", True)):
        sample = ScorerInput(
            response=f"def pow(a, b):\n    {body}",
            metadata={"_test": "assert pow(2, 3) == 8", "entry_point": "pow"},
            sandbox=bubblewrap,
        )
        assert code_sandbox(sample)["correct"] is correct
