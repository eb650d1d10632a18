"""The port: a program goes in, what became of it comes out. Every back end passes `sandbox/conformance.py`."""

from typing import Literal, Protocol

from msgspec import Struct, field

MEBIBYTE = 1024 * 1024

SUPERVISOR_TASKS = 4
"""Processes and threads of the inside's own, which every limit has to leave room for."""

Ending = Literal["exited", "signaled", "timeout", "cpu_limit", "memory_limit", "output_limit", "lost"]
"""Why a program ended. `lost`: the sandbox went away under it without saying why."""

Reason = Literal[
    "passed",
    "wrong_answer",
    "program_error",
    "ended_early",
    "timeout",
    "cpu_limit",
    "memory_limit",
    "output_limit",
    "bad_test",
    "program_not_tested",
]
"""Why a graded program passed or did not. The last two say that the test, not the program, is at fault."""


class ResourceLimits(Struct, frozen=True, kw_only=True):
    """What a program may use."""

    wall_seconds: float = 10.0
    """Time on the clock, test included."""
    cpu_seconds: int = 10
    """Processor time of the program's process."""
    memory_bytes: int = 512 * MEBIBYTE
    """Memory of everything in the sandbox, its files included."""
    processes: int = 64
    """Processes and threads at one time."""
    output_bytes: int = 10_000_000
    """Standard output and error together; more ends the program."""
    disk_bytes: int = 64 * MEBIBYTE
    """Files in `/tmp`, the only place that can be written."""
    open_files: int = 256
    """Descriptors of one process."""
    cores: float = 1.0
    """Share of the processors, where the back end can hold it."""


class Program(Struct, frozen=True, kw_only=True):
    """Python to run and, when it has a test, to grade."""

    source: str
    """The program: hostile until shown otherwise."""
    test: str | None = None
    """Trusted Python that calls the program and asserts. It runs in a process of its own."""
    trusted: str = ""
    """Trusted definitions (imports and helpers of the prompt) that the test may use."""
    entry_point: str | None = None
    """The function or class under test: handed to `check` when the test defines one."""
    objects: bool | None = None
    """Whether the test may call methods of the program's own objects; None: only when it tests a class."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Files in the working folder, by relative name."""
    stdin: bytes = b""
    """What the program reads from standard input."""
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    """What it may use."""


class ResourceUsage(Struct, frozen=True, kw_only=True):
    """What a program used."""

    wall_seconds: float = 0.0
    """Time on the clock."""
    cpu_seconds: float = 0.0
    """Processor time of the program's process and the children that it waited for."""
    memory_bytes: int = 0
    """The most memory that the program's process held."""


class Grade(Struct, frozen=True, kw_only=True):
    """What the test found."""

    passed: bool
    """The test ran to its end and every check held."""
    reason: Reason
    """Machine-readable."""
    message: str = ""
    """The same for people: the failed assertion, the program's error."""
    calls: int = 0
    """How often the test used the program."""


class Execution(Struct, frozen=True, kw_only=True):
    """What became of a program."""

    ending: Ending
    """Why it ended."""
    exit_code: int | None = None
    """The exit status, when it exited."""
    signal: int | None = None
    """The signal, when one ended it."""
    stdout: bytes = b""
    """Standard output, at most the limit."""
    stderr: bytes = b""
    """Standard error, at most the limit."""
    truncated: bool = False
    """There was more output than the limit allows."""
    grade: Grade | None = None
    """The grade, when the program had a test."""
    usage: ResourceUsage = field(default_factory=ResourceUsage)
    """What it used."""
    backend: str = ""
    """Which back end ran it."""


class Sandbox(Protocol):
    """A place where hostile programs run. Safe to use from several threads and event loops."""

    @property
    def name(self) -> str:
        """Which back end this is."""

    async def run(self, program: Program) -> Execution:
        """Run one program in a place that nothing else has used; `SandboxUnavailable` when there is none."""

    def close(self) -> None:
        """End everything that was started."""
