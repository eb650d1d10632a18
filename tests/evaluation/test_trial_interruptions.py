"""`evenhand ab run` as people use it: the shipped example, killed, interrupted, resumed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ab_suites import (
    EXAMPLE,
    alive,
    records,
    suite,
    wait_for,
    with_variable,
    without_times,
    write_suite,
)

from evenhand.cli.app import main
from evenhand.evaluation.trials.processes import MARK


def start(*args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "evenhand", "ab", "run", *(str(arg) for arg in args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(folder: Path) -> list[str]:
    path = folder / "finished.jsonl"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, run in one go."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    process = start(EXAMPLE, "-o", folder, "--repeats", 2, "--parallel", 2)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert out.startswith("Decision: ")
    return folder


@pytest.mark.xdist_group("ab_example")
def test_the_example_end_to_end(whole: Path) -> None:
    """Twelve trials, and every file that was promised."""
    rows = records(whole / "collected.jsonl")
    assert len(rows) == 12
    assert {row["arm"] for row in rows} == {"with_hints", "without_hints"}
    assert any(row["success"] for row in rows)
    assert not all(row["success"] for row in rows)
    analysis = json.loads((whole / "analysis.json").read_text())
    assert analysis["run_count"] == 12
    assert analysis["treatment"] == "with_hints"
    assert (whole / "analysis.md").exists()
    assert (whole / "analysis.html").read_text().startswith("<!doctype html>")


def killed_in_the_middle(tmp_path: Path) -> tuple[Path, tuple[object, ...]]:
    """The folder and the arguments of a killed run; one that was over before the signal came is followed by another."""
    for number in range(20):
        folder = tmp_path / f"run-{number}"
        args = (EXAMPLE, "-o", folder, "--repeats", 2, "--parallel", 2)
        process = start(*args)
        wait_for(lambda folder=folder: len(finished(folder)) >= 3, 200)  # type: ignore[misc]  # bound early on purpose
        run_id = json.loads((folder / "run.json").read_text())["run_id"]
        process.kill()
        process.communicate(timeout=200)
        wait_for(lambda run_id=run_id: not with_variable(MARK, run_id))  # type: ignore[misc]  # as above
        if len(finished(folder)) < 12:
            break
    return folder, args


@pytest.mark.xdist_group("ab_example")
def test_killed_in_the_middle_and_resumed(whole: Path, tmp_path: Path) -> None:
    """SIGKILL: nothing lingers, nothing finished is repeated, and the records are those of a run in one go."""
    folder, args = killed_in_the_middle(tmp_path)
    kept = finished(folder)
    assert 3 <= len(kept) < 12
    assert not (folder / "collected.jsonl").exists()
    process = start(*args)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert f"12 trials finished, {12 - len(kept)} of them now" in err
    assert finished(folder)[: len(kept)] == kept
    assert len(finished(folder)) == 12
    assert without_times(records(folder / "collected.jsonl")) == without_times(
        records(whole / "collected.jsonl")
    )
    assert not (folder / "workspaces").exists()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_keep_what_is_finished(tmp_path: Path, number: signal.Signals, status: int) -> None:
    """The first trial finishes, the second hangs: the signal ends it at once, and says how to go on."""
    pid_file = tmp_path / "pid"
    hang = f"test $EVENHAND_TASK_ID = quick || {{ echo $$ > {pid_file}; test -e {tmp_path}/go || exec sleep 300; }}"
    tasks = [{"id": name, "prompt": "p", "timeout_seconds": 400} for name in ("quick", "slow")]
    content = suite(tasks=tasks, arms=[{"name": "a", "agent_command": hang}])
    path, folder = write_suite(tmp_path, content), tmp_path / "run"
    process = start(path, "-o", folder, "--parallel", 2)
    wait_for(lambda: pid_file.exists() and pid_file.read_text() != "" and len(finished(folder)) == 1)
    process.send_signal(number)
    _, err = process.communicate(timeout=200)
    assert process.returncode == status
    assert "Interrupted: 1 of 2 trials are finished and kept" in err
    assert f"resume with: evenhand ab run {path} -o {folder} --parallel 2" in err
    wait_for(lambda: not alive(int(pid_file.read_text())))
    (tmp_path / "go").touch()
    process = start(path, "-o", folder)
    _, err = process.communicate(timeout=200)
    assert "2 trials finished, 1 of them now" in err
    assert len(finished(folder)) == 2


def test_two_processes_on_one_folder(tmp_path: Path) -> None:
    """The second says so and exits with 75; the first goes on undisturbed."""
    agent = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    path = write_suite(tmp_path, suite(arms=[{"name": name, "agent_command": agent} for name in ("a", "b")]))
    first = start(path, "-o", tmp_path / "run", "--parallel", 2)
    wait_for((tmp_path / "run" / "trials").exists)
    second = start(path, "-o", tmp_path / "run")
    _, err = second.communicate(timeout=200)
    assert second.returncode == 75
    assert "is active on host" in err
    (tmp_path / "go").touch()
    out, err = first.communicate(timeout=200)
    assert first.returncode == 0, err
    assert out.startswith("Decision: ")


def run(*args: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["ab", "run", *(str(arg) for arg in args)])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_a_dry_run_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(EXAMPLE, "--dry-run", "-o", tmp_path / "run", "--arms", "with_hints", "--repeats", 30) == 0
    out = capsys.readouterr().out
    assert "90 trials: 3 tasks × 1 arms × 30 repeats; 0 finished, 90 to run" in out
    assert "and 70 more" in out
    assert os.listdir(tmp_path) == []


def test_bad_usage_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none.json") == 66
    assert "No such file" in capsys.readouterr().err
    assert run(EXAMPLE, "--arms", "with_hint", "-o", tmp_path / "run") == 64
    assert "did you mean with_hints" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arms", "options", "status", "text"),
    [
        (("b", "a"), ("--strict",), 1, "prefer a"),
        (("a", "b"), ("--strict",), 0, "prefer a"),
        (("a", "b"), ("--treatment", "b", "--control", "a"), 0, "prefer a"),
        (("a",), (), 65, "insufficient data"),
    ],
)
def test_the_first_arm_is_the_treatment(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arms: tuple[str, ...],
    options: tuple[str, ...],
    status: int,
    text: str,
) -> None:
    usage = {"a": 10, "b": 20}
    # The decision goes by duration too: a busy machine may add more than a moment to the quicker one.
    seconds = {"a": 0, "b": 3}
    made = [
        {
            "name": name,
            "agent_command": f'sleep {seconds[name]}; echo \'{{"input_tokens": {usage[name]}, "output_tokens": 0}}\' > {{usage_file}}',
        }
        for name in usage
    ]
    path = write_suite(tmp_path, suite(arms=made))
    assert run(path, "-o", tmp_path / "run", "--arms", ",".join(arms), *options) == status
    assert text in capsys.readouterr().out


def test_three_arms_are_run_and_left_to_choose_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_suite(tmp_path, suite(arms=[{"name": name, "agent_command": "true"} for name in "abc"]))
    assert run(path, "-o", tmp_path / "run") == 0
    assert "There are 3 arms; compare two of them with: evenhand ab analyze" in capsys.readouterr().err
    assert not (tmp_path / "run" / "analysis.json").exists()
