"""One started sandbox, seen from the host: a stream in, a stream out, an end. And the talk with what runs inside."""

import base64
import json
import secrets
import signal
import struct
import time
from importlib.resources import files
from typing import Any, Protocol, cast

from evenhand.core.errors import SandboxUnavailable, ScoringError
from evenhand.sandbox.port import Ending, Execution, Grade, Program, Reason, ResourceLimits, ResourceUsage

GRACE_SECONDS = 3.0
"""How long the inside may take to report past the program's own limit before the host ends it."""
START_SECONDS = 60.0
"""How long a sandbox may take to start: seconds on a machine that is busy with other things."""
_HEADER = struct.Struct(">cI")
_LARGEST_FRAME = 1 << 24
_GUEST_MODULES = ("wire", "values", "program", "remote", "examiner", "supervisor")


class SandboxBroken(ScoringError):
    """The sandbox itself failed: the program was not measured."""

    kind = "sandbox_error"


class Worker(Protocol):
    """A started sandbox, for one program."""

    @property
    def name(self) -> str:
        """Which back end it is of."""

    def send(self, data: bytes) -> None:
        """Write to the inside."""

    def receive(self, until: float) -> bytes | None:
        """What came next: bytes, empty when the inside is gone, None when the moment `until` has passed."""

    def rlimits(self, limits: ResourceLimits) -> dict[str, tuple[int, int]]:
        """The limits that the program's process sets on itself."""

    def memory_kills(self) -> int:
        """How often the kernel killed for memory here, as far as the host can see."""

    def diagnostics(self) -> str:
        """What the inside said on its error stream."""

    def kill(self) -> None:
        """End everything inside at once and free what it held."""


def compiled_guest(worker: Worker, *, otherwise: str) -> bytes:
    """What the sources of the inside come to, compiled by the worker's own interpreter: later starts take it.

    `SandboxUnavailable`, beginning with `otherwise`, when the worker does not answer.
    """
    compiled = bytearray()
    until = time.monotonic() + START_SECONDS
    try:
        while data := worker.receive(until):
            compiled += data
        errors = worker.diagnostics()
    finally:
        worker.kill()
    if not compiled.startswith(b"M"):
        raise SandboxUnavailable(f"{otherwise}: {errors or 'it said nothing'}")
    return bytes(compiled)


def boot_text() -> str:
    """The text of the first program, for `python -c`."""
    return (files("evenhand.sandbox.guest") / "boot.py").read_text(encoding="utf-8")


def guest_sources(letter: bytes = b"S", *, filter_program: bytes | None = None) -> bytes:
    """The rest of the inside, as `boot.py` expects it; with a filter that it is to put itself under."""
    folder = files("evenhand.sandbox.guest")
    parts = [("evenhand", ""), ("evenhand.sandbox", ""), ("evenhand.sandbox.guest", "")]
    if filter_program is not None:
        parts.append(("evenhand.sandbox.guest.filter", f"PROGRAM = {filter_program!r}"))
    parts += [
        (f"evenhand.sandbox.guest.{name}", (folder / f"{name}.py").read_text(encoding="utf-8"))
        for name in _GUEST_MODULES
    ]
    body = json.dumps(parts).encode("utf-8")
    return letter + len(body).to_bytes(4, "big") + body


