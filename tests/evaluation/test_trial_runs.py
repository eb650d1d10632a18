"""Running suites for real: workspaces, time limits, leftovers, failures, resuming."""

import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.ab_suites import QUICK, alive, one_arm, records, suite, wait_for, write_suite

from evenhand.ab import load_records
from evenhand.core.errors import InputError, OutputError, RunConflict
from evenhand.evaluation.trials.ledger import TrialFolder
from evenhand.evaluation.trials.processes import MARK, kill_leftovers
from evenhand.evaluation.trials.runner import Progress, TrialOptions, TrialsOutcome, run_suite
from evenhand.evaluation.trials.suite import choose, load_suite


def go(folder: Path, content: dict[str, Any], *, repeats: int | None = None, **options: Any) -> TrialsOutcome:
    loaded = load_suite(write_suite(folder, content))
    return run_suite(
        loaded, choose(loaded.suite, repeats=repeats), TrialOptions(folder=folder / "run", **options)
    )


def only_record(folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    outcome = go(folder, content)
    assert outcome.collected is not None
    (record,) = records(outcome.collected)
    assert len(load_records(outcome.collected)) == 1
    return record


def test_a_trial_from_workspace_to_record(tmp_path: Path) -> None:
    """Setup, arm setup, agent and acceptance share one fresh folder; variables and places are filled in."""
    content = suite(
        tasks=[
            {
                "id": "a task",
                "prompt": "say 'hi'",
                "setup_commands": ["echo task > order"],
                "acceptance_command": 'test "$(cat order)" = "task\narm\nsay \'hi\' 1 on with_x"',
            }
        ],
        arms=[
            {
                "name": "with_x",
                "env": {"FLAG": "on"},
                "setup_commands": [["sh", "-c", "echo arm >> order"]],
                "agent_command": f'echo {{prompt}} {{repeat}} "$FLAG" "$EVENHAND_ARM" >> order; echo out; echo err >&2; {QUICK}',
            }
        ],
    )
    record = only_record(tmp_path, content)
    assert record["success"] is True
    assert (record["task_id"], record["arm"], record["repeat"]) == ("a task", "with_x", 1)
    assert (record["input_tokens"], record["total_cost_usd"], record["cache_read_tokens"]) == (10, 0.5, None)
    assert [record[name] for name in ("setup_exit_code", "arm_setup_exit_code", "agent_exit_code")] == [
        0,
        0,
        0,
    ]
    assert record["acceptance_exit_code"] == 0
    assert record["infra_failure"] is False
    assert record["duration_seconds"] > 0
    logs = (tmp_path / "run" / record["prompt_file"]).parent
    assert (logs / "agent.stdout").read_text() == "out\n"
    assert (logs / "agent.stderr").read_text() == "err\n"
    assert (logs / "prompt.txt").read_text() == "say 'hi'"
    assert not (tmp_path / "run" / "workspaces").exists()


@pytest.mark.parametrize(
    ("agent", "task", "expected"),
    [
        ("exit 3", {"acceptance_command": "true"}, {"success": True, "agent_exit_code": 3}),
        ("true", {"acceptance_command": "exit 4"}, {"success": False, "acceptance_exit_code": 4}),
        ("true", {}, {"success": True}),
        ("exit 1", {}, {"success": False, "infra_failure": False}),
        ("kill -9 $$", {}, {"success": False, "agent_exit_code": -9}),
        ("exit 86", {}, {"success": False, "infra_failure": True, "agent_exit_code": 86}),
        (
            "exit 1",
            {"acceptance_command": "exit 99"},
            {"infra_failure": True, "acceptance_exit_code": 99},
        ),
        ("true", {"acceptance_command": "exit 99"}, {"infra_failure": False, "success": False}),
        (
            "touch ran",
            {"setup_commands": ["true", "exit 7"]},
            {"infra_failure": True, "setup_exit_code": 7, "failure_reason": "setup command 2 exited with 7"},
        ),
        (
            ["no-such-agent-anywhere"],
            {},
            {"infra_failure": True, "agent_exit_code": 127},
        ),
    ],
)
def test_what_counts_as_success_failure_and_infrastructure(
    tmp_path: Path, agent: Any, task: dict[str, Any], expected: dict[str, Any]
) -> None:
    record = only_record(tmp_path, one_arm(agent, **task))
    assert {name: record[name] for name in expected} == expected


def test_other_exit_codes_can_mean_infrastructure(tmp_path: Path) -> None:
    content = {**one_arm("exit 75"), "infra_exit_codes": [75]}
    assert only_record(tmp_path, content)["infra_failure"] is True


def test_a_time_limit_ends_everything_the_agent_started(tmp_path: Path) -> None:
    """A child in a session of its own, a daemon, and a shell that ignores SIGTERM: none is alive afterwards."""
    pids = tmp_path / "pids"
    agent = (
        f"trap '' TERM; echo $$ >> {pids}; setsid sh -c \"echo \\$\\$ >> {pids}; sleep 300\" & "
        f"(setsid sh -c \"trap '' TERM; echo \\$\\$ >> {pids}; sleep 300; sleep 300\" &) ; sleep 300; sleep 300"
    )
    # Long enough to start three processes on a busy machine, far from the 300 seconds that they mean to stay.
    record = only_record(tmp_path, one_arm(agent, timeout_seconds=5, acceptance_command="true"))
    assert (record["agent_exit_code"], record["agent_timed_out"], record["success"]) == (124, True, False)
    assert "acceptance_exit_code" not in record
    assert 5 <= record["duration_seconds"] < 300
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) == 3
    wait_for(lambda: not any(alive(pid) for pid in started))


