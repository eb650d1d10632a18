"""Kill the server, or its database, under load: nothing acknowledged is lost, nothing is doubled."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.postgres import PostgresServer
from tests.reliability.history import Stage, check, drive
from tests.service_harness import ServerProcess, running

CYCLES = [
    pytest.param(10, id="10 cycles"),
    pytest.param(100, id="100 cycles", marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
]


def check_database(url: str) -> None:
    """`evenhand db check` recomputes every aggregate and finds no difference."""
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "db", "check", "--database", url],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def kill_the_server(url: str, folder: Path, cycles: int) -> None:
    server = ServerProcess(url, folder=folder)
    server.start()

    def disturb() -> None:
        server.kill()
        server.start()

    try:
        stage = Stage(server.address)
        history = drive(stage, disturb, cycles=cycles, seconds=0.2)
        counts = history.counts()
        assert counts["acknowledged"] > 3 * cycles, counts
        assert counts["refused"] > 0, counts
        checked = check(stage, history)
        print(f"\n{cycles} kills: {counts}, found {checked}")
    finally:
        server.stop()
    check_database(url)


@pytest.mark.parametrize("cycles", CYCLES)
def test_SIGKILL_of_the_server_on_sqlite(tmp_path: Path, cycles: int) -> None:
    kill_the_server(f"sqlite:///{tmp_path / 'evenhand.db'}", tmp_path, cycles)


@pytest.mark.parametrize("cycles", CYCLES)
def test_SIGKILL_of_the_server_on_postgresql(tmp_path: Path, cycles: int) -> None:
    with PostgresServer(durable=True) as postgres, postgres.database() as url:
        kill_the_server(url, tmp_path, cycles)


@pytest.mark.parametrize("cycles", CYCLES)
def test_immediate_restart_of_postgresql(tmp_path: Path, cycles: int) -> None:
    with PostgresServer(durable=True) as postgres:
        url = postgres.url(postgres.create_database())
        with running(url, tmp_path) as server:
            stage = Stage(server.address)
            history = drive(stage, postgres.restart_immediately, cycles=cycles, seconds=0.3)
            counts = history.counts()
            assert counts["acknowledged"] > 3 * cycles, counts
            checked = check(stage, history)
            print(f"\n{cycles} restarts: {counts}, found {checked}")
        check_database(url)
