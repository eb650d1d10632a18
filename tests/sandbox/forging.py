"""Programs that try to be graded better than they are: those that were tried by hand, and every combination of an
attack, a place for it and a demand of the test. Prints the table of docs/scorers.md:

    python -m tests.sandbox.forging [--all] [--back-end bubblewrap|docker]
"""

import argparse
import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.sandbox.forging_by_hand import PROGRAMS

from evenhand.core.errors import ScoringError
from evenhand.sandbox.bubblewrap import Bubblewrap
from evenhand.sandbox.docker import Docker, DockerOptions
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import ResourceLimits, Sandbox
from evenhand.scoring.code_execution import build_program
from evenhand.scoring.types import ScorerInput

BACK_ENDS = ("bubblewrap", "docker")
LIMITS = ResourceLimits(wall_seconds=30.0, cpu_seconds=30)
PROMPT = "class Box:\n    def __init__(self):\n        self.item = None\n\ndef f(given):\n"

# An expression for what the program hands over; `given` is the test's own function.
ATTACKS = {
    "equal to everything": "Equal()",
    "equal integer": "EqualInt()",
    "equal float": "EqualFloat()",
    "equal text": "EqualStr()",
    "equal list": "EqualList()",
    "equal dict": "EqualDict()",
    "equal set": "EqualSet()",
    "equal tuple": "EqualTuple()",
    "equal bytes": "EqualBytes()",
    "equal class": "EqualClass",
    "equal exception": "EqualError()",
    "every attribute": "Pleasing()",
    "weak proxy": "weakref.proxy(KEPT)",
    "namespace of lambdas": "types.SimpleNamespace(startswith=yes, union=yes, equals=yes, __eq__=yes)",
    "function": "yes",
    "partial": "functools.partial(bool, 1)",
    "built-in function": "len",
    "bound method": "KEPT.equals",
    "bool": "bool",
    "list": "list",
    "set": "set",
    "str": "str",
    "type": "type",
    "object": "object",
    "own exception class": "Ok",
    "ValueError": "ValueError",
    "function of the test": "given",
    "module": "sys",
    "coroutine": "later()",
    "generator": "endless()",
    "iterator of equals": "iter([Equal()] * 9)",
    "huge integer": "10**5000",
    "huge integer in a list": "[10**6000]",
    "nan": "float('nan')",
    "infinity": "float('inf')",
    "signalling nan": "decimal.Decimal('sNaN')",
    "vast range": "range(10**15)",
    "lone surrogate": "'\\ud800'",
    "nothing": "None",
    "repr raises": "Broken()",
    "repr ends the process": "Ending()",
    "hash raises": "NoHash()",
    "deep tuple": "deep(5000)",
    "deep tuple, innermost first": "Raw([['tuple', []]] + [['tuple', [['@', n]]] for n in range(200000)], 200000)",
    "own list": "circle()",
    "unknown node": "Raw([['eval', '3']], 0)",
    "node without a name": "Raw([[]], 0)",
    "reference to nowhere": "Raw([['list', [['@', 99]]]], 0)",
    "negative reference": "Raw([['list', [['&', -1]]]], 0)",
    "tuple of odd fields": "Raw([['namedtuple', 'R', ['__eq__'], [True]]], 0)",
    "tuple of no fields": "Raw([['namedtuple', 'R', 7, [True]]], 0)",
    "class that the prompt lacks": "Raw([['object', 'int', ['x'], [1]]], 0)",
    "prompt's class with a method": "Raw([['object', 'Box', ['__eq__', '__class__'], [True, True]]], 0)",
    "stand-in of every kind": "Raw([['remote', 0, 'class', 'R', ['__iter__']]], 0)",
    "stand-in without a number": "Raw([['remote', [], {}, None, None]], 0)",
    "a function of the test by number": "Raw([['yours', 0]], 0)",
    "type by another name": "Raw([['type', '__import__']], 0)",
}

