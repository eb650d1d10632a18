"""What is said where an optional package is missing: one sentence with the command that installs it."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.service_harness import ADMIN_TOKEN, Client, ServerProcess


def without(package: str, folder: Path) -> str:
    """The PYTHONPATH of a Python that has no such package."""
    (folder / f"{package}.py").write_text(f"raise ModuleNotFoundError('No module named', name={package!r})\n")
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


@pytest.mark.parametrize(
    ("package", "options", "sentence"),
    [
        (
            "grpc",
            ["--port", "0", "--grpc-port", "14399", "--database", "e.db"],
            "OTLP over gRPC needs the package 'grpcio'; install it with: pip install 'evenhand[grpc]'",
        ),
        (
            "psycopg",
            ["--port", "0", "--database", "postgresql://127.0.0.1/e"],
            "a PostgreSQL database needs the package 'psycopg'; install it with: pip install 'evenhand[postgres]'",
        ),
        (
            "uvicorn",
            ["--port", "0", "--database", "e.db"],
            "the server needs the package 'uvicorn'; install it with: pip install 'evenhand[server]'",
        ),
    ],
)
def test_the_server_says_what_to_install(
    package: str, options: list[str], sentence: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "serve", *options],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": without(package, tmp_path), "EVENHAND_ADMIN_TOKEN": ADMIN_TOKEN},
    )
    assert done.returncode == 69, done.stderr
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_the_extra_the_server_starts_and_a_Parquet_export_says_what_to_install(
    tmp_path: Path,
) -> None:
    """Neither gRPC nor Parquet were asked for at the start: the rest works without them."""
    without("grpc", tmp_path)
    path = without("pyarrow", tmp_path)
    server = ServerProcess(f"sqlite:///{tmp_path}/e.db", folder=tmp_path, PYTHONPATH=path)
    server.start()
    try:
        with closing(Client(server.address)) as client:
            dataset, _ = client.dataset(["a"])
            assert len(client.get(f"/v1/exports/datasets/{dataset}/items").raw.splitlines()) == 1
            reply = client.get(f"/v1/exports/datasets/{dataset}/items", format="parquet")
            assert (reply.status, reply.code) == (422, "NOT_INSTALLED")
            assert "pip install 'evenhand[parquet]'" in reply.body["error"]["message"]
    finally:
        server.stop()
