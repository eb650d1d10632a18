"""`code_sandbox`: does model-written Python pass its test? It runs in a sandbox, never here.

The prompt's imports and helpers, and the test, come from the benchmark and are trusted; the completion is not.
They meet in two processes: the test calls the program across a pipe and gets plain data back, so nothing that
the completion does to its own interpreter reaches the comparison. See docs/sandbox.md.
"""

import ast
import asyncio
import math
import re
import threading
from collections.abc import Coroutine
from typing import Any

from evenhand import settings
from evenhand.core.errors import OptionError, ScoringError
from evenhand.core.terminal import preview
from evenhand.sandbox.docker import DockerOptions
from evenhand.sandbox.port import Program, ResourceLimits, Sandbox
from evenhand.sandbox.selection import default_sandbox, open_sandbox
from evenhand.scoring.definition import scorer
from evenhand.scoring.types import ScorerInput

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})")
DEFAULTS = ResourceLimits()


def extract_code(response: str) -> str:
    """The first fenced block (a missing end fence means: to the end), or the text itself.

    Each line is looked at a fixed number of times, so the work is linear in the length of the response.
    """
    start = 0
    indent = marks = ""
    kept: list[str] = []
    while start < len(response):
        end = response.find("\n", start) + 1 or len(response)
        line = response[start:end]
        start = end
        if not marks:
            opening = _FENCE.match(line)
            # What follows the marks may name a language, and cannot hold a backtick.
            if opening is not None and "`" not in line[opening.end() :]:
                indent, marks = opening["indent"], opening["marks"]
        elif _closes(line, marks):
            break
        else:
            # A block inside a list item carries the item's indent on every line.
            kept.append(line.removeprefix(indent))
    return "".join(kept) if marks else response


def _closes(line: str, marks: str) -> bool:
    bare = line.strip(" \t\r\n")
    return len(bare) >= len(marks) and not bare.strip(marks[0])


@scorer(version="2", slow=True)
def code_sandbox(
    sample: ScorerInput,
    *,
    timeout: float = DEFAULTS.wall_seconds,
    memory_bytes: int = DEFAULTS.memory_bytes,
    processes: int = DEFAULTS.processes,
    output_bytes: int = DEFAULTS.output_bytes,
    objects: bool | None = None,
) -> dict[str, Any]:
    """Run the response's code with `metadata["_prompt"]` against `metadata["_test"]` in a sandbox."""
    limits = _limits(timeout, memory_bytes, processes, output_bytes)
    return _blocking(_grade(sample, limits, objects))


@scorer(name="code_sandbox", version="2")
async def code_sandbox_async(
    sample: ScorerInput,
    *,
    timeout: float = DEFAULTS.wall_seconds,  # noqa: ASYNC109  the program's limit, held by the sandbox
    memory_bytes: int = DEFAULTS.memory_bytes,
    processes: int = DEFAULTS.processes,
    output_bytes: int = DEFAULTS.output_bytes,
    objects: bool | None = None,
) -> dict[str, Any]:
    """`code_sandbox` for callers with an event loop; many may run at once."""
    return await _grade(sample, _limits(timeout, memory_bytes, processes, output_bytes), objects)


async def _grade(sample: ScorerInput, limits: ResourceLimits, objects: bool | None) -> dict[str, Any]:
    code = extract_code(sample.response)
    program = build_program(sample, code, limits=limits, objects=objects)
    sandbox: Sandbox | None = sample.sandbox
    if sandbox is None:
        # Opening one measures it first, which takes a moment.
        sandbox = await asyncio.to_thread(configured_sandbox)
    execution = await sandbox.run(program)
    grade = execution.grade
    extracted = code.rstrip("\n") if code.strip() else None
    if grade is None:
        raise ScoringError(
            f"the sandbox ended without a grade ({execution.ending}): "
            + preview(execution.stderr.decode("utf-8", "replace"), 300),
            kind="sandbox_error",
        )
    if grade.reason in ("bad_test", "program_not_tested"):
        raise ScoringError(grade.message, kind=grade.reason)
    if grade.passed:
        return {"correct": True, "extracted": extracted}
    return {
        "correct": False,
        "extracted": extracted,
        "reason": grade.reason,
        "message": grade.message,
        "stdout": preview(execution.stdout.decode("utf-8", "replace"), 500),
        "stderr": preview(execution.stderr.decode("utf-8", "replace"), 500),
        "output_truncated": execution.truncated,
    }