class Frames:
    """The messages in a worker's stream."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.buffer = bytearray()

    def next(self, until: float) -> tuple[bytes, bytes] | None:
        """The next message; None when the inside is gone; `TimeoutError` when the moment has passed."""
        while True:
            if len(self.buffer) >= _HEADER.size:
                kind, length = _HEADER.unpack_from(self.buffer)
                if length > _LARGEST_FRAME:
                    raise SandboxBroken(f"the sandbox sent a message of {length} bytes")
                if len(self.buffer) >= _HEADER.size + length:
                    body = bytes(self.buffer[_HEADER.size : _HEADER.size + length])
                    del self.buffer[: _HEADER.size + length]
                    return kind, body
            data = self.worker.receive(until)
            if data is None:
                raise TimeoutError
            if not data:
                return None
            self.buffer += data


def _frame(value: Any) -> bytes:
    body = json.dumps(value).encode("ascii")
    return _HEADER.pack(b"J", len(body)) + body


def await_ready(worker: Worker) -> Frames:
    """Wait until the inside has started; `SandboxBroken` when it does not."""
    frames = Frames(worker)
    try:
        first = frames.next(time.monotonic() + START_SECONDS)
    except TimeoutError:
        raise SandboxBroken("the sandbox did not start in time: " + worker.diagnostics()) from None
    if first is None or json.loads(first[1]).get("event") != "ready":
        raise SandboxBroken("the sandbox did not start: " + (worker.diagnostics() or "it said nothing"))
    return frames


def converse(worker: Worker, frames: Frames, program: Program) -> Execution:
    """Run the program in a started sandbox and tell what became of it."""
    nonce = secrets.token_hex(16)
    limits = program.limits
    started = time.monotonic()
    kills = worker.memory_kills()
    try:
        worker.send(_frame(_job(worker, program)))
        worker.send(
            _frame(
                {
                    "nonce": nonce,
                    "test": program.test or "",
                    "trusted": program.trusted,
                    "entry_point": program.entry_point,
                    "objects": program.objects,
                }
            )
        )
    except OSError as error:
        raise SandboxBroken(f"the sandbox went away: {error} {worker.diagnostics()}") from None
    output = {b"O": bytearray(), b"E": bytearray()}
    until = started + limits.wall_seconds + GRACE_SECONDS
    report: dict[str, Any] | None = None
    late = False
    while report is None:
        try:
            frame = frames.next(until)
        except TimeoutError:
            late = True
            break
        if frame is None:
            break
        kind, body = frame
        if kind in output:
            output[kind] += body[: limits.output_bytes]
        else:
            report = json.loads(body)
    if report is not None and report.get("nonce") != nonce:
        report = None
    memory = worker.memory_kills() > kills
    execution = _execution(program, report, late=late, memory=memory)
    return _with_output(execution, output, worker.name, time.monotonic() - started)


def _job(worker: Worker, program: Program) -> dict[str, Any]:
    return {
        "source": program.source,
        "graded": program.test is not None,
        "files": {_checked(name): _text(data) for name, data in program.files.items()},
        "stdin": _text(program.stdin),
        "wall_seconds": program.limits.wall_seconds,
        "output_bytes": program.limits.output_bytes,
        "memory_bytes": program.limits.memory_bytes,
        "rlimits": worker.rlimits(program.limits),
    }


def _checked(name: str) -> str:
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"'{name}' is not a name inside the working folder")
    return name


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _execution(program: Program, report: dict[str, Any] | None, *, late: bool, memory: bool) -> Execution:
    if report is None:
        ending: Ending = "memory_limit" if memory else "timeout" if late else "lost"
        return Execution(ending=ending, grade=_limit_grade(program, ending))
    status = report["status"]
    ending = "exited"
    number = 0 if status is None else status & 0x7F
    code = None if status is None or number else status >> 8
    if report["ending"]:
        ending = cast(Ending, report["ending"])
    elif memory or report["memory"]:
        ending = "memory_limit"
    elif number == signal.SIGXCPU:
        ending = "cpu_limit"
    elif number:
        ending = "signaled"
    grade = None
    if program.test is not None:
        found = report["grade"]
        if found is not None:
            grade = Grade(**found)
        if ending not in ("exited", "signaled") and not (grade and grade.passed):
            grade = _limit_grade(program, ending)
        if report["ending"]:
            grade = _limit_grade(program, ending)
    return Execution(
        ending=ending,
        exit_code=code,
        signal=number or None,
        truncated=bool(report["truncated"]),
        grade=grade,
        usage=ResourceUsage(
            wall_seconds=report["wall_seconds"],
            cpu_seconds=report["cpu_seconds"],
            memory_bytes=report["memory_bytes"],
        ),
    )


_SENTENCES = {
    "timeout": "the program ran past its time limit",
    "cpu_limit": "the program used up its processor time",
    "memory_limit": "the program ran out of memory",
    "output_limit": "the program wrote more than its output limit",
}


def _limit_grade(program: Program, ending: Ending) -> Grade | None:
    if program.test is None or ending not in _SENTENCES:
        return None
    return Grade(passed=False, reason=cast(Reason, ending), message=_SENTENCES[ending])


def _with_output(
    execution: Execution, output: dict[bytes, bytearray], name: str, wall_seconds: float
) -> Execution:
    from msgspec.structs import replace

    stderr = bytes(output[b"E"])
    ending = execution.ending
    last = stderr.rstrip().rpartition(b"\n")[2]
    if ending == "exited" and execution.exit_code and last.startswith(b"MemoryError"):
        # Without control groups the limit shows itself to the program, as an exception.
        ending = "memory_limit"
    usage = execution.usage
    if not usage.wall_seconds:
        usage = replace(usage, wall_seconds=wall_seconds)
    return replace(
        execution, ending=ending, stdout=bytes(output[b"O"]), stderr=stderr, backend=name, usage=usage
    )
