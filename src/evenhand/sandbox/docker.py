"""Containers of a Docker-compatible engine, with gVisor's `runsc` as their runtime where the engine offers it."""

import os
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec import Struct

from evenhand.core.errors import SandboxUnavailable
from evenhand.sandbox import seccomp
from evenhand.sandbox.engine import Engine, EngineError
from evenhand.sandbox.port import MEBIBYTE, SUPERVISOR_TASKS, ResourceLimits
from evenhand.sandbox.worker import boot_text, compiled_guest, guest_sources

DEFAULT_SOCKET = "/var/run/docker.sock"
DEFAULT_IMAGE = "python:3.12-slim"
INSTALL = "apt-get install docker.io"
NOBODY = "65534:65534"
_LABEL = "evenhand.sandbox"
_RUNSC_PROCESSES = 64
"""gVisor's own threads count towards the limit on processes."""


class DockerOptions(Struct, frozen=True, kw_only=True):
    """How the back end is set up."""

    socket: str = DEFAULT_SOCKET
    """The engine's socket."""
    image: str = DEFAULT_IMAGE
    """An image with `python3`. It is never fetched: it has to be there."""
    runtime: str | None = None
    """The engine's runtime, such as `runsc`; None: the engine's default."""


class Docker:
    """Starts containers."""

    def __init__(self, options: DockerOptions | None = None) -> None:
        self.options = options or DockerOptions()
        self.engine = Engine(self.options.socket)
        self.owner = f"{os.getpid()}-{secrets.token_hex(6)}"
        try:
            info = self.engine.call("GET", "/info")
            self.engine.call("GET", f"/images/{self.options.image}/json")
        except EngineError as error:
            raise SandboxUnavailable(f"{error}; {_how_to_fix(error, self.options)}") from None
        self.runtimes = tuple(info.get("Runtimes") or ())
        self.runtime = self.options.runtime
        self.memory = bool(info.get("MemoryLimit", True))
        self.processes = bool(info.get("PidsLimit", True))
        self.filter = seccomp.filter_program(str(info.get("Architecture", "")))
        # Removing takes the engine longer than many a program runs; nobody has to wait for it.
        self.remover = ThreadPoolExecutor(1, thread_name_prefix="evenhand-sandbox-remover")
        self.guest = guest_sources(filter_program=self.filter)
        self._compile_guest()

    @property
    def name(self) -> str:
        """`docker`, with the runtime when it is not the engine's default."""
        return f"docker+{self.runtime}" if self.runtime else "docker"

    def start(self, limits: ResourceLimits) -> "DockerWorker":
        """A new container whose inside is starting."""
        return DockerWorker(self, limits, self.guest)

    def remove_later(self, container: str) -> None:
        """Kill and remove a container; one that resists is tried again by `close`."""
        self.remover.submit(self.engine.remove, container)

    def close(self) -> None:
        """Remove whatever containers of ours are left."""
        self.remover.shutdown(wait=True)
        until = time.monotonic() + 30
        try:
            while (left := self.engine.labelled(f"{_LABEL}={self.owner}")) and time.monotonic() < until:
                for container in left:
                    self.engine.remove(container)
                time.sleep(0.05)
        except EngineError as error:
            raise SandboxUnavailable(f"containers may be left behind: {error}") from None

    def specification(self, limits: ResourceLimits) -> dict[str, Any]:
        """What the engine is asked to make."""
        # A file without contents takes memory too: as many files as there are pages for contents.
        size = f"size={limits.disk_bytes},nr_inodes={max(1024, limits.disk_bytes // 4096)}"
        extra = _RUNSC_PROCESSES if self.runtime == "runsc" else SUPERVISOR_TASKS
        host = {
            "NetworkMode": "none",
            "Memory": limits.memory_bytes,
            "MemorySwap": limits.memory_bytes,
            "NanoCpus": int(limits.cores * 1_000_000_000),
            "PidsLimit": limits.processes + extra,
            "ReadonlyRootfs": True,
            "Tmpfs": {"/tmp": f"rw,nosuid,nodev,{size},mode=1777"},  # noqa: S108  the container's own
            "ShmSize": min(limits.disk_bytes, 16 * MEBIBYTE),
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "IpcMode": "private",
            "AutoRemove": True,
            "LogConfig": {"Type": "none"},
        }
        if self.runtime:
            host["Runtime"] = self.runtime
        return {
            "Image": self.options.image,
            "Entrypoint": ["python3", "-I", "-S", "-c", boot_text()],
            "Cmd": [],
            "User": NOBODY,
            "WorkingDir": "/tmp",  # noqa: S108  the container's own
            "Env": ["HOME=/tmp", "LANG=C.UTF-8"],
            "Hostname": "sandbox",
            "NetworkDisabled": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "OpenStdin": True,
            "StdinOnce": True,
            "Labels": {_LABEL: self.owner},
            "HostConfig": host,
        }

    def _compile_guest(self) -> None:
        """Let the image's interpreter compile the inside once; later starts take its result."""
        worker = DockerWorker(self, ResourceLimits(), guest_sources(b"C", filter_program=self.filter))
        otherwise = f"the image {self.options.image} cannot run Python"
        self.guest = compiled_guest(worker, otherwise=otherwise)


def _how_to_fix(error: EngineError, options: DockerOptions) -> str:
    if error.status == 404:
        return f"get the image with: docker pull {options.image}, or name another in EVENHAND_SANDBOX_IMAGE"
    return f"install and start an engine: {INSTALL}"


class DockerWorker:
    """One container."""

    def __init__(self, backend: Docker, limits: ResourceLimits, guest: bytes) -> None:
        self.backend = backend
        self.engine = backend.engine
        self.name = backend.name
        try:
            self.container = self.engine.create(backend.specification(limits))
        except EngineError as error:
            raise SandboxUnavailable(f"the engine cannot make a container: {error}") from None
        try:
            self.stream = self.engine.attach(self.container)
        except EngineError as error:
            self.engine.remove(self.container)
            raise SandboxUnavailable(f"the engine cannot start a container: {error}") from None
        try:
            self.engine.start(self.container)
            self.stream.send(guest)
        except (EngineError, OSError) as error:
            self.kill()
            raise SandboxUnavailable(f"the engine cannot start a container: {error}") from None

    def send(self, data: bytes) -> None:
        self.stream.send(data)

    def receive(self, until: float) -> bytes | None:
        return self.stream.receive(until)

    def rlimits(self, limits: ResourceLimits) -> dict[str, tuple[int, int]]:
        # No limit on processes: the kernel would count those of other containers with the same uid.
        found = {
            "RLIMIT_CPU": (limits.cpu_seconds, limits.cpu_seconds + 1),
            "RLIMIT_NOFILE": (limits.open_files, limits.open_files),
            "RLIMIT_FSIZE": (limits.disk_bytes, limits.disk_bytes),
            "RLIMIT_CORE": (0, 0),
        }
        if self.backend.runtime == "runsc":
            # Past the container's own limit gVisor ends as a whole and takes the report with it.
            found["RLIMIT_AS"] = (int(limits.memory_bytes * 0.75),) * 2
        return found

    def memory_kills(self) -> int:
        # The inside reads its own counter: the engine's flag tells of the first process only.
        return 0

    def diagnostics(self) -> str:
        return " ".join(self.stream.errors.decode("utf-8", "replace").split())[:500]

    def kill(self) -> None:
        self.stream.close()
        self.backend.remove_later(self.container)