def configured_sandbox() -> Sandbox:
    """The sandbox that the environment asks for, shared by the whole process."""
    chosen = settings.load()
    docker = DockerOptions(socket=chosen.docker_socket, image=chosen.sandbox_image)
    return default_sandbox(chosen.sandbox, docker)


def open_configured_sandbox(*, parallel: int | None = None) -> Sandbox:
    """The same kind of sandbox, for a caller who closes it."""
    chosen = settings.load()
    docker = DockerOptions(socket=chosen.docker_socket, image=chosen.sandbox_image)
    return open_sandbox(chosen.sandbox, docker=docker, parallel=parallel)


def build_program(
    sample: ScorerInput, code: str, *, limits: ResourceLimits = DEFAULTS, objects: bool | None = None
) -> Program:
    """The program that joins the sample's prompt, code and test."""
    metadata = sample.metadata
    test = metadata.get("_test")
    if not isinstance(test, str) or not test.strip():
        raise ScoringError("the sample has no test in metadata['_test']", kind="no_test")
    prompt = metadata.get("_prompt") or ""
    if not isinstance(prompt, str):
        raise ScoringError("metadata['_prompt'] is not text", kind="bad_prompt")
    entry_point = _entry_point(sample, prompt)
    trusted = trusted_part(prompt, entry_point)
    return Program(
        source=join(prompt, code, entry_point, trusted),
        test=test,
        trusted=trusted,
        entry_point=entry_point,
        objects=objects,
        limits=limits,
    )


def join(prompt: str, code: str, entry_point: str | None, trusted: str) -> str:
    """The whole program: a completion that stands by itself replaces the prompt's stub, another continues it."""
    tree = _parse(code)
    if tree is not None and (entry_point is None or entry_point in _defined(tree)):
        return f"{trusted}\n\n{code}" if trusted else code
    whole = prompt + code
    if prompt and not prompt.endswith("\n") and _parse(whole) is None:
        whole = f"{prompt}\n{code}"
    if _parse(whole) is None and tree is not None and code.strip():
        return f"{trusted}\n\n{code}"
    return whole


def trusted_part(prompt: str, entry_point: str | None) -> str:
    """What the prompt defines besides stubs to be completed: the test relies on it as the benchmark wrote it."""
    tree = _parse(prompt) or _parse(prompt.rstrip() + "\n    pass\n") or _parse(prompt.rstrip() + " pass\n")
    if tree is None:
        return ""
    kept = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            node.name == entry_point or _is_stub(node)
        ):
            continue
        kept.append(ast.unparse(node))
    return "\n".join(kept)


def _is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Nothing but docstrings, `pass`, `...` and `raise NotImplementedError`: something for the model to fill in."""
    for statement in node.body:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Raise():
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef() if isinstance(node, ast.ClassDef) and _is_stub(
                statement
            ):
                continue
            case _:
                return False
    return True


def _entry_point(sample: ScorerInput, prompt: str) -> str | None:
    named = sample.metadata.get("entry_point")
    if isinstance(named, str) and named.isidentifier():
        return named
    tree = _parse(prompt) or _parse(prompt.rstrip() + "\n    pass\n") or _parse(prompt.rstrip() + " pass\n")
    stubs = [
        node.name
        for node in (tree.body if tree else [])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _is_stub(node)
    ]
    if stubs:
        return stubs[-1]
    target = sample.target
    return target if isinstance(target, str) and target.isidentifier() else None


def _defined(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign():
                names.update(name.id for name in node.targets if isinstance(name, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Import() | ast.ImportFrom():
                names.update((alias.asname or alias.name) for alias in node.names)
    return names


def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Model text can be anything, deep nesting and null characters included.
        return None


def _limits(timeout: float, memory_bytes: int, processes: int, output_bytes: int) -> ResourceLimits:
    for name, value in (
        ("timeout", timeout),
        ("memory_bytes", memory_bytes),
        ("processes", processes),
        ("output_bytes", output_bytes),
    ):
        if not 0 < value < 1e15:
            raise OptionError(f"code_sandbox: option '{name}' must be a positive number, not {value}")
    return ResourceLimits(
        wall_seconds=timeout,
        cpu_seconds=math.ceil(timeout),
        memory_bytes=memory_bytes,
        processes=processes,
        output_bytes=output_bytes,
    )


def _blocking(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    # A loop runs in this thread (a notebook): another thread waits in its place.
    results: list[dict[str, Any]] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(asyncio.run(work))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, name="evenhand-code-sandbox")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
