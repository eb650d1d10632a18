"""Which back end runs model-written code: the one asked for, or the strongest that proves itself here."""

import atexit
import os
import threading
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from evenhand.core.errors import OptionError, SandboxUnavailable
from evenhand.sandbox.bubblewrap import Bubblewrap
from evenhand.sandbox.conformance import self_check
from evenhand.sandbox.docker import Docker, DockerOptions
from evenhand.sandbox.pool import Backend, Pool
from evenhand.sandbox.port import Sandbox

HOW_TO_INSTALL = (
    "install bubblewrap (apt-get install bubblewrap) or a Docker-compatible engine (apt-get install docker.io); "
    "`evenhand doctor` says what is missing"
)
NAMES = ("bubblewrap", "docker")
_lock = threading.Lock()
_open: dict[tuple[int, str, DockerOptions], Pool] = {}


class Candidate(Struct, frozen=True, kw_only=True):
    """A back end that could be used, or why it cannot."""

    name: str
    """`bubblewrap` or `docker`."""
    backend: Backend | None = None
    """The back end, when it can be set up."""
    strength: int = 0
    """How much it holds: higher is stronger."""
    holds: str = ""
    """The means by which it holds its limits, for people."""
    problem: str = ""
    """Why it cannot be used."""


def candidates(docker: DockerOptions, choice: str = "auto") -> Iterator[Candidate]:
    """What this machine offers, one by one. The caller closes the back ends."""
    if choice in ("auto", "bubblewrap"):
        yield _candidate("bubblewrap", _bubblewrap)
    if choice == "bubblewrap":
        return
    found = _candidate("docker", lambda: _docker(docker))
    yield found
    if isinstance(found.backend, Docker) and docker.runtime is None and "runsc" in found.backend.runtimes:
        yield _candidate("docker", lambda: _docker(replace(docker, runtime="runsc")))


def _candidate(name: str, make: Callable[[], tuple[Backend, int, str]]) -> Candidate:
    try:
        backend, strength, holds = make()
    except SandboxUnavailable as error:
        return Candidate(name=name, problem=str(error))
    return Candidate(name=name, backend=backend, strength=strength, holds=holds)


def _bubblewrap() -> tuple[Backend, int, str]:
    backend = Bubblewrap()
    groups = backend.hierarchy
    held = groups.holds if groups is not None else ()
    calls = "system call filter" if backend.filter is not None else "no system call filter"
    limits = f"control groups v{groups.version} for {', '.join(held)}" if groups else "rlimits only"
    strong = "memory" in held and "pids" in held and backend.filter is not None
    return backend, 3 if strong else 1, f"namespaces, {calls}, {limits}, {backend.python}"


def _docker(options: DockerOptions) -> tuple[Backend, int, str]:
    backend = Docker(options)
    held = backend.memory and backend.processes
    strength = 4 if backend.runtime == "runsc" else 2 if held else 0
    runtime = backend.runtime or "the engine's default runtime"
    limits = "memory and process limits" if held else "an engine without memory or process limits"
    return backend, strength, f"containers of {options.image}, {runtime}, {limits}"


def open_sandbox(
    choice: str = "auto", *, docker: DockerOptions | None = None, parallel: int | None = None
) -> Sandbox:
    """A sandbox of the chosen kind; `SandboxUnavailable` when this machine has none that proves itself."""
    if choice != "auto" and choice not in NAMES:
        raise OptionError(f"unknown sandbox '{choice}'; it can be auto, {', '.join(NAMES)}")
    found = list(candidates(docker or DockerOptions(), choice))
    problems = [f"{c.name}: {c.problem}" for c in found if c.problem]
    chosen: Pool | None = None
    for candidate in sorted(found, key=lambda c: -c.strength):
        if candidate.backend is None:
            continue
        pool = Pool(candidate.backend, parallel=parallel)
        failed = [] if chosen else [f for f in self_check(pool, quick=True) if not f.ok]
        if chosen is None and not failed:
            chosen = pool
        else:
            pool.close()
            problems += [f"{pool.name} failed its check '{f.check}': {f.measured}" for f in failed]
    if chosen is None:
        raise SandboxUnavailable(
            f"no sandbox can run model-written code here ({'; '.join(problems)}): {HOW_TO_INSTALL}"
        )
    return chosen


def default_sandbox(choice: str = "auto", docker: DockerOptions | None = None) -> Sandbox:
    """One sandbox of each kind for the whole process, opened at first use and closed when the process ends."""
    options = docker or DockerOptions()
    with _lock:
        # A forked child has none of the threads of its parent's pool.
        key = (os.getpid(), choice, options)
        if key not in _open:
            pool = open_sandbox(choice, docker=options)
            assert isinstance(pool, Pool)
            _open[key] = pool
            atexit.register(_close, key)
        return _open[key]


def _close(key: tuple[int, str, DockerOptions]) -> None:
    # A child inherits its parent's exit handlers, but the sandboxes are not its own.
    if key[0] == os.getpid():
        _open.pop(key).close()