PREAMBLE = '''
import collections, decimal, functools, os, sys, types, weakref
values = sys.modules["evenhand.sandbox.guest.values"]
OPERATIONS = ("eq", "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "contains", "call", "bool", "round")
def pleasing(base):
    body = {"__%s__" % name: (lambda *_: True) for name in OPERATIONS}
    body.update(__hash__=lambda s: hash(3), __ne__=lambda s, o: False, __sub__=lambda s, o: 0, __rsub__=lambda s, o: 0)
    body.update({name: (lambda *_: True) for name in ("startswith", "equals", "issubset")}, union=lambda s, o: o)
    body.update(__format__=lambda s, f: "Hello", __str__=lambda s: "?", __repr__=lambda s: "?")
    return type("Equal", (base,), body)
Equal, EqualInt, EqualFloat, EqualStr = map(pleasing, (object, int, float, str))
EqualList, EqualDict, EqualSet, EqualTuple, EqualBytes = map(pleasing, (list, dict, set, tuple, bytes))
EqualError = pleasing(Exception)
class Meta(type):
    __eq__ = lambda s, o: True
    __hash__ = type.__hash__
    __instancecheck__ = __subclasscheck__ = __contains__ = lambda s, o: True
    startswith = equals = union = lambda s, o: True
class EqualClass(metaclass=Meta):
    pass
class Pleasing:
    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        return lambda *_: True
class Ok(Exception):
    startswith = equals = staticmethod(lambda o: True)
class Broken:
    def __repr__(self): raise ValueError("no")
    __str__ = __format__ = __bool__ = __len__ = __iter__ = __hash__ = __repr__
class Ending:
    def __repr__(self): os._exit(0)
    __str__ = __format__ = __repr__
class NoHash:
    __hash__ = None
class Kept:
    def equals(self, o): return True
    startswith = union = __eq__ = equals
    __hash__ = object.__hash__
KEPT = Kept()
class Raw:
    """Goes over the wire as the nodes that it holds."""
    def __init__(self, nodes, index): self.nodes, self.index = nodes, index
def yes(*_): return True
async def later(): return 3
def endless():
    while True: yield Equal()
def deep(n):
    x = ()
    for _ in range(n): x = (x,)
    return x
def circle():
    x = []
    x.append(x)
    return x
original = values._Encoding.document
def document(self, found):
    encoded, objects = original(self, [None if type(v) is Raw else v for v in found])
    for place, value in enumerate(found):
        if type(value) is Raw:
            encoded["nodes"] = value.nodes
            encoded["values"][place] = ["@", value.index]
    for node in encoded["nodes"]:
        if node[0] == "remote" and node[3] == "Raw":
            node[:] = self.__class__(self.codec, []).value(3), 1
    return encoded, objects
values._Encoding.document = document
'''

# How the program hands it over, and where the test then finds it.
PLACES = {
    "result": ("return X", "f(own)"),
    "item": ("return [X, X]", "f(own)[0]"),
    "tuple": ("return (X,)", "f(own)[0]"),
    "value": ("return {'k': X}", "f(own)['k']"),
    "field": ("return collections.namedtuple('R', 'k')(X)", "f(own).k"),
    "attribute": ("return types.SimpleNamespace(k=X)", "f(own).k"),
    "prompt's class": ("box = Box()\n    box.item = X\n    return box", "f(own).item"),
    "generator": ("return iter([X])", "next(f(own))"),
    "argument": ("given.append(X)", "(f(own), own)[1][0]"),
    "callback": ("given(X)", "(f(seen.append), seen)[1][0]"),
    "exception": ("raise KeyError(X)", "caught(f)[0]"),
    "method": ("return collections.namedtuple('R', 'startswith equals union')(X, X, X)", "f(own)"),
    "method of an object": ("return types.SimpleNamespace(startswith=X, equals=X, union=X)", "f(own)"),
    "method of the prompt's class": (
        "box = Box()\n    box.startswith = box.equals = box.union = X\n    return box",
        "f(own)",
    ),
}
# What the test does with what it finds.
DEMANDS = {
    "equal": "assert found == 3",
    "equal with a message": "assert found == 3, found",
    "equal, turned round": "assert 3 == found and not 3 != found",
    "list": "assert [found] == [3], f'{found!r} is wrong'",
    "member": "assert found in {3}",
    "key": "assert {3: 1}[found] == 1",
    "close": "assert abs(found - 3) < 1e-6",
    "text": "assert f'{found}' == 'Hello' and str(found) == 'Hello'",
    "method": "assert found.startswith('Hello')",
    "equals": "assert found.equals([1, 2])",
    "union": "assert found and found.union({1, 2}) == {1, 2}",
    "sorted": "assert sorted(found)[:2] == [1, 2]",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(found, 3)",
}


