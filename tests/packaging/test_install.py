"""The package as users install it: wheel and source archive, in an empty environment of every Python found here."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ("3.11", "3.12", "3.13")
pytestmark = pytest.mark.xdist_group("packaging")


def interpreters() -> list[str]:
    """One interpreter of each supported release that this machine has."""
    found = []
    for release in RELEASES:
        if sys.version_info[:2] == tuple(map(int, release.split("."))):
            found.append(getattr(sys, "_base_executable", sys.executable))
            continue
        managed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{release}.*/bin/python3"))
        candidate = str(managed[-1]) if managed else shutil.which(f"python{release}")
        # A version manager may have a command of that name and no interpreter behind it.
        if (
            candidate is not None
            and subprocess.run([candidate, "--version"], capture_output=True).returncode == 0
        ):
            found.append(candidate)
    return found


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a fresh wheel and source archive."""
    folder: Path = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)])
    return folder


def run(command: list[str], **more: object) -> str:
    """What a command printed; it must end well."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        **more,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]} {done.stderr[-4000:]}"
    return str(done.stdout)


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(archives: Path) -> None:
    [wheel] = archives.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert "evenhand" in tops
    assert all(top == "evenhand" or top.endswith(".dist-info") for top in tops)
    in_tree = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.startswith("evenhand/")} == in_tree


def test_the_source_archive_can_be_built_from(archives: Path) -> None:
    [archive] = archives.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/evenhand/__init__.py"} <= names


@pytest.fixture(scope="session", params=interpreters(), ids=lambda path: Path(path).parent.parent.name)
def environment(
    request: pytest.FixtureRequest, archives: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """An empty environment with the wheel in it, without any extra."""
    folder: Path = tmp_path_factory.mktemp("installed")
    run([request.param, "-m", "venv", str(folder)])
    [wheel] = archives.glob("*.whl")
    run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)])
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_library_command_line_and_service_work_from_the_wheel(
    environment: Path, archives: Path, tmp_path: Path
) -> None:
    python, evenhand = str(environment / "bin" / "python"), str(environment / "bin" / "evenhand")
    readme = (ROOT / "README.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    [printed] = re.findall(r"prints\n\n```text\n(.*?)```", readme, re.DOTALL)
    assert run([python, "-c", program], cwd=tmp_path) == printed
    version = run([evenhand, "--version"]).split()[-1]
    assert version == declared_version()
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"response": "Paris.", "target": "paris"}\n{"response": "Lyon", "target": "Paris"}\n')
    said = json.loads(run([evenhand, "score", str(answers), "--scorer", "exact_match", "--format", "json"]))
    assert '"mean": 0.5' in json.dumps(said) or "0.5" in json.dumps(said)

    refused = subprocess.run([evenhand, "serve"], capture_output=True, text=True, timeout=120)
    assert "pip install 'evenhand[server]'" in refused.stderr
    assert "Traceback" not in refused.stderr

    [wheel] = archives.glob("*.whl")
    run([python, "-m", "pip", "install", "--quiet", f"evenhand[server] @ {wheel.as_uri()}"])
    serve = [evenhand, "serve", "--demo", "--port", "0", "--database", f"sqlite:///{tmp_path / 'demo.db'}"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            link = next(
                found for line in server.stdout if (found := re.search(r"http://\S+/login\?code=\S+", line))
            )
            page = urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(
                link.group(), timeout=60
            )
            assert page.status == 200
            assert "Demonstration" in page.read().decode() or "demo" in page.url
        finally:
            server.terminate()
            server.wait(60)


def declared_version() -> str:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["version"]["path"]
    found = re.search(r'__version__ = "([^"]+)"', (ROOT / configured).read_text())
    assert found is not None
    return found.group(1)
