"""The first text that an interpreter in the sandbox is given: fetch the rest from standard input and run it.

``S``: sources, to be compiled here. ``C``: the same, and the compiled form goes back for later starts of the same
interpreter. ``M``: that compiled form. All three come from the host, before any program does.
"""

import json
import marshal
import os
import sys
import types


def read(count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


kind = read(1)
body = read(int.from_bytes(read(4), "big"))
if kind == b"M":
    parts = marshal.loads(body)  # noqa: S302  the host's own bytes
else:
    parts = [(name, compile(source, name, "exec")) for name, source in json.loads(body)]
if kind == b"C":
    compiled = marshal.dumps(parts)
    data = memoryview(b"M" + len(compiled).to_bytes(4, "big") + compiled)
    while data:
        data = data[os.write(1, data) :]
    os._exit(0)
for name, code in parts:
    module = types.ModuleType(name)
    module.__path__ = []
    sys.modules[name] = module
    exec(code, module.__dict__)  # noqa: S102  the host's own bytes
sys.modules["evenhand.sandbox.guest.supervisor"].main()
