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
]
