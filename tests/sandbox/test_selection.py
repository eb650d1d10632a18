"""Which back end is taken, and what happens when there is none."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from tests.real_parts import need

from evenhand import settings
from evenhand.cli.app import command
from evenhand.core.errors import OptionError, SandboxUnavailable
from evenhand.core.outcome import Failed
from evenhand.sandbox.docker import DockerOptions
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import Program
from evenhand.sandbox.selection import open_sandbox
from evenhand.scoring.apply import score_sample
from evenhand.scoring.registry import get_scorer
from evenhand.scoring.types import ScorerInput

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = DockerOptions(socket="/nonexistent/docker.sock")
SAMPLE = ScorerInput(
    response="def add(a, b):\n    return a + b",
    target="add",
    metadata={"_test": "assert add(1, 2) == 3", "entry_point": "add"},
)


def test_the_environment_names_the_engine_and_the_image() -> None:
    loaded = settings.load(
        {"DOCKER_HOST": "unix:///run/user/1000/podman.sock", "EVENHAND_SANDBOX_IMAGE": "mine:1"}
    )
    assert (loaded.docker_socket, loaded.sandbox_image) == ("/run/user/1000/podman.sock", "mine:1")
    # Programs do not leave this machine.
    assert settings.load({"DOCKER_HOST": "tcp://10.0.0.1:2375"}).docker_socket == "/var/run/docker.sock"


def test_auto_takes_bubblewrap_where_there_is_no_engine(bubblewrap: Pool) -> None:
    sandbox = open_sandbox("auto", docker=NOWHERE)
    try:
        assert sandbox.name == "bubblewrap"
    finally:
        sandbox.close()


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(OptionError, match="podman"):
        open_sandbox("podman")


def test_no_engine_says_how_to_get_one() -> None:
    with pytest.raises(
        SandboxUnavailable, match=r"no engine answers at /nonexistent.*apt-get install docker\.io"
    ):
        open_sandbox("docker", docker=NOWHERE)


def test_no_bubblewrap_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        open_sandbox("bubblewrap")


def test_a_sample_without_a_sandbox_fails_and_is_never_incorrect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_SANDBOX", "docker")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    outcome = score_sample(get_scorer("code_sandbox"), SAMPLE)
    assert isinstance(outcome, Failed)
    assert outcome.error == "sandbox_unavailable"
    assert "apt-get install" in outcome.message


@pytest.mark.xdist_group("docker")
def test_an_image_that_is_not_there_is_named(docker_options: DockerOptions) -> None:
    options = DockerOptions(socket=docker_options.socket, image="evenhand-missing:none")
    with pytest.raises(SandboxUnavailable, match=r"docker pull evenhand-missing:none"):
        open_sandbox("docker", docker=options)


@pytest.mark.xdist_group("docker")
def test_docker_is_taken_when_asked_for(docker_options: DockerOptions) -> None:
    sandbox = open_sandbox("docker", docker=docker_options)
    try:
        assert isinstance(sandbox, Pool)
        assert sandbox.execute(Program(source="print(1)")).backend == "docker"
    finally:
        sandbox.close()


def test_doctor_reports_what_was_measured(bubblewrap: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    done = CliRunner().invoke(command, ["doctor", "--format", "json"], standalone_mode=False)
    report = json.loads(done.stdout)["sandbox"]
    assert (report["setting"], report["chosen"], done.return_value) == ("auto", "bubblewrap", 0)
    first, second = report["backends"]
    assert first["works"]
    measured = {check["check"]: check["measured"] for check in first["checks"]}
    assert measured["memory limit"].startswith("memory_limit at ")
    assert measured["process limit"].startswith("stopped at ")
    assert "no engine answers" in second["problem"]


def test_doctor_says_what_to_install_when_nothing_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    done = CliRunner().invoke(command, ["doctor"], standalone_mode=False)
    assert done.return_value == 1
    assert "apt-get install bubblewrap" in done.stdout


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into; pytest closes its own to others whenever a session starts."""
    with tempfile.TemporaryDirectory(prefix="evenhand-open-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_an_unprivileged_user_gets_a_sandbox_too(bubblewrap: Pool, open_folder: Path) -> None:
    need(os.geteuid() == 0, "root, to become another user")
    python = "/usr/bin/python3"
    version = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True
    )
    need(version.stdout.strip() == str(sys.version_info[:2]), "a system Python of the same version")
    packages = Path(msgspec.__file__).parent
    # The working copy may lie where another user cannot look; the source and its one dependency are copied.
    subprocess.run(["cp", "-r", str(ROOT / "src"), str(open_folder / "src")], check=True)
    subprocess.run(["cp", "-r", str(packages), str(open_folder / "src" / "msgspec")], check=True)
    code = f"""
import sys
sys.path.insert(0, {str(open_folder / "src")!r})
from evenhand.sandbox.selection import candidates
from evenhand.sandbox.docker import DockerOptions
from evenhand.sandbox.conformance import self_check
from evenhand.sandbox.pool import Pool
first = next(candidates(DockerOptions(socket="/nonexistent")))
assert first.backend is not None, first.problem
with Pool(first.backend, parallel=1, warm=1) as pool:
    bad = [f for f in self_check(pool) if not f.ok]
print(first.holds)
print(bad)
"""
    done = subprocess.run(
        [python, "-c", code],
        capture_output=True,
        text=True,
        user=65534,
        group=65534,
        extra_groups=[],
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "[]", done
    assert "rlimits only" in lines[0]
