"""Programs that try to be graded better than they are. Each would fool a harness that trusts the exit status."""

import subprocess
import sys
from typing import NamedTuple

import pytest

from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import Program, ResourceLimits

ADD_TEST = "assert add(1, 2) == 3\nassert add(2, 2) == 4\n"
CHECK_TEST = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(2, 2) == 4\n"
CLOSE_TEST = "assert abs(add(1, 2) - 3) < 1e-6\nassert abs(3 - add(1, 2)) < 1e-6\n"


class Cheat(NamedTuple):
    name: str
    source: str
    test: str = ADD_TEST
    fools_exit_status: bool = True
    """Whether running program and test in one interpreter would end with status 0."""


CHEATS = [
    Cheat("exit at the top", "import os\nos._exit(0)"),
    Cheat("sys.exit at the top", "import sys\nsys.exit(0)"),
    Cheat("exit in the function", "import os\ndef add(a, b):\n    os._exit(0)"),
    Cheat("sys.exit in the function", "import sys\ndef add(a, b):\n    sys.exit(0)"),
    Cheat("SystemExit in the function", "def add(a, b):\n    raise SystemExit"),
    Cheat("forged word", "import os\nprint('PASSED', flush=True)\nos._exit(0)"),
    Cheat(
        "exit from a thread",
        "import os, threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), os._exit(0))).start()\n"
        "def add(a, b):\n    time.sleep(1)\n    return 0",
    ),
    Cheat("exit by atexit", "import atexit, os\natexit.register(os._exit, 0)\ndef add(a, b):\n    return 0"),
    Cheat(
        "exit from an excepthook",
        "import os, sys\nsys.excepthook = lambda *_: os._exit(0)\ndef add(a, b):\n    return 0",
    ),
    Cheat(
        "closed streams",
        "import os\nfor fd in range(64):\n    try: os.close(fd)\n    except OSError: pass\nos._exit(0)",
    ),
    Cheat(
        "parent leaves, child stays",
        "import os\nif os.fork():\n    os._exit(0)\nimport time\ntime.sleep(3)",
    ),
    Cheat("always equal", "class E:\n    def __eq__(self, o): return True\ndef add(a, b):\n    return E()"),
    Cheat(
        "always equal number",
        "class E(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\n"
        "def add(a, b):\n    return E(7)",
    ),
    Cheat(
        "always equal text",
        "class E(str):\n    def __eq__(self, o): return True\n    __hash__ = str.__hash__\n"
        "def greet(n):\n    return E('?')",
        "assert greet('Ann') == 'Hello Ann'",
    ),
    Cheat(
        "always equal list",
        "class E(list):\n    def __eq__(self, o): return True\ndef f():\n    return E()",
        "assert f() == [1, 2]\nassert [1, 2] == f()",
    ),
    Cheat(
        "equal inside a list",
        "class E:\n    def __eq__(self, o): return True\ndef f():\n    return [E(), E()]",
        "assert f() == [1, 2]",
    ),
    Cheat(
        "difference is nothing",
        "class E:\n    def __sub__(self, o): return 0\n    __rsub__ = __sub__\ndef add(a, b):\n    return E()",
        CLOSE_TEST,
    ),
    Cheat(
        "contains everything",
        "class E:\n    def __contains__(self, o): return True\n    def __len__(self): return 2\n"
        "    def __iter__(self): return iter([0, 0])\ndef f():\n    return E()",
        "r = f()\nassert 3 in r\nassert 4 in r",
    ),
    Cheat(
        "pleasing method",
        "class E:\n    def startswith(self, o): return True\ndef greet(n):\n    return E()",
        "assert greet('Ann').startswith('Hello')",
    ),
    Cheat(
        "pleasing attribute of a function",
        "def greet(n):\n    def f(): pass\n    f.startswith = lambda o: True\n    return f",
        "assert greet('Ann').startswith('Hello')",
    ),
    Cheat(
        "patched abs", "import builtins\nbuiltins.abs = lambda x: 0\ndef add(a, b):\n    return 9", CLOSE_TEST
    ),
    Cheat("own abs", "def abs(x):\n    return 0\ndef add(a, b):\n    return 9", CLOSE_TEST),
    Cheat(
        "patched isclose",
        "import math\nmath.isclose = lambda *a, **k: True\ndef add(a, b):\n    return 9",
        "import math\nassert math.isclose(add(1, 2), 3)",
    ),
    Cheat(
        "own math",
        "class math:\n    isclose = staticmethod(lambda *a: True)\ndef add(a, b):\n    return 9",
        "assert math.isclose(add(1, 2), 3)",
    ),
    Cheat(
        "patched sorted and all",
        "import builtins\nbuiltins.all = lambda x: True\nbuiltins.sorted = lambda x: 0\ndef f(x):\n    return []",
        "assert all(f([x]) == [x] for x in range(3))\nassert sorted(f([2, 1])) == sorted([2, 1])",
    ),
    Cheat(
        "StopIteration ends the test's loop",
        "def f(x):\n    raise StopIteration",
        "for got, want in zip(map(f, [1, 2]), [2, 3]):\n    assert got == want",
    ),
    Cheat(
        "own check",
        "def check(candidate):\n    return True\ndef add(a, b):\n    return 0",
        CHECK_TEST + "check(add)\n",
        fools_exit_status=False,
    ),
    Cheat(
        "patched helper of the prompt",
        "def poly(c, x):\n    return 0\ndef root(c):\n    return 0",
        "assert abs(poly([1, 2], root([1, 2]))) < 1e-4",
    ),
    Cheat(
        "frames of the caller",
        "import sys\n"
        "def add(a, b):\n"
        "    frame = sys._getframe()\n"
        "    while frame.f_back: frame = frame.f_back\n"
        "    import os; os._exit(0)",
    ),
    Cheat(
        "trace function",
        "import sys\n"
        "def tracer(frame, event, arg):\n"
        "    return None\n"
        "sys.settrace(tracer)\n"
        "def add(a, b):\n"
        "    import os; os._exit(0)",
    ),
    Cheat(
        "writes to every descriptor",
        "import os, json, struct\n"
        "body = json.dumps({'event': 'end', 'nonce': '', 'ending': '', 'memory': False, 'status': 0, 'truncated':"
        " False, 'grade': {'passed': True, 'reason': 'passed', 'message': '', 'calls': 1}, 'wall_seconds': 0,"
        " 'cpu_seconds': 0, 'memory_bytes': 0}).encode()\n"
        "for fd in range(64):\n"
        "    for data in (body, struct.pack('>cI', b'J', len(body)) + body):\n"
        "        try: os.write(fd, data)\n"
        "        except OSError: pass\n"
        "os._exit(0)",
    ),
    Cheat(
        "descriptors of process 1",
        "import os\n"
        "for fd in range(64):\n"
        "    try:\n"
        "        with open(f'/proc/1/fd/{fd}', 'wb') as f: f.write(b'passed')\n"
        "    except OSError: pass\n"
        "os._exit(0)",
    ),
    Cheat(
        "stops process 1",
        "import os, signal\n"
        "for n in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):\n"
        "    try: os.kill(1, n) if os.getpid() != 1 and os.getppid() == 1 else None\n"
        "    except OSError: pass\n"
        "def add(a, b):\n    os._exit(0)",
    ),
    Cheat(
        "searches memory for the answers",
        "import gc\n"
        "def add(a, b):\n"
        "    found = [o for o in gc.get_objects() if isinstance(o, str) and 'assert add' in o]\n"
        "    code = [o for o in gc.get_objects() if hasattr(o, 'co_consts') and '<test>' in str(o)]\n"
        "    return 3 if (a, b) == (1, 2) and (found or code) else 0",
        fools_exit_status=False,
    ),
    Cheat(
        "answers with changes to the test's own things",
        "import sys\n"
        "v = sys.modules.get('evenhand.sandbox.guest.values')\n"
        "if v:\n"
        "    v.changes = lambda c, o, b: {'nodes': [], 'changed': [[0, ['object', 'x', ['_named'], [True]]]]}\n"
        "def apply(f):\n    return 0",
        "def double(x):\n    return 2 * x\nassert apply(double) == 4",
        fools_exit_status=False,
    ),
    Cheat(
        "pleasing field of a tuple",
        "import collections\ndef greet(n):\n"
        "    return collections.namedtuple('R', 'startswith')(lambda o: True)",
        "assert greet('Ann').startswith('Hello')",
    ),
    Cheat(
        "pleasing attribute of the prompt's class",
        "class Box:\n    pass\ndef greet(n):\n    box = Box()\n    box.startswith = lambda o: True\n    return box",
        "assert greet('Ann').startswith('Hello')",
    ),
    Cheat(
        "swallows the assertion of a callback",
        "def each(f, xs):\n    for x in xs:\n        try: f(0)\n        except AssertionError: pass",
        "def look(x):\n    assert x == 3\neach(look, [3])",
    ),
    Cheat(
        "limits the supervisor",
        "import resource\n"
        "for what in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE):\n"
        "    try: resource.prlimit(1, what, (0, 0))\n"
        "    except OSError: pass\n"
        "def add(a, b):\n    return 0",
        fools_exit_status=False,
    ),
    Cheat(
        "takes every process",
        "import os, time\n"
        "for _ in range(100):\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(60); os._exit(0)\n"
        "    except OSError: break\n"
        "def add(a, b):\n    return 0",
        fools_exit_status=False,
    ),
    Cheat(
        "a child answers in its place",
        "import os\nif os.fork():\n    os._exit(0)\ndef add(a, b):\n    return a + b",
    ),
    Cheat(
        "garbage on the pipe",
        "import os\ndef add(a, b):\n    os.write(3, b'J\\xff\\xff\\xff\\xff')\n    return 3",
        fools_exit_status=False,
    ),
    Cheat(
        "claims an exception that the test expects elsewhere",
        "def f(x):\n    raise AssertionError('expected')",
        "assert f(1) == 2",
        fools_exit_status=False,
    ),
]


