"""A Docker engine of the tests' own: its own socket, storage and image, ended and removed afterwards."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from evenhand.sandbox.engine import Engine, EngineError

IMAGE = "evenhand-python:local"
ROOT = Path(__file__).resolve().parents[1]
# In the user's cache, so that a fresh clone of the repository finds it.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
TARBALL = CACHE / "evenhand" / "sandbox-image-bookworm.tar"


def missing() -> str | None:
    """What keeps this machine from running an engine, or None."""
    if os.geteuid() != 0:
        return "a Docker engine (starting one needs root)"
    for command in ("dockerd", "docker", "debootstrap"):
        if shutil.which(command, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            return f"the command {command}"
    return None


@contextlib.contextmanager
def running_engine() -> Iterator[str]:
    """The socket of a fresh engine that holds the image."""
    subprocess.run([ROOT / "scripts" / "sandbox-image", TARBALL], check=True, timeout=600)
    folder = Path(tempfile.mkdtemp(prefix="evenhand-docker-"))
    socket = folder / "docker.sock"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(
                    "dockerd",
                    "--iptables=false",
                    "--ip6tables=false",
                    "--ip-forward=false",
                    "--ip-masq=false",
                ),
                *("--bridge=none", "--data-root", folder / "data", "--exec-root", folder / "exec"),
                *("-H", f"unix://{socket}", "-p", folder / "pid"),
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"},
        )
    try:
        _wait(socket, process, folder)
        with TARBALL.open("rb") as tarball:
            subprocess.run(
                ["docker", "-H", f"unix://{socket}", "import", "-", IMAGE],
                stdin=tarball,
                stdout=subprocess.DEVNULL,
                check=True,
                timeout=600,
            )
        yield str(socket)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for mount in _mounts_below(folder):
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(socket: Path, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    until = time.monotonic() + 180
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(EngineError):
            Engine(str(socket)).call("GET", "/info")
            return
        time.sleep(0.1)
    raise RuntimeError("dockerd did not start:\n" + (folder / "log").read_text()[-2000:])


def _mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted(
        (line.split()[4] for line in lines if line.split()[4].startswith(f"{folder}/")), reverse=True
    )