def test_what_an_agent_leaves_running_is_ended(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    agent = f"(setsid sh -c 'echo $$ > {pid_file}; exec sleep 300' >/dev/null 2>&1 &); while [ ! -s {pid_file} ]; do :; done"
    record = only_record(tmp_path, one_arm(agent))
    assert record["success"] is True
    wait_for(lambda: not alive(int(pid_file.read_text())))


def test_leftovers_of_a_dead_run_are_found_by_their_mark() -> None:
    run = f"run {secrets.token_hex(8)}"
    marked = subprocess.Popen(["sleep", "300"], env={**os.environ, MARK: run}, start_new_session=True)
    other = subprocess.Popen(["sleep", "300"], env={**os.environ, MARK: "another"}, start_new_session=True)
    try:
        assert kill_leftovers(run) == 1
        assert marked.wait(60) == -9
        assert alive(other.pid)
    finally:
        other.kill()
        other.wait()
        marked.kill()
        marked.wait()


def test_a_killed_supervisor_takes_its_command_along(tmp_path: Path) -> None:
    """The trial is an infrastructure failure, and the command does not outlive it."""
    pid_file = tmp_path / "pid"
    agent = f"echo $$ > {pid_file}; kill -9 $PPID; exec sleep 300"
    record = only_record(tmp_path, one_arm(agent))
    assert record["infra_failure"] is True
    assert "supervisor died" in record["failure_reason"]
    wait_for(lambda: not alive(int(pid_file.read_text())))


def test_copied_workspaces_are_fresh_and_leave_the_source_alone(tmp_path: Path) -> None:
    """The run's own folder lies inside the source and is not copied into itself."""
    (tmp_path / "data.txt").write_text("start")
    (tmp_path / "link").symlink_to("data.txt")
    agent = (
        "test $(cat link) = start && test ! -e run && echo changed > data.txt && mkdir -p d && chmod 500 d"
    )
    content = suite(
        workspace={"kind": "copy", "source": "."},
        tasks=[{"id": "t", "prompt": "p"}],
        arms=[{"name": "a", "agent_command": agent}],
    )
    outcome = go(tmp_path, content, repeats=3)
    assert outcome.collected is not None
    assert [record["success"] for record in records(outcome.collected)] == [True] * 3
    assert (tmp_path / "data.txt").read_text() == "start"


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "file").write_text("one")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "one")
    return folder