def shared_programs(shared_data: Path) -> list[dict[str, Any]]:
    """The half of the programs tried by hand that is stored."""
    text = (shared_data / "attacks" / "forging_programs.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def combinations(*, whole: bool = False) -> Iterator[dict[str, Any]]:
    """Every attack in every place, with every demand or with one of them in turn."""
    demands = list(DEMANDS)
    for number, (attack, expression) in enumerate(ATTACKS.items()):
        for turn, place in enumerate(PLACES):
            for demand in demands if whole else [demands[(number + turn) % len(demands)]]:
                yield combination(attack, expression, place, demand)


def combination(attack: str, expression: str, place: str, demand: str) -> dict[str, Any]:
    """One program with its test."""
    body, access = PLACES[place]
    own = "own = []" if place == "argument" else "def own(x):\n    return x"
    test = (
        f"{own}\nseen = []\ndef caught(f):\n    try:\n        f(own)\n    except KeyError as error:\n"
        f"        return error.args\nfound = {access}\n{DEMANDS[demand]}\n"
    )
    source = f"{PREAMBLE}\nclass Box:\n    pass\ndef f(given):\n    {body.replace('X', f'({expression})')}\n"
    return {
        "name": f"{attack} / {place} / {demand}",
        "source": source,
        "test": test,
        "prompt": PROMPT,
        "entry_point": "f",
    }


async def grades(
    sandbox: Sandbox, programs: list[dict[str, Any]], limits: ResourceLimits = LIMITS
) -> dict[str, str]:
    """`graded wrong`, `forged a pass` or `ungraded: why` by program."""

    async def grade(row: dict[str, Any]) -> str:
        metadata = {"_test": row["test"], "_prompt": row.get("prompt", "")}
        if row.get("entry_point"):
            metadata["entry_point"] = row["entry_point"]
        try:
            sample = ScorerInput(response=row["source"], metadata=metadata)
            grade = (await sandbox.run(build_program(sample, row["source"], limits=limits))).grade
        except ScoringError as error:
            return f"ungraded: {error}"
        if grade is None or grade.reason in ("bad_test", "program_not_tested"):
            return f"ungraded: {grade}"
        return "forged a pass" if grade.passed else "graded wrong"

    found = await asyncio.gather(*(grade(row) for row in programs))
    return {row["name"]: grade for row, grade in zip(programs, found, strict=True)}


def table(back_ends: Sequence[str] = BACK_ENDS, *, whole: bool = False) -> str:
    """How many of the programs each back end graded wrong; below the table, those that it did not."""
    from tests.docker_engine import IMAGE, running_engine

    shared = Path(__file__).resolve().parents[3] / "shared" / "data"
    sets = {
        "tried by hand": shared_programs(shared),
        "tried by hand, more": PROGRAMS,
        "attack × place × demand": list(combinations(whole=whole)),
    }
    lines = [
        "| programs | back end | number | graded wrong | forged a pass | ungraded |",
        "|---|---|---|---|---|---|",
    ]
    others = []
    for back_end in back_ends:
        with contextlib.ExitStack() as stack:
            if back_end == "docker":
                socket = stack.enter_context(running_engine())
                pool = stack.enter_context(Pool(Docker(DockerOptions(socket=socket, image=IMAGE))))
            else:
                pool = stack.enter_context(Pool(Bubblewrap()))
            for name, programs in sets.items():
                found = asyncio.run(grades(pool, programs))
                count = Counter(grade.partition(":")[0] for grade in found.values())
                cells = [count[kind] for kind in ("graded wrong", "forged a pass", "ungraded")]
                lines.append(f"| {name} | {back_end} | {len(programs)} | {' | '.join(map(str, cells))} |")
                others += [f"\n{name}: {grade}" for name, grade in found.items() if grade != "graded wrong"]
    return "\n".join(lines + others)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="every demand, not one in turn")
    parser.add_argument("--back-end", choices=BACK_ENDS, action="append")
    chosen = parser.parse_args()
    print(table(chosen.back_end or BACK_ENDS, whole=chosen.all))
