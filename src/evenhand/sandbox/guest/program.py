"""The program's side: runs model-written code in this process and answers the test's calls.

Nothing here is trusted by anyone. The code that it runs can change all of it, and gains only the freedom to
answer the test's calls in its own way.
"""

import builtins
import contextlib
import io
import operator
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

from evenhand.sandbox.guest import values, wire

FILE_NAME = "program.py"
_ABILITIES = (
    "__len__",
    "__iter__",
    "__next__",
    "__reversed__",
    "__getitem__",
    "__enter__",
    "__exit__",
    "__await__",
)


def load(source: str, name: str) -> types.ModuleType:
    """Run the program's own statements."""
    module = types.ModuleType(name)
    module.__file__ = os.path.abspath(FILE_NAME)
    sys.modules[name] = module
    exec(compile(source, FILE_NAME, "exec"), module.__dict__)  # noqa: S102  this process exists to run it
    return module


def run_script(source: str) -> int:
    """Run the program as a script and give its exit status."""
    status = 0
    try:
        load(source, "__main__")
    except SystemExit as error:
        status = _exit_status(error)
    except BaseException as error:
        _show(error)
        status = 1
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for the program's threads, as an interpreter does
        import atexit

        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        status = status or 120
    return status


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def _show(error: BaseException) -> None:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != FILE_NAME:
        trace = trace.tb_next
    sys.stderr.write("".join(traceback.format_exception(type(error), error, trace)))
    sys.stderr.flush()


def serve(fd: int, source: str) -> int:
    """Run the program, then answer the test until it hangs up."""
    server = _Server(fd)
    try:
        module = load(source, "program")
    except BaseException as error:
        if not isinstance(error, SystemExit):
            _show(error)
        wire.write_json(fd, {"error": server.error(error)})
        return 1
    server.names = module.__dict__
    reply: dict[str, Any] = {"ready": True}
    while True:
        # The test's side ends this process when it is done: nothing may wait in a buffer.
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        wire.write_json(fd, reply)
        request = wire.read_json(fd)
        if request is None:
            return 0
        reply = server.answer(request)


class _Server(values.Codec):
    def __init__(self, fd: int) -> None:
        super().__init__()
        self.fd = fd
        self.names: dict[str, Any] = {}
        self.handles: list[Any] = []
        self.numbers: dict[int, int] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.classes = {
            name: self.names[name]
            for name in request.get("classes", ())
            if isinstance(self.names.get(name), type)
        }
        capture = io.StringIO() if request.get("capture") else None
        try:
            (target, args, kwargs), objects = self.decode(request["document"])
            before = values.snapshot(objects)
            with _Surroundings(self, request, capture):
                result = _OPERATIONS[request["do"]](self, target, *args, **kwargs)
            document, _ = self.encode([result], objects)
            reply: dict[str, Any] = {
                "document": document,
                "changes": values.changes(self, objects, before),
            }
        except BaseException as error:
            reply = {"error": self.error(error)}
        if capture is not None:
            reply["output"] = capture.getvalue()
        return reply

    def number(self, value: Any) -> int:
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.handles)
            self.handles.append(value)
        return number

    def export(self, value: Any) -> list[Any]:
        if isinstance(value, _Callback):
            return ["yours", value.number]
        if isinstance(value, type):
            kind = "exception" if issubclass(value, BaseException) else "class"
        elif isinstance(value, types.ModuleType):
            kind = "module"
        elif isinstance(value, types.CoroutineType):
            kind = "coroutine"
        elif callable(value) and hasattr(value, "__name__"):
            kind = "function"
        else:
            kind = "object"
        title = value.__name__ if kind == "class" else type(value).__name__
        detail: list[Any] = (
            self.lineage(value)
            if kind == "exception"
            else [name for name in _ABILITIES if getattr(type(value), name, None) is not None]
        )
        if kind == "class" and hasattr(value, "__class_getitem__"):
            detail.append("__getitem__")
        return ["remote", self.number(value), kind, title, detail]

    def adopt(self, node: list[Any]) -> Any:
        if node[0] == "yours":
            return self.handles[node[1]]
        if node[0] == "callback":
            return _Callback(self, node[1], node[2])
        return super().adopt(node)

    def lineage(self, kind: type[BaseException]) -> list[list[Any]]:
        """The class and its parents up to the first that Python itself defines."""
        found: list[list[Any]] = []
        for parent in kind.__mro__:
            if vars(builtins).get(parent.__name__) is parent:
                found.append([None, parent.__name__])
                break
            if issubclass(parent, BaseException):
                found.append([self.number(parent), parent.__name__])
        return found

    def error(self, error: BaseException) -> dict[str, Any]:
        names = [name for name in getattr(error, "__dict__", {}) if isinstance(name, str)]
        try:
            arguments, _ = self.encode([list(error.args), [vars(error)[name] for name in names]])
        except Exception:
            names = []
            arguments, _ = self.encode([[], []])
        last = traceback.extract_tb(error.__traceback__)[-1:]
        place = f" (line {last[0].lineno})" if last and last[0].filename == FILE_NAME else ""
        return {
            "lineage": self.lineage(type(error)),
            "arguments": arguments,
            "attributes": names,
            "message": f"{type(error).__name__}: {error}{place}"[:2000],
        }

    def callback(self, number: int, step: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function that the test handed over; only while the test waits for an answer."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a function of the test can be called from the main thread only")
        document, _ = self.encode([list(args), kwargs])
        wire.write_json(self.fd, {"callback": number, "step": step, "document": document})
        reply = wire.read_json(self.fd)
        if reply is None:
            raise SystemExit("the test is over")
        if "error" in reply:
            kind = getattr(builtins, reply["error"]["type"], RuntimeError)
            raise kind(reply["error"]["message"])
        return self.decode(reply["document"])[0][0]