def test_git_workspaces_are_worktrees_of_one_commit(tmp_path: Path, repository: Path) -> None:
    agent = (
        'test "$(cat file)" = one && echo two > file && git rev-parse HEAD > "$EVENHAND_USAGE_FILE.commit"'
    )
    content = suite(
        workspace={"kind": "git", "source": "repo"},
        tasks=[{"id": "t", "prompt": "p"}],
        arms=[{"name": name, "agent_command": agent} for name in ("a", "b")],
    )
    assert go(tmp_path, content, parallel=2, keep_workspaces=True).done == 2
    assert (tmp_path / "run" / "workspaces" / "t" / "a" / "1" / "file").read_text() == "two\n"
    # A later commit does not reach a run that was started before it.
    (repository / "file").write_text("later")
    git(repository, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qam", "later")
    outcome = go(tmp_path, content, repeats=3, parallel=2)
    assert (outcome.done, outcome.ran) == (6, 4)
    assert outcome.collected is not None
    assert all(record["success"] for record in records(outcome.collected))
    assert (repository / "file").read_text() == "later"
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("workspace", "reason"),
    [
        ({"kind": "copy", "source": "gone"}, "is not a folder"),
        ({"kind": "git", "source": "."}, "is not a git repository with a commit 'HEAD'"),
        ({"kind": "git", "source": "repo", "ref": "no-such"}, "with a commit 'no-such'"),
    ],
)
def test_sources_that_cannot_serve(
    tmp_path: Path, repository: Path, workspace: dict[str, str], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        go(tmp_path, suite(workspace=workspace))
    assert not (tmp_path / "run").exists()


def test_finished_trials_are_not_repeated_and_more_may_join(tmp_path: Path) -> None:
    count = tmp_path / "count"
    content = suite(arms=[{"name": name, "agent_command": f"echo x >> {count}"} for name in ("a", "b")])
    assert go(tmp_path, content).ran == 2
    assert go(tmp_path, content).ran == 0
    assert go(tmp_path, content, repeats=3, parallel=3).ran == 4
    content["arms"].append({"name": "c", "agent_command": f"echo x >> {count}"})
    outcome = go(tmp_path, content, repeats=3)
    assert (outcome.ran, outcome.done, outcome.total) == (3, 9, 9)
    assert len(count.read_text().split()) == 9
    assert outcome.collected is not None
    keys = [(one["task_id"], one["arm"], one["repeat"]) for one in records(outcome.collected)]
    assert keys == sorted(keys)
    assert len(keys) == 9


def test_a_changed_suite_is_refused_by_name(tmp_path: Path) -> None:
    content = suite()
    go(tmp_path, content)
    content["arms"][0]["agent_command"] = "true"
    with pytest.raises(RunConflict, match="changed: arm with_x"):
        go(tmp_path, content)
    with pytest.raises(RunConflict, match="workspace, usage or limits"):
        go(tmp_path, suite(infra_exit_codes=[1]))


def test_secrets_in_the_environment_of_an_arm_are_not_written_down(tmp_path: Path) -> None:
    arm = {"name": "a", "agent_command": "true", "env": {"KEY": "sk-very-secret"}}
    go(tmp_path, suite(arms=[arm]))
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or b"sk-very-secret" not in path.read_bytes()


def test_infrastructure_failures_can_be_run_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    content = one_arm(f"test -e {flag} || {{ touch {flag}; exit 86; }}")
    assert only_record(tmp_path, content)["infra_failure"] is True
    assert go(tmp_path, content).ran == 0
    outcome = go(tmp_path, content, retry_infra=True)
    assert (outcome.ran, outcome.done) == (1, 1)
    assert outcome.collected is not None
    (record,) = records(outcome.collected)
    assert (record["infra_failure"], record["success"]) == (False, True)
    assert go(tmp_path, content, retry_infra=True).ran == 0


def test_a_line_that_a_crash_cut_short_is_run_again(tmp_path: Path) -> None:
    content = suite()
    go(tmp_path, content)
    ledger = tmp_path / "run" / "finished.jsonl"
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[:-20])
    assert go(tmp_path, content).ran == 1
    assert len(records(ledger)) == 2
    ledger.write_bytes(b"{}\n")
    with pytest.raises(InputError, match=r"finished\.jsonl:1: is not a finished trial"):
        go(tmp_path, content)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with TrialFolder(tmp_path / "run"), pytest.raises(RunConflict, match="is active on host"):
        go(tmp_path, suite())
    assert go(tmp_path, suite()).done == 2


def test_trials_run_side_by_side(tmp_path: Path) -> None:
    """Each waits for the other: one at a time they would run into their limit."""
    meet = f"touch {tmp_path}/$EVENHAND_ARM; while [ $(ls {tmp_path} | grep -c -x '[ab]') -lt 2 ]; do sleep 0.02; done"
    content = suite(arms=[{"name": name, "agent_command": meet} for name in ("a", "b")])
    outcome = go(tmp_path, content, parallel=2)
    assert outcome.collected is not None
    assert [record["agent_exit_code"] for record in records(outcome.collected)] == [0, 0]


def test_progress_counts_and_estimates(tmp_path: Path) -> None:
    seen: list[Progress] = []
    loaded = load_suite(write_suite(tmp_path, suite()))
    choice = choose(loaded.suite, repeats=2)
    run_suite(loaded, choice, TrialOptions(folder=tmp_path / "run"), seen.append)
    assert [now.done for now in seen] == [0, 1, 2, 3, 4]
    assert seen[0].eta_seconds is None
    assert seen[1].eta_seconds is not None
    assert seen[1].eta_seconds > 0
    assert seen[4].eta_seconds == 0


def test_an_unwritable_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(OutputError, match="cannot be made"):
        go(tmp_path, suite())


def test_the_supervisor_needs_nothing_of_ours() -> None:
    """It starts without site packages, in a few milliseconds."""
    from evenhand.evaluation.trials import supervisor

    done = subprocess.run(
        [sys.executable, "-I", "-S", str(supervisor.__file__)], input=b"{", capture_output=True
    )
    assert b"JSONDecodeError" in done.stderr
