"""The test's side: runs the test in a process that the program's code has never been in.

The program's names appear to the test as stand-ins (`remote`), found when a name is neither the test's own, nor
the prompt's, nor Python's. Whether the test passed is decided here and nowhere else.
"""

import ast
import builtins
import contextlib
import linecache
import sys
import threading
import traceback
import types
from typing import Any

from evenhand.sandbox.guest import values, wire
from evenhand.sandbox.guest.remote import Remote, TypeName, Unsupported, stand_in_class

TEST_NAME = "<test>"
_MODULES = {
    "bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq",
    "itertools", "json", "math", "operator", "random", "re", "statistics", "string", "time", "typing",
}  # fmt: skip
"""Modules that a test may find under their own name because only the program imported them."""


class ProgramGone(BaseException):
    """The program ended while the test still needed it."""


class Link(values.Codec):
    """The way to the program, and the account of its use."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self.fd = fd
        self.objects = False
        self.may_have_objects = True
        self.calls = 0
        self.gone = ""
        self.raised: list[BaseException] = []
        self.failed: BaseException | None = None
        self.remotes: dict[int, Any] = {}
        self.callbacks: list[Any] = []
        self.lock = threading.RLock()
        self.streams = (sys.stdout, sys.stdin, builtins.input)

    def wait_until_ready(self) -> dict[str, Any]:
        """What the program said once its own statements had run."""
        return self._receive("before its test could start")

    def _receive(self, when: str) -> dict[str, Any]:
        if not self.gone:
            try:
                message = wire.read_json(self.fd)
                if message is not None:
                    return message
                self.gone = f"the program ended {when}"
            except wire.Broken as error:
                self.gone = f"the program broke its side of the pipe: {error}"
        raise ProgramGone(self.gone)

    def ask(self, operation: str, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Have the program do something; its exceptions are raised here as exceptions of the same name."""
        with self.lock:
            self.calls += 1
            document, objects = self.encode([target, list(args), kwargs])
            request = {
                "do": operation,
                "document": document,
                "classes": list(self.classes),
                **({} if operation == "find" else self._surroundings()),
            }
            reply = self._exchange(request)
            if isinstance(output := reply.get("output"), str):
                sys.stdout.write(output)
            if "error" in reply:
                raise self.error_of(reply["error"], operation)
            try:
                if reply.get("changes"):
                    values.overwrite(self, objects, reply["changes"], objects)
                (result,), _ = self.decode(reply["document"], objects)
                return result
            except (values.NotPlain, LookupError, TypeError, ValueError) as error:
                raise self._broken(error) from None

    def _broken(self, error: Exception) -> ProgramGone:
        """The program sent what is no answer: it is not asked again."""
        self.gone = f"the program broke its side of the pipe: {shown(error)}"
        return ProgramGone(self.gone)

    def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            wire.write_json(self.fd, request)
        except OSError:
            self.gone = self.gone or "the program ended before its test did"
        while True:
            reply = self._receive("before its test did")
            if "callback" not in reply:
                return reply
            answer = self._answer(reply)
            try:
                wire.write_json(self.fd, answer)
            except OSError:
                self.gone = "the program ended before its test did"

    def _surroundings(self) -> dict[str, Any]:
        """Standard streams that the test has replaced, so that they are replaced for the program too."""
        found: dict[str, Any] = {}
        stdout, stdin, ask = self.streams
        if sys.stdout is not stdout:
            found["capture"] = True
        if sys.stdin is not stdin:
            found["stdin"] = [self.register(sys.stdin.read), self.register(sys.stdin.readline)]
        if builtins.input is not ask:
            found["input"] = self.register(builtins.input)
        return found

    def _answer(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Call a function of the test for the program."""
        try:
            function = self.callbacks[reply["callback"]]
            args, kwargs = self.decode(reply["document"])[0]
            result = next(function) if reply.get("step") == "next" else function(*args, **kwargs)
            return {"document": self.encode([result])[0]}
        except Exception as error:
            if isinstance(error, AssertionError):
                # The program could keep it to itself.
                self.failed = self.failed or error
            return {"error": {"type": type(error).__name__, "message": shown(error)[:2000]}}

    def register(self, function: Any) -> int:
        """A number under which the program can call a function of the test."""
        self.callbacks.append(function)
        return len(self.callbacks) - 1

    def admit(self, value: Any) -> Any:
        # Anything that can be called in the place of a method would be handed what the test expects: a function of
        # the program, one of the test's own that comes back, a type, an exception class.
        if is_callable(value) and not self.objects:
            raise values.NotPlain("an object with something to call in place of a method")
        return value

    def type_named(self, name: str) -> Any:
        # `set` in the place of a set would give the test its own argument back: `set.union({1, 2})`.
        return TypeName(values.PLAIN_TYPES[name])

    def export(self, value: Any) -> list[Any]:
        if isinstance(value, Remote):
            return ["yours", vars(value)["_number"]]
        if isinstance(value, TypeName):
            return ["type", vars(value)["kind"].__name__]
        if isinstance(value, type) and (kind := self._known_class(value)) is not None:
            return ["yours", kind]
        if isinstance(value, types.CoroutineType):
            raise TypeError("a coroutine that nobody has awaited")
        if callable(value) or hasattr(type(value), "__next__"):
            return ["callback", self.register(value), getattr(value, "__name__", "function")]
        raise Unsupported(
            f"the test hands the program an object of type {type(value).__name__}, which only the test knows"
        )

    def _known_class(self, value: type) -> int | None:
        return next((number for number, known in self.remotes.items() if known is value), None)

    def adopt(self, node: list[Any]) -> Any:
        if node[0] == "yours":
            return self.callbacks[node[1]]
        if node[0] != "remote":
            return super().adopt(node)
        _, number, kind, title, detail = node
        if type(number) is not int or not isinstance(kind, str) or not isinstance(title, str):
            raise values.NotPlain("a stand-in without number, kind and name")
        if number not in self.remotes:
            if kind == "exception":
                return self._exception_class(detail)
            self.remotes[number] = stand_in_class(detail)(self, number, kind, title)
        remote = self.remotes[number]
        return _awaited(remote) if kind == "coroutine" and isinstance(remote, Remote) else remote

    def _exception_class(self, lineage: list[list[Any]]) -> type[BaseException]:
        """A class of our own for an exception class of the program, below the same built-in one."""
        found: type[BaseException] = Exception
        for number, name in reversed(lineage):
            if not isinstance(name, str) or not (number is None or type(number) is int):
                raise values.NotPlain("an exception class without a name")
            if number is None:
                base = vars(builtins).get(name)
                found = base if isinstance(base, type) and issubclass(base, BaseException) else Exception
            else:
                known = self.remotes.get(number)
                if not isinstance(known, type):
                    known = self.remotes[number] = type(name, (found,), {})
                found = known
        return found

    def error_of(self, report: Any, operation: str) -> BaseException:
        """The exception that the program reports, as one of this side's own."""
        try:
            message, data = report["message"], report["attributes"]
            kind = self._exception_class(report["lineage"])
            (arguments, attributes), _ = self.decode(report["arguments"])
            if not (
                isinstance(message, str) and isinstance(arguments, list) and isinstance(attributes, list)
            ):
                raise values.NotPlain("an exception without message and arguments")
            fields = dict(zip(data, attributes, strict=True))
        except (values.NotPlain, LookupError, TypeError, ValueError) as malformed:
            return self._broken(malformed)
        if operation != "next" and issubclass(kind, StopIteration | StopAsyncIteration | GeneratorExit):
            # It would end a loop of the test quietly and leave the rest of it out.
            error: BaseException = RuntimeError(message)
        else:
            try:
                error = kind(*arguments)
            except Exception:
                error = RuntimeError(message)
        self.raised.append(error)
        for name, value in fields.items():
            if isinstance(name, str) and not hasattr(error, name) and not is_callable(value):
                vars(error)[name] = value
        vars(error)["_message"] = message
        return error


def is_callable(value: Any) -> bool:
    """Whether the test could call a value and be answered by someone's code."""
    if isinstance(value, Remote):
        return vars(value)["_kind"] in ("function", "class")
    return callable(value)


def shown(error: BaseException) -> str:
    """What an exception says; a value in it may break every attempt to show it."""
    try:
        return str(error)
    except BaseException as problem:
        return f"(its message cannot be shown: {type(problem).__name__})"


async def _awaited(remote: Any) -> Any:
    """A coroutine of the program, as one that this side's event loop accepts."""
    return await remote


class _Names(dict[str, Any]):
    """Python's names and, for any other, the program's."""

    def __init__(self, link: Link, test: str) -> None:
        super().__init__(vars(builtins))
        self[_SAME] = _same
        self.link = link
        # `math.isclose` in a test means the library's, whatever the program calls by that name.
        self.modules = {
            node.value.id
            for node in ast.walk(ast.parse(test))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in _MODULES
        }

    def __missing__(self, name: str) -> Any:
        found, value = (False, None) if name.startswith("__") else self.link.ask("find", name)
        if found is not True:
            raise KeyError(name)
        if name in self.modules:
            return __import__(name)
        if isinstance(value, Remote):
            vars(value)["_named"] = True
            kind = vars(value)["_kind"]
            if kind == "module":
                raise KeyError(name)
            if kind == "class" and name[:1].isupper() and self.link.may_have_objects:
                # The test itself speaks of a class: then it is about objects and their methods.
                self.link.objects = True
        return value


def examine(fd: int, exam: dict[str, Any]) -> dict[str, Any]:
    """The grade on the program at the other end of `fd`, whatever the program answers."""
    link = Link(fd)
    try:
        return _examine(link, exam)
    except BaseException as error:
        # Not even its failure could be told. It never leaves the program without a grade.
        return _grade(link, "wrong_answer", f"the test could not be carried through: {type(error).__name__}")


def _examine(link: Link, exam: dict[str, Any]) -> dict[str, Any]:
    try:
        test = _compile(exam["test"], TEST_NAME)
        trusted = _compile(exam["trusted"], "<prompt>")
    except SyntaxError as error:
        return _grade(link, "bad_test", f"the test is not Python: {error}")
    try:
        ready = link.wait_until_ready()
        if "error" in ready:
            raise link.error_of(ready["error"], "call")
        _run(link, trusted, test, exam)
    except SystemExit as error:
        if any(error is raised for raised in link.raised) or error.code not in (0, None, False):
            return _failure(link, link.failed or error)
    except BaseException as error:
        return _failure(link, error)
    if link.gone:
        # The test may have swallowed it.
        return _grade(link, "ended_early", link.gone)
    if link.failed is not None:
        return _failure(link, link.failed)
    if link.calls == 0:
        return _grade(link, "program_not_tested", "the test ended without using the program")
    return _grade(link, "passed", "")


def _compile(source: str, name: str) -> types.CodeType:
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(_Identity().visit(ast.parse(source, name)), name, "exec", dont_inherit=True)


def _run(link: Link, trusted: types.CodeType, test: types.CodeType, exam: dict[str, Any]) -> None:
    entry_point: str | None = exam["entry_point"]
    module = types.ModuleType("__main__")
    # Where `unittest.main` looks.
    sys.modules["__main__"] = module
    names = module.__dict__
    names["__builtins__"] = _Names(link, exam["test"])
    try:
        exec(trusted, names)  # noqa: S102  the benchmark's own text, in the sandbox
    except Exception as error:
        raise Unsupported(f"the prompt's own definitions failed: {type(error).__name__}: {error}") from None
    own = {name: value for name, value in names.items() if not name.startswith("__")}
    link.classes = {
        name: value
        for name, value in own.items()
        if isinstance(value, type) and value.__module__ == "__main__"
    }
    if exam["objects"] is not None:
        link.objects = link.may_have_objects = bool(exam["objects"])
    if "unittest" in exam["test"]:
        _note_failures(link)
    if entry_point is not None:
        # Also when Python has a function of that name.
        with contextlib.suppress(KeyError):
            names[entry_point] = names["__builtins__"].__missing__(entry_point)
    # Looking the entry point up is no use of it, unless it is a value and not a function.
    link.calls = int(entry_point in names and not isinstance(names[entry_point], Remote))
    exec(test, names)  # noqa: S102  the benchmark's own text, in the sandbox
    checks = {name: value for name, value in names.items() if own.get(name) is not value}
    called = _called(exam["test"])
    check = checks.get("check")
    if isinstance(check, types.FunctionType) and entry_point is not None and "check" not in called:
        if entry_point not in names:
            raise NameError(f"name '{entry_point}' is not defined", name=entry_point)
        check(names[entry_point])
    _run_collected(checks, called)


class _Identity(ast.NodeTransformer):
    """Lets `f(3) is int` hold for a stand-in of `int`: the type itself never comes from the program."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        if len(sides) > 2 or not isinstance(node.ops[0], ast.Is | ast.IsNot):
            return node
        if any(isinstance(side, ast.Constant) for side in sides):
            return node
        same: ast.expr = ast.Call(ast.Name(_SAME, ast.Load()), sides, [])
        if isinstance(node.ops[0], ast.IsNot):
            same = ast.UnaryOp(ast.Not(), same)
        return ast.fix_missing_locations(ast.copy_location(same, node))


_SAME = "__evenhand_same__"


def _bare(value: Any) -> Any:
    return vars(value)["kind"] if isinstance(value, TypeName) else value


def _same(left: Any, right: Any) -> bool:
    return _bare(left) is _bare(right)


def _note_failures(link: Link) -> None:
    """Notice what unittest finds, whoever runs it: `unittest.main(exit=False)` prints a failure and goes on."""
    import unittest

    def noting(original: Any) -> Any:
        def note(result: Any, test: Any, *found: Any) -> Any:
            error = found[-1][1] if found and isinstance(found[-1], tuple) else None
            if link.failed is None and (error is not None or not found):
                link.failed = (
                    error if error is not None else AssertionError("an expected failure did not come")
                )
            return original(result, test, *found)

        return note

    for name in ("addError", "addFailure", "addSubTest", "addUnexpectedSuccess"):
        setattr(unittest.TestResult, name, noting(getattr(unittest.TestResult, name)))

    def bare(original: Any) -> Any:
        return lambda case, first, second, msg=None: original(case, _bare(first), _bare(second), msg)

    for name in ("assertIs", "assertIsNot"):
        setattr(unittest.TestCase, name, bare(getattr(unittest.TestCase, name)))


def _called(source: str) -> set[str]:
    """The functions and methods that the test's own statements call, by their last name."""
    return {
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for statement in ast.parse(source).body
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }


def _run_collected(checks: dict[str, Any], called: set[str]) -> None:
    """Tests in the style of unittest or pytest, which are defined and left for a runner to find."""
    unittest = sys.modules.get("unittest")
    for name, value in list(checks.items()):
        if unittest and isinstance(value, type) and issubclass(value, unittest.TestCase):
            if called & {"main", "run", "debug"}:
                continue
            result = unittest.TestResult()
            unittest.defaultTestLoader.loadTestsFromTestCase(value).run(result)
        elif name.startswith("test") and name not in called and isinstance(value, types.FunctionType):
            if value.__code__.co_argcount or value.__code__.co_kwonlyargcount:
                continue
            outcome = value()
            if isinstance(outcome, types.CoroutineType):
                import asyncio

                asyncio.run(outcome)
        elif name.startswith("Test") and isinstance(value, type) and "__init__" not in vars(value):
            for method in [found for found in vars(value) if found.startswith("test")]:
                instance = value()
                if setup := getattr(instance, "setup_method", None):
                    setup(*[None] * (setup.__code__.co_argcount - 1))
                getattr(instance, method)()


def _failure(link: Link, error: BaseException) -> dict[str, Any]:
    """The grade when the test did not run to its end; every text in it may be of the program's making."""
    place = _place(error)
    if link.gone:
        return _grade(link, "ended_early", link.gone)
    if isinstance(error, MemoryError):
        # Raised by the program, or here because of what it answered.
        return _grade(link, "memory_limit", f"MemoryError{place}")
    if any(error is raised for raised in link.raised):
        return _grade(link, "program_error", f"{vars(error).get('_message', type(error).__name__)}{place}")
    if isinstance(error, Unsupported | ImportError):
        return _grade(link, "bad_test", f"{shown(error)}{place}")
    if isinstance(error, NameError):
        return _grade(link, "program_error", f"{shown(error)}{place}")
    message = shown(error)
    # Showing it may have asked the program for a text, and that may have ended it: it has failed in any case.
    return _grade(link, "wrong_answer", f"{type(error).__name__}{': ' if message else ''}{message}{place}")


def _place(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == TEST_NAME]
    return f" at line {frames[-1].lineno} of the test: {frames[-1].line}" if frames else ""


def _grade(link: Link, reason: str, message: str) -> dict[str, Any]:
    return {"passed": reason == "passed", "reason": reason, "message": message[:4000], "calls": link.calls}
