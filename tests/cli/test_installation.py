"""What a newcomer meets first: the bare command, the doctor, completion, extras."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.evaluation.runs import evenhand
from tests.real_parts import need

from evenhand import __version__
from evenhand.core.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]


def test_without_arguments_the_first_steps_are_shown() -> None:
    done = evenhand()
    assert done.returncode == 0
    assert "evenhand score answers.jsonl" in done.stdout
    assert "evenhand --help" in done.stdout


def test_the_commands_of_the_first_steps_exist() -> None:
    said = evenhand().stdout
    for name in ("score", "eval run", "compare", "serve", "mock-model", "doctor"):
        assert f"evenhand {name}" in said
        assert evenhand(*name.split(), "--help").returncode == 0


def test_version() -> None:
    assert __version__ in evenhand("--version").stdout


def test_the_table_of_extras_is_that_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {
        extra: {line.split(">")[0].split("[")[0].split(";")[0].strip() for line in lines}
        for extra, lines in declared.items()
        if extra != "all"
    }
    assert {extra.name: set(extra.packages) for extra in EXTRAS} == names
    assert declared["all"] == [f"evenhand[{','.join(names)}]"]


def test_the_doctor_names_extras_and_the_database(tmp_path: Path) -> None:
    place = tmp_path / "none.db"
    done = evenhand(
        "doctor", "--no-sandboxes", "--format", "json", env={"EVENHAND_DATABASE": f"sqlite:///{place}"}
    )
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert {extra["name"]: extra["installed"] for extra in report["extras"]} == {e.name: True for e in EXTRAS}
    assert report["database"]["state"].startswith("will be made")
    assert not place.exists()


def test_a_database_that_does_not_open_fails_the_doctor(tmp_path: Path) -> None:
    place = tmp_path / "text.db"
    place.write_text("this is no database, whatever its name says")
    done = evenhand("doctor", "--no-sandboxes", env={"EVENHAND_DATABASE": f"sqlite:///{place}"})
    assert done.returncode == 1
    assert "does not open" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_variable_that_the_command_answers_to(shell: str) -> None:
    assert f"_EVENHAND_COMPLETE={shell}_complete" in evenhand("completion", shell).stdout


def test_bash_completes_commands(tmp_path: Path) -> None:
    """The script that is printed, sourced in a real bash, completes `evenhand comp`."""
    script = tmp_path / "completion.bash"
    script.write_text(evenhand("completion", "bash").stdout)
    need(Path("/bin/bash").exists(), "bash")
    asked = (
        f"source {script}; COMP_WORDS=(evenhand comp); COMP_CWORD=1; "
        '_evenhand_completion evenhand comp evenhand; echo "${COMPREPLY[*]}"'
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/bash", "-c", asked],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": path},
    )
    assert done.stdout.split() == ["compare", "completion"], done
