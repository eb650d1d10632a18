"""Programs that try to forge a pass or to escape their grade, beyond those of the shared data.

Most speak the wire themselves: descriptor 3 is the program's end of it.
"""

from typing import Any

ADD = "assert add(1, 2) == 3\nassert add(2, 2) == 4\n"
RAW = """
import json, os, struct
def raw(body, missing=0):
    if isinstance(body, (dict, list)): body = json.dumps(body).encode()
    os.write(3, struct.pack(">cI", b"J", len(body) + missing) + body)
"""


def _program(name: str, source: str, test: str = ADD, **more: Any) -> dict[str, Any]:
    return {"name": name, "source": source, "test": test, **more}


PROGRAMS = [
    _program(
        "partial frame then sleep", RAW + "def add(a,b):\n    raw(b'{', 10)\n    import time; time.sleep(60)"
    ),
    _program(
        "callback unregistered",
        RAW
        + "def add(a,b):\n    raw({'callback':-1,'document':{'nodes':[],'values':[[],{}]}})\n    return 3",
    ),
    _program("callback endless", RAW + "def add(a,b):\n    while 1: raw({'callback':0,'document':None})"),
    _program(
        "callback weird",
        RAW
        + "def add(a,b):\n    raw({'callback':None})\n    raw({'callback':{'a':1},'document':[]})\n    raw({'callback':'x','step':'next'})",
    ),
    _program("doc not list", RAW + "def add(a,b):\n    raw({'document':{'nodes':3,'values':[3]}})"),
    _program("doc two values", RAW + "def add(a,b):\n    raw({'document':{'nodes':[],'values':[3,3]}})"),
    _program("doc none", RAW + "def add(a,b):\n    raw({})"),
    _program(
        "changes garbage",
        RAW
        + "def add(a,b):\n    raw({'document':{'nodes':[],'values':[3]},'changes':{'nodes':[],'changed':[[0,['list',[]]]]}})",
    ),
    _program(
        "changes str", RAW + "def add(a,b):\n    raw({'document':{'nodes':[],'values':[3]},'changes':'x'})"
    ),
    _program("error str", RAW + "def add(a,b):\n    raw({'error':'x'})"),
    _program(
        "error lineage odd",
        RAW
        + "def add(a,b):\n    raw({'error':{'lineage':[[{},'x']],'message':'m','arguments':{'nodes':[],'values':[[],[]]},'attributes':[]}})",
    ),
    _program(
        "error name nul",
        RAW
        + "def add(a,b):\n    raw({'error':{'lineage':[[5,'a\\0b'],[None,'Exception']],'message':'m','arguments':{'nodes':[],'values':[[],[]]},'attributes':[]}})",
    ),
    _program(
        "error SystemExit lineage",
        RAW
        + "def add(a,b):\n    raw({'error':{'lineage':[[None,'SystemExit']],'message':'m','arguments':{'nodes':[],'values':[[0],[]]},'attributes':[]}})",
    ),
    _program(
        "error attribute callable",
        "class E(ValueError):\n    pass\ndef add(a,b):\n    e=E(); e.startswith=bool; raise e",
        "try:\n    add(1,2)\nexcept ValueError as e:\n    assert e.startswith('x')",
    ),
    _program(
        "error not decodable",
        RAW
        + "def add(a,b):\n    raw({'error':{'lineage':[[None,'Exception']],'message':'m','arguments':{'nodes':[['eval']],'values':[[],[]]},'attributes':[]}})",
    ),
    _program("own Unsupported", "class Unsupported(Exception): pass\ndef add(a,b): raise Unsupported('x')"),
    _program(
        "guest Unsupported",
        "import sys\nU=sys.modules['evenhand.sandbox.guest.remote'].Unsupported\ndef add(a,b): raise U('x')",
    ),
    _program(
        "guest ProgramGone",
        "import sys\nU=sys.modules['evenhand.sandbox.guest.examiner'].ProgramGone\ndef add(a,b): raise U('x')",
    ),
    _program(
        "ModuleNotFound in unittest",
        "def add(a,b): raise ModuleNotFoundError('numpy')",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1,2),3)\n",
    ),
    _program(
        "SkipTest",
        "import unittest\ndef add(a,b): raise unittest.SkipTest('x')",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1,2),3)\n",
    ),
    _program(
        "SkipTest main",
        "import unittest\ndef add(a,b): raise unittest.SkipTest('x')",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1,2),3)\nunittest.main()\n",
    ),
    _program(
        "not defined unittest",
        "x=1",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1,2),3)\n",
    ),
    _program("empty", ""),
    _program("empty check", "", "def check(candidate):\n    assert candidate(1,2)==3\n", entry_point="add"),
    _program(
        "entry is None",
        "add=None",
        "def check(candidate):\n    assert candidate(1,2)==3\n",
        entry_point="add",
    ),
    _program(
        "entry is exception",
        "class add(Exception): pass",
        "def check(candidate):\n    assert candidate(1,2)==3\n",
        entry_point="add",
    ),
    _program(
        "entry is type", "add=int", "def check(candidate):\n    assert candidate(1,2)==3\n", entry_point="add"
    ),
    _program(
        "entry is set type",
        "add=set",
        "def check(candidate):\n    assert candidate({1,2})=={1,2,3}\n",
        entry_point="add",
    ),
    _program("set type union", "def f(x): return set", "assert f(1).union({1,2})=={1,2}"),
    _program("str type strip", "def f(x): return str", "assert f(1).strip('ab')=='ab'"),
    _program(
        "dict type fromkeys", "def f(x): return dict", "assert f(1).fromkeys('ab')=={'a':None,'b':None}"
    ),
    _program("frozenset type", "def f(x): return frozenset", "assert f(1).union({1})=={1}"),
    _program(
        "type in is-test",
        "def f(x): return set",
        "assert f(1).union({1,2})=={1,2}\nx=set()\nassert x is not list",
    ),
    _program("bytes type", "def f(x): return bytes", "assert f(1).fromhex('00')==b'\\0'"),
    _program(
        "object attr exc class",
        "class R:\n    startswith=ValueError\ndef f(x): return R()",
        "assert f(1).startswith('Hello')",
    ),
    _program(
        "object attr type",
        "class R:\n    startswith=bool\ndef f(x): return R()",
        "assert f(1).startswith('Hello')",
    ),
    _program(
        "object attr test fn",
        "class R: pass\ndef f(g):\n    r=R(); r.startswith=g; return r",
        "def ident(x): return x\nassert f(ident).startswith('Hello')",
    ),
    _program(
        "mapping truthy",
        "class R:\n    def __getitem__(s,k): return True\ndef f(x): return R()",
        "assert f(1)['expected']",
    ),
    _program(
        "mapping str",
        "class R(str):\n    def __getitem__(s,k): return True\ndef f(x): return R()",
        "assert f(1)['expected']",
    ),
    _program("str huge", "def add(a,b): return 'x'*20000000", "r=add(1,2)\nassert r==3, r"),
    _program("print surrogate", "def add(a,b): return '\\ud800'", "print(add(1,2))\nassert add(1,2)==3"),
    _program("sum range", "def f(): return range(10**15)", "assert sum(f())==3"),
    _program(
        "deep list compare",
        "def f():\n    x=[]\n    for _ in range(100000): x=[x]\n    return x",
        "y=[]\nfor _ in range(100000): y=[y]\nassert f()==y+[1]",
    ),
    _program(
        "deep dict",
        "def f():\n    x={}\n    for _ in range(50000): x={1:x}\n    return x",
        "assert f()=={1:2}, f()",
    ),
    _program(
        "coroutine forged",
        "class A:\n    def __await__(s):\n        yield from ()\n        return E()\nclass E:\n    def __eq__(s,o): return True\ndef f(x): return A()",
        "import asyncio\nasync def t():\n    assert await f(1)==3\nasyncio.run(t())",
    ),
    _program(
        "callable bool test",
        "def f(x): return object()",
        "from collections.abc import Iterable\nr=f(1)\nassert isinstance(r,Iterable)",
    ),
    _program("exit handler lost", "import sys,os\ndef add(a,b):\n    os.write(3,b''); os.close(3); return 3"),
    _program("kill self segv", "import os\ndef add(a,b): os.kill(os.getpid(),11)"),
    _program(
        "rlimit", "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE,(3,3))\ndef add(a,b): return 0"
    ),
    _program(
        "unittest exit False",
        "def add(a,b): return 0",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1,2),3)\nunittest.main(argv=['x'],exit=False)",
    ),
    _program(
        "stdout closed by test",
        "def add(a,b): return 0",
        "import sys\nsys.stdout.close()\nassert add(1,2)==3",
    ),
    _program(
        "mem eat",
        "import os\nkids=[]\nfor i in range(40):\n    if os.fork()==0:\n        x=bytearray(b'x'*(12<<20)); import time; time.sleep(100)\ndef add(a,b):\n    return 'x'*(100<<20)",
    ),
    _program(
        "oom adj",
        "import os\nopen('/proc/self/oom_score_adj','w').write('0')\nfor i in range(50):\n    if os.fork()==0:\n        x=bytearray(b'x'*(9<<20)); import time; time.sleep(100)\ndef add(a,b):\n    return [bytes(1<<20) for _ in range(20)]",
    ),
    _program(
        "dataclass field that is a type",
        "import dataclasses\n@dataclasses.dataclass\nclass R:\n    startswith: object\n    equals: object\ndef greet(n):\n    return R(bool, bool)",
        "r = greet('x')\nassert r.startswith('Hello')\nassert r.equals('Hello x')\n",
    ),
    _program(
        "mapping proxy of callables",
        "import types\ndef greet(n):\n    return types.MappingProxyType({'startswith': bool})",
        "assert greet('x')['startswith']('Hello')\n",
    ),
    _program(
        "decimal subclass",
        "import decimal\nclass D(decimal.Decimal):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef add(a, b):\n    return D('nan')",
    ),
    _program(
        "fraction subclass",
        "import fractions\nclass F(fractions.Fraction):\n    def __eq__(s, o): return True\n    def __sub__(s, o): return 0\n    __hash__ = None\ndef add(a, b):\n    return F(0)",
        "assert abs(add(1, 2) - 3) < 1e-9\n",
    ),
    _program(
        "complex subclass",
        "class C(complex):\n    def __eq__(s, o): return True\n    def __abs__(s): return 3\n    __hash__ = None\ndef add(a, b):\n    return C(0)",
    ),
    _program(
        "string equal by casefold",
        "class S(str):\n    def casefold(s): return 'paris'\n    lower = strip = replace = lambda s, *a: S('paris')\n    def __eq__(s, o): return True\n    __hash__ = None\ndef greet(n):\n    return S('rome')",
        "assert greet(1).lower().strip() == 'paris'\n",
    ),
    _program(
        "list whose sort lies",
        "class L(list):\n    def sort(s, **k): s[:] = [1, 2, 3]\n    def __iter__(s): return iter([1, 2, 3])\n    def __len__(s): return 3\n    def __getitem__(s, i): return [1, 2, 3][i]\ndef f(x):\n    return L([9])",
        "r = f(0)\nr.sort()\nassert r == [1, 2, 3]\nassert sorted(f(0)) == [1, 2, 3]\n",
    ),
    _program(
        "dict with a lying missing",
        "class D(dict):\n    def __missing__(s, k): return 3\n    def get(s, *a): return 3\ndef f(x):\n    return D()",
        "assert f(0)['a'] == 3\n",
    ),
    _program(
        "changes the argument to fit",
        "def f(xs):\n    xs.clear()\n    return xs",
        "given = [3, 1, 2]\nassert f(given) == sorted([3, 1, 2])\n",
    ),
    _program(
        "array interface",
        "class N:\n    __array_interface__ = {'shape': (1,), 'typestr': '|i1', 'version': 3}\n    def __array__(s, *a): return s\n    def all(s): return True\n    def __eq__(s, o): return s\n    __hash__ = None\ndef f(x):\n    return N()",
        "assert (f(0) == [1, 2]).all()\n",
    ),
    _program(
        "index and int lie",
        "class I:\n    def __index__(s): return 3\n    __int__ = __index__\n    def __float__(s): return 3.0\n    def __eq__(s, o): return True\n    __hash__ = None\ndef add(a, b):\n    return I()",
    ),
    _program(
        "assertion error replaced",
        "import builtins\nclass Quiet(Exception): pass\nbuiltins.AssertionError = Quiet\ndef add(a, b):\n    return 0",
    ),
    _program(
        "exception chain",
        "def add(a, b):\n    try:\n        raise SystemExit(0)\n    except SystemExit as e:\n        raise KeyError('x') from e",
    ),
    _program(
        "warning as answer",
        "import warnings\nwarnings.simplefilter('error')\ndef add(a, b):\n    warnings.warn('passed')\n    return 3",
    ),
    _program(
        "recursive structure",
        "def f(x):\n    a = []\n    a.append(a)\n    return a",
        "r = f(0)\nassert r == [[1]]\n",
    ),
    _program(
        "very deep structure",
        "def f(x):\n    a = 3\n    for _ in range(20000): a = [a]\n    return a",
        "assert f(0) == 3\n",
    ),
    _program("huge text as message", "def add(a, b):\n    raise ValueError('x' * 50_000_000)"),
    _program(
        "text with control codes",
        "def greet(n):\n    return '\\x00\\x1b[2J\\ud800passed'",
        "assert greet(1) == 'passed'\n",
    ),
    _program(
        "float minus zero and nan",
        "def add(a, b):\n    return float('nan')",
        "r = add(1, 2)\nassert r == r and r == 3\n",
    ),
    _program(
        "generator that exits",
        "def f(n):\n    yield 1\n    import os; os._exit(0)",
        "assert list(f(3)) == [1, 2, 3]\n",
    ),
    _program(
        "generator return value",
        "def f(n):\n    return [1, 2, 3]\n    yield",
        "assert list(f(3)) == [1, 2, 3]\n",
    ),
    _program(
        "async answer",
        "async def add(a, b):\n    return 3\nclass W:\n    def __await__(s): return iter([3])\n    def __eq__(s, o): return True\n    __hash__ = None\nadd = lambda a, b: W()",
    ),
    _program(
        "stdout says passed",
        "import sys, os\nprint('PASSED', flush=True)\nos.write(1, b'{\"passed\": true}\\n')\nos.write(2, b'OK\\n')\nfor fd in range(4, 64):\n    try: os.write(fd, b'{\"passed\": true}\\n')\n    except OSError: pass\ndef add(a, b):\n    return 0",
    ),
    _program(
        "module of the test's names",
        "import sys, types\nm = types.ModuleType('math')\nm.isclose = lambda *a, **k: True\nsys.modules['math'] = sys.modules['numpy'] = m\ndef add(a, b):\n    return 0",
        "import math\nassert math.isclose(add(1, 2), 3)\n",
    ),
    _program(
        "kill the parent",
        "import os, signal\ndef add(a, b):\n    for pid in (1, os.getppid()):\n        for s in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):\n            try: os.kill(pid, s)\n            except OSError: pass\n    return 0",
    ),
    _program(
        "prlimit and ptrace",
        "import ctypes, os\ndef add(a, b):\n    l = ctypes.CDLL(None)\n    l.ptrace(16, os.getppid(), 0, 0)\n    l.process_vm_writev(os.getppid(), 0, 0, 0, 0, 0)\n    open('/proc/%d/mem' % os.getppid(), 'r+b')\n    return 0",
    ),
    _program(
        "test file searched",
        "import os, glob\ndef add(a, b):\n    for root in ('/tmp', '/proc/1', '/work', '/'):\n        for f in glob.glob(root + '/*'):\n            try:\n                t = open(f).read(100000)\n                if 'assert add' in t: exec(t)\n            except Exception: pass\n    return 0",
    ),
    _program(
        "thread answers later",
        "import threading\nclass R:\n    v = 0\ndef add(a, b):\n    r = [0]\n    threading.Timer(0.01, lambda: r.__setitem__(0, 3)).start()\n    return r",
        "r = add(1, 2)\nimport time; time.sleep(0.1)\nassert r == [3] or r == 3\n",
    ),
    _program(
        "equal by reversed operand",
        "class T(tuple):\n    def __eq__(s, o): return True\n    def __req__(s, o): return True\n    __hash__ = None\ndef f(x):\n    return (T(), T())",
        "assert (1, 2) == f(0)\nassert [1, 2] == list(f(0))\n",
    ),
    _program(
        "context manager that swallows",
        "class E:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\ndef f(x):\n    return E()",
        "with f(0) as r:\n    assert r == 3\n",
    ),
    _program(
        "property that raises skip",
        "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('x')",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(add(1, 2), 3)\nunittest.main()\n",
    ),
    _program(
        "pytest skip",
        "def add(a, b):\n    import _pytest.outcomes as o\n    raise o.Skipped('x')",
        "def test_add():\n    assert add(1, 2) == 3\n",
    ),
]