class _Callback:
    """A function or iterator of the test, as the program sees it."""

    def __init__(self, server: _Server, number: int, name: str) -> None:
        self._server = server
        self.number = number
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._server.callback(self.number, "call", args, kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._server.callback(self.number, "next", (), {})


class _Stdin(io.TextIOBase):
    """The standard input that the test has arranged on its side."""

    def __init__(self, server: _Server, read: int, readline: int) -> None:
        self._read = _Callback(server, read, "read")
        self._readline = _Callback(server, readline, "readline")

    def read(self, size: int | None = -1, /) -> str:
        return str(self._read(-1 if size is None else size))

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # a stream of text
        return str(self._readline(size))


class _Surroundings:
    """Standard streams as the test arranged them on its side, for the time of one call."""

    def __init__(self, server: _Server, request: dict[str, Any], capture: io.StringIO | None) -> None:
        self.server = server
        self.request = request
        self.capture = capture

    def __enter__(self) -> None:
        self.saved = (sys.stdout, sys.stdin, builtins.input)
        if self.capture is not None:
            sys.stdout = self.capture
        if "stdin" in self.request:
            sys.stdin = _Stdin(self.server, *self.request["stdin"])
        if "input" in self.request:
            builtins.input = _Callback(self.server, self.request["input"], "input")

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stdin, builtins.input = self.saved


def _await(_: _Server, target: Any) -> Any:
    import asyncio

    async def finish() -> Any:
        return await target

    return asyncio.run(finish())


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _server, target, *args, **kwargs: function(target, *args, **kwargs)


_OPERATORS = "getitem setitem delitem eq lt le gt ge add sub mul truediv neg index"
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "find": lambda server, target: [target in server.names, server.names.get(target)],
    "call": lambda _, target, *args, **kwargs: target(*args, **kwargs),
    "getattr": _plain(getattr),
    "setattr": _plain(setattr),
    "enter": lambda _, target: target.__enter__(),
    "exit": lambda _, target: target.__exit__(None, None, None),
    "await": _await,
    "instance_of": lambda _, kind, value: isinstance(value, kind),
    **{name: _plain(getattr(operator, name)) for name in _OPERATORS.split()},
    **{
        name: _plain(getattr(builtins, name))
        for name in (
            "len",
            "iter",
            "next",
            "str",
            "repr",
            "bool",
            "int",
            "float",
            "abs",
            "hash",
            "reversed",
            "dir",
        )
    },
}