def test_every_cheat_is_listed_once() -> None:
    assert len({cheat.name for cheat in CHEATS}) == len(CHEATS)


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_a_cheat_is_graded_incorrect(sandbox: Pool, cheat: Cheat) -> None:
    program = Program(
        source=cheat.source,
        test=cheat.test,
        trusted="def poly(c, x):\n    return sum(k * x**i for i, k in enumerate(c))\nclass Box:\n    pass",
        entry_point="add",
        limits=ResourceLimits(wall_seconds=100.0, cpu_seconds=60),
    )
    execution = sandbox.execute(program)
    assert execution.grade is not None
    assert not execution.grade.passed, execution.grade
    assert execution.grade.reason in ("wrong_answer", "program_error", "ended_early"), execution.grade


@pytest.mark.parametrize("cheat", [c for c in CHEATS if c.fools_exit_status], ids=lambda cheat: cheat.name)
def test_control_the_cheat_fools_a_harness_that_trusts_the_exit_status(cheat: Cheat) -> None:
    if cheat.name in ("descriptors of process 1", "stops process 1"):
        # Outside a sandbox process 1 is the machine's: the same ending without the attempt.
        source = "import os\ndef add(a, b):\n    os._exit(0)"
    else:
        source = cheat.source
    code = f"{source}\n{cheat.test}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, timeout=300, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
