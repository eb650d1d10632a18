"""Case 62: fsync fails, and what the kernel had not written by then is lost. Nothing acknowledged is lost with it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.real_parts import need
from tests.reliability.history import Stage, check, drive
from tests.reliability.test_crash import check_database
from tests.service_harness import ServerProcess, running

SOURCE = Path(__file__).with_name("failing_disk.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The failing disk, to be loaded into a process."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    need(compiler is not None, "a C compiler (Debian package gcc)")
    target = tmp_path_factory.mktemp("disk") / "failing_disk.so"
    command = [str(compiler), "-shared", "-fPIC", "-O1", "-w", "-o", str(target), str(SOURCE)]
    subprocess.run(command, check=True, timeout=300)
    return target


def cut_the_power(path: Path) -> None:
    """Put what reached the disk in the place of what was in memory."""
    for file in (path, path.with_name(f"{path.name}-wal")):
        disk = file.with_name(f"{file.name}.disk")
        file.unlink(missing_ok=True)
        if disk.exists():
            disk.replace(file)
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)


def test_case_62_nothing_acknowledged_is_lost_when_fsync_fails(tmp_path: Path, library: Path) -> None:
    path, control = tmp_path / "evenhand.db", tmp_path / "fsync-fails"
    url = f"sqlite:///{path}"
    server = ServerProcess(url, folder=tmp_path, LD_PRELOAD=str(library), FSYNC_FAILS=str(control))
    server.start()
    try:
        stage = Stage(server.address)
        client = server.client()

        def disturb() -> None:
            control.touch()
            wait_for(lambda: client.post("/v1/projects", {"name": "x"}).status == 503)
            refused = client.post("/v1/projects", {"name": "x"})
            assert (refused.status, refused.code) == (503, "UNAVAILABLE")
            assert int(refused.headers["retry-after"]) > 0
            assert client.get("/v1/projects").status == 200
            control.unlink()
            wait_for(lambda: client.post("/v1/projects", {"name": "x"}).status == 201)

        history = drive(stage, disturb, cycles=5, seconds=0.2)
        metrics = client.get("/metrics").raw.decode()
        client.close()
    finally:
        server.kill()
    counts = history.counts()
    assert counts["acknowledged"] > 15, counts
    assert counts["unknown"] > 0, counts
    reopened = [line for line in metrics.splitlines() if line.startswith("evenhand_writer_reopened_total")]
    assert int(reopened[0].split()[1]) >= 5
    cut_the_power(path)
    with running(url, tmp_path) as after:
        stage.address = after.address
        checked = check(stage, history)
        print(f"\nfailing fsync: {counts}, found {checked}")
    check_database(url)


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.01)


ALONE = """
import os, pathlib, sys
from evenhand.core.errors import StoreUnavailable
from evenhand.store.database import open_database
from evenhand.store.projects import create_project
database = open_database(sys.argv[1])
control = pathlib.Path(os.environ["FSYNC_FAILS"])
def add(name):
    database.write_now(lambda c: create_project(c, project_id=name, name=name))
add("before")
control.touch()
for name in ("failed-1", "failed-2"):
    try:
        add(name)
    except StoreUnavailable:
        print("refused", name, flush=True)
control.unlink()
add("after-1")
add("after-2")
os._exit(9)
"""


def test_case_62_a_commit_after_the_failure_does_not_rest_on_what_was_lost(
    tmp_path: Path, library: Path
) -> None:
    """Without readers the log is read anew when it is reopened, and the failed commits look whole in memory."""
    path = tmp_path / "evenhand.db"
    environment = {**os.environ, "LD_PRELOAD": str(library), "FSYNC_FAILS": str(tmp_path / "fsync-fails")}
    url = f"sqlite:///{path}"
    done = subprocess.run(
        [sys.executable, "-c", ALONE, url], env=environment, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (9, "refused failed-1\nrefused failed-2\n"), done.stderr
    cut_the_power(path)
    with running(url, tmp_path) as server:
        client = server.client()
        names = {project["id"] for project in client.get("/v1/projects").body["items"]}
        client.close()
    assert {"before", "after-1", "after-2"} <= names
    check_database(url)
