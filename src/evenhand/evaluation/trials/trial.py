"""One trial: workspace, setup, agent, acceptance, and the record of how it went."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from evenhand.ab.record import RunRecord, record_fields
from evenhand.core.errors import EvenhandError
from evenhand.core.timestamps import format_instant, now
from evenhand.evaluation.trials.plan import Trial
from evenhand.evaluation.trials.processes import Ended, Processes, Stopped
from evenhand.evaluation.trials.suite import Command, LoadedSuite, UsageSource
from evenhand.evaluation.trials.usage import Reported, read_usage
from evenhand.evaluation.trials.workspaces import Workspaces

_NAMES = ("prompt", "prompt_file", "workspace", "usage_file", "task_id", "arm", "repeat", "suite_folder")
_PLACE = re.compile(r"\{(" + "|".join(_NAMES) + r")\}")


def words(command: Command, values: Mapping[str, str]) -> list[str]:
    """The command with its places filled in; a string runs in the shell, with every value quoted."""
    if isinstance(command, str):
        return ["/bin/sh", "-c", _PLACE.sub(lambda match: shlex.quote(values[match[1]]), command)]
    return [_PLACE.sub(lambda match: values[match[1]], word) for word in command]


class Bench(Struct, frozen=True, kw_only=True):
    """What all trials of a run share."""

    loaded: LoadedSuite
    processes: Processes
    workspaces: Workspaces
    trials: Path
    """Where logs go, one folder per trial."""
    run_folder: Path
    keep_workspaces: bool = False


class _Failed(EvenhandError):
    """A step before the agent did not work out."""

    def __init__(self, message: str, fields: dict[str, Any]) -> None:
        self.fields = fields
        super().__init__(message)


def run_trial(bench: Bench, trial: Trial) -> dict[str, Any]:
    """Make one run and return its record; `Stopped` when the run was told to stop meanwhile."""
    key, suite = trial.key, bench.loaded.suite
    folder = bench.trials / key.folder
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    values = _values(bench, trial, folder)
    record = _blank(trial, suite.name, values, bench)
    workspace = Path(values["workspace"])
    try:
        try:
            bench.workspaces.make(key.folder)
        except (OSError, EvenhandError) as error:
            raise _Failed(f"no workspace: {error}", {}) from None
        _set_up(bench, trial, values, folder, record)
        _try(bench, trial, values, folder, record)
    except _Failed as failure:
        record |= {**failure.fields, "infra_failure": True, "failure_reason": str(failure)}
    finally:
        if not bench.keep_workspaces:
            _remove(bench, workspace, record)
    return record


def _remove(bench: Bench, workspace: Path, record: dict[str, Any]) -> None:
    try:
        bench.workspaces.remove(workspace)
    except (OSError, EvenhandError) as error:
        # What an agent left behind must not cost the run its result.
        record["workspace_error"] = f"cannot be removed: {error}"


def _values(bench: Bench, trial: Trial, folder: Path) -> dict[str, str]:
    prompt_file = folder / "prompt.txt"
    prompt = bench.loaded.prompts[trial.task.id]
    prompt_file.write_text(prompt, encoding="utf-8")
    return {
        "prompt": prompt,
        "prompt_file": str(prompt_file),
        "workspace": str(bench.run_folder / "workspaces" / trial.key.folder),
        "usage_file": str(folder / "usage.json"),
        "task_id": trial.key.task,
        "arm": trial.key.arm,
        "repeat": str(trial.key.repeat),
        "suite_folder": str(bench.loaded.folder),
    }


def _blank(trial: Trial, suite: str, values: Mapping[str, str], bench: Bench) -> dict[str, Any]:
    key = trial.key
    accept = trial.task.acceptance_command
    command = accept if accept is None or isinstance(accept, str) else shlex.join(accept)
    record = RunRecord(
        run_id=f"{key.task}/{key.arm}/{key.repeat}",
        task_id=key.task,
        arm=key.arm,
        repeat=key.repeat,
        success=False,
        duration_seconds=0.0,
        total_cost_usd=None,
        input_tokens=None,
        output_tokens=None,
        cache_read_tokens=None,
        cache_write_tokens=None,
        workspace=str(Path(values["workspace"]).relative_to(bench.run_folder)),
        prompt_file=str(Path(values["prompt_file"]).relative_to(bench.run_folder)),
        acceptance_command=command,
        infra_failure=False,
    )
    return {**record_fields(record), "suite": suite, "tags": list(trial.task.tags)}


def _set_up(
    bench: Bench, trial: Trial, values: Mapping[str, str], folder: Path, record: dict[str, Any]
) -> None:
    for field, commands in (
        ("setup_exit_code", trial.task.setup_commands),
        ("arm_setup_exit_code", trial.arm.setup_commands),
    ):
        for number, command in enumerate(commands, start=1):
            log = folder / f"{field.removesuffix('_exit_code')}.log"
            ended = _run(bench, trial, command, values, (log, log), bench.loaded.suite.setup_timeout_seconds)
            record[field] = ended.exit_code
            if ended.exit_code:
                what = field.removesuffix("_exit_code").replace("_", " ")
                raise _Failed(f"{what} command {number} {_how(ended)}", {field: ended.exit_code})


def _try(bench: Bench, trial: Trial, values: Mapping[str, str], folder: Path, record: dict[str, Any]) -> None:
    suite, task = bench.loaded.suite, trial.task
    logs = (folder / "agent.stdout", folder / "agent.stderr")
    record["started_at_utc"] = format_instant(now())
    agent = _run(bench, trial, trial.arm.agent_command, values, logs, task.timeout_seconds)
    record["ended_at_utc"] = format_instant(now())
    record["duration_seconds"] = round(agent.seconds, 6)
    record["agent_exit_code"] = agent.exit_code
    record["agent_timed_out"] = agent.timed_out
    if agent.error:
        raise _Failed(f"the agent command {agent.error}", {})
    usage = trial.arm.usage or suite.usage
    reported = _usage(usage, values, logs[0])
    record |= reported.values
    if reported.error:
        record["usage_error"] = reported.error
    if agent.exit_code in suite.infra_exit_codes:
        raise _Failed(f"the agent {_how(agent)}, which means an infrastructure failure", {})
    if task.acceptance_command is None:
        record["success"] = agent.exit_code == 0
    elif not agent.timed_out:
        logs = (folder / "acceptance.stdout", folder / "acceptance.stderr")
        limit = suite.acceptance_timeout_seconds
        accepted = _run(bench, trial, task.acceptance_command, values, logs, limit)
        record["acceptance_exit_code"] = accepted.exit_code
        if accepted.error:
            raise _Failed(f"the acceptance command {accepted.error}", {})
        if agent.exit_code != 0 and accepted.exit_code in suite.acceptance_infra_exit_codes:
            raise _Failed(f"the agent {_how(agent)} and the acceptance command {_how(accepted)}", {})
        record["success"] = accepted.exit_code == 0


def _run(
    bench: Bench,
    trial: Trial,
    command: Command,
    values: Mapping[str, str],
    logs: Sequence[Path],
    timeout: float,
) -> Ended:
    env = {f"EVENHAND_{name.upper()}": values[name] for name in _NAMES if name != "prompt"}
    return bench.processes.run(
        words(command, values),
        cwd=Path(values["workspace"]),
        env={**trial.arm.env, **env},
        stdout=logs[0],
        stderr=logs[1],
        timeout=timeout,
        grace=bench.loaded.suite.kill_grace_seconds,
    )


def _usage(usage: UsageSource, values: Mapping[str, str], stdout: Path) -> Reported:
    if usage.source == "stdout":
        return read_usage(usage, stdout)
    path = Path(values["workspace"]) / usage.file if usage.file is not None else Path(values["usage_file"])
    return read_usage(usage, path)


def _how(ended: Ended) -> str:
    if ended.error:
        return ended.error
    if ended.timed_out:
        return f"ran past its limit (after {ended.seconds:.1f} s)"
    if ended.exit_code < 0:
        return f"was killed by signal {-ended.exit_code}"
    return f"exited with {ended.exit_code}"


__all__ = ["Bench", "Stopped", "run_trial", "words"]
