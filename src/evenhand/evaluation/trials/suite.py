"""The suite file: tasks, arms, workspace and how usage is read."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from evenhand.ab.record import AMOUNTS
from evenhand.core import jsontext
from evenhand.core.errors import InputError, MissingFile, OptionError, UnknownName

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, Meta(gt=0, le=604_800)]
Command = Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)]
"""A string runs in the shell; a list of words runs as it is."""
ExitStatus = Annotated[int, Meta(ge=-255, le=255)]

USAGE_FIELDS = (*AMOUNTS[1:], "acceptance_first_pass", "session_id")
"""What an agent can report about itself: everything but the time it took, and two words more."""


class FieldSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where one field of a record comes from."""

    path: str
    """Names and places joined by dots: `usage.input_tokens`, `messages.0.id`."""
    combine: Literal["sum", "last", "max", "count"] = "sum"
    """JSON lines: how the values of all lines become one."""


class UsageSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the usage of a run is read."""

    source: Literal["file", "stdout"] = "file"
    """The usage file that the agent command writes, or what it prints."""
    file: str | None = None
    """The file, relative to the workspace; by default the one at `{usage_file}`, outside the workspace."""
    format: Literal["json", "jsonl"] = "json"
    """One JSON document, or one per line; lines that are not JSON are passed over."""
    fields: dict[str, str | FieldSource] = field(
        default_factory=lambda: {name: name for name in USAGE_FIELDS}
    )
    """Field of the record → where it is found; by default the same names."""
    where: dict[str, Any] = field(default_factory=dict)
    """JSON lines: only those count whose values at these paths are equal to these."""


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task, tried by every arm."""

    id: Name
    """The task's name in the records."""
    prompt: str | None = None
    """What the agent is asked; or `prompt_file`."""
    prompt_file: str | None = None
    """The file with the prompt, relative to the suite file."""
    setup_commands: tuple[Command, ...] = ()
    """Run in the workspace before the arm's setup and the agent."""
    acceptance_command: Command | None = None
    """Run in the workspace after the agent; exit status 0 means success. Without one the agent's status decides."""
    timeout_seconds: Seconds = 1800.0
    """The agent's time limit."""
    tags: tuple[str, ...] = ()
    """For `--tag`."""


class Arm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One variant on trial."""

    name: Name
    """The arm's name in the records."""
    agent_command: Command
    """Any agent command line; see docs/ab.md for what is filled in."""
    env: dict[str, str] = field(default_factory=dict)
    """Added to the environment of this arm's commands."""
    setup_commands: tuple[Command, ...] = ()
    """Run in the workspace after the task's setup commands."""
    usage: UsageSource | None = None
    """This arm's way of reporting usage, when it differs from the suite's."""


class Workspace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every trial starts from, in a folder of its own."""

    kind: Literal["copy", "git", "empty"] = "empty"
    """A copied folder, a git worktree, or an empty folder."""
    source: str = "."
    """The folder or repository, relative to the suite file."""
    ref: str = "HEAD"
    """git: the commit to check out."""


class Suite(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a run needs."""

    name: Name = "suite"
    tasks: Annotated[tuple[Task, ...], Meta(min_length=1)]
    arms: Annotated[tuple[Arm, ...], Meta(min_length=1)]
    repeats: Annotated[int, Meta(ge=1, le=100_000)] = 5
    workspace: Workspace = field(default_factory=Workspace)
    usage: UsageSource = field(default_factory=UsageSource)
    infra_exit_codes: tuple[ExitStatus, ...] = (86,)
    """Exit statuses of the agent that mean: the infrastructure failed, not the arm."""
    acceptance_infra_exit_codes: tuple[ExitStatus, ...] = (99,)
    """Exit statuses of the acceptance command that mean the same after a failed agent."""
    setup_timeout_seconds: Seconds = 600.0
    """Time limit of each setup command."""
    acceptance_timeout_seconds: Seconds = 600.0
    """Time limit of the acceptance command."""
    kill_grace_seconds: Annotated[float, Meta(ge=0, le=600)] = 5.0
    """How long a command that is past its limit may clean up before it is killed."""


class LoadedSuite(Struct, frozen=True, kw_only=True):
    """A checked suite with its prompts read."""

    suite: Suite
    path: Path
    """The suite file."""
    prompts: dict[str, str]
    """The prompt of every task."""

    @property
    def folder(self) -> Path:
        """What relative paths in the suite are relative to."""
        return self.path.resolve().parent


def load_suite(path: Path) -> LoadedSuite:
    """Read and check a suite (JSON, or YAML by its suffix); `InputError` names the field."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise MissingFile(error.strerror or str(error), path=path) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text (byte {error.start})", path=path) from None
    try:
        suite = msgspec.convert(_parsed(text, path), Suite)
    except msgspec.ValidationError as error:
        raise _placed(str(error), path) from None
    except InputError as error:
        raise InputError(error.reason, path=path) from None
    for place in _problems(suite):
        raise InputError(place[1], path=path, field=place[0])
    prompts = {task.id: _prompt(task, place, path) for place, task in enumerate(suite.tasks)}
    return LoadedSuite(suite=suite, path=path, prompts=prompts)


def _parsed(text: str, path: Path) -> Any:
    if path.suffix not in (".yaml", ".yml"):
        value = jsontext.decode(text)
        jsontext.check_keys(text.encode())
        return value
    import yaml

    from evenhand.core import yamltext

    try:
        return yamltext.load(text)
    except yaml.YAMLError as error:
        raise InputError(f"invalid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise InputError("YAML is nested too deeply") from None


def _placed(message: str, path: Path) -> InputError:
    """msgspec's message with its place as our `field`."""
    reason, _, place = message.partition(" - at `")
    name = place.rstrip("`").removeprefix("$.").removeprefix("$")
    return InputError(reason.replace("Object ", ""), path=path, field=name or None)


def _problems(suite: Suite) -> Iterable[tuple[str, str]]:
    yield from _twice("tasks", "id", [task.id for task in suite.tasks])
    yield from _twice("arms", "name", [arm.name for arm in suite.arms])
    for place, task in enumerate(suite.tasks):
        if (task.prompt is None) == (task.prompt_file is None):
            yield f"tasks[{place}]", "needs either prompt or prompt_file"
    usages = [("usage", suite.usage)]
    usages += [(f"arms[{place}].usage", arm.usage) for place, arm in enumerate(suite.arms) if arm.usage]
    for name, usage in usages:
        for target in usage.fields:
            if target not in USAGE_FIELDS:
                yield f"{name}.fields.{target}", f"is not a usage field; those are {', '.join(USAGE_FIELDS)}"
        if usage.file is not None and (usage.source != "file" or not _inside(usage.file)):
            yield f"{name}.file", "must be a path inside the workspace, and source must be file"
    for place, arm in enumerate(suite.arms):
        for key, value in arm.env.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) or "\0" in value:
                yield f"arms[{place}].env", f"'{key}' is not a variable that can be set"


def _twice(group: str, key: str, names: list[str]) -> Iterable[tuple[str, str]]:
    for place, name in enumerate(names):
        if name in names[:place]:
            yield f"{group}[{place}].{key}", f"duplicate '{name}'"


def _inside(name: str) -> bool:
    return not Path(name).is_absolute() and ".." not in Path(name).parts


def _prompt(task: Task, place: int, path: Path) -> str:
    if task.prompt is not None:
        return task.prompt
    assert task.prompt_file is not None
    try:
        return (path.parent / task.prompt_file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise InputError(
            f"{task.prompt_file}: {reason}", path=path, field=f"tasks[{place}].prompt_file"
        ) from None


class Choice(Struct, frozen=True, kw_only=True):
    """Which part of a suite to run."""

    tasks: tuple[Task, ...]
    arms: tuple[Arm, ...]
    repeats: int


def choose(
    suite: Suite, *, arms: Iterable[str] = (), tags: Iterable[str] = (), repeats: int | None = None
) -> Choice:
    """The chosen arms (all by default), the tasks with any of the tags (all by default), and the repeats."""
    by_name = {arm.name: arm for arm in suite.arms}
    names = list(dict.fromkeys(arms)) or list(by_name)
    for name in names:
        if name not in by_name:
            raise UnknownName("arm", name, by_name)
    wanted = set(tags)
    tasks = tuple(task for task in suite.tasks if not wanted or wanted & set(task.tags))
    if not tasks:
        known = sorted({tag for task in suite.tasks for tag in task.tags})
        raise OptionError(
            f"no task has the tag {', '.join(sorted(wanted))}; tags: {', '.join(known) or 'none'}"
        )
    chosen = suite.repeats if repeats is None else repeats
    if chosen < 1:
        raise OptionError("the number of repeats must be at least 1")
    return Choice(tasks=tasks, arms=tuple(by_name[name] for name in names), repeats=chosen)


class Sides(Struct, frozen=True, kw_only=True):
    """Which arms the analysis compares; None where it is to find out by itself."""

    treatment: str | None
    control: str | None


def sides_of(choice: Choice, treatment: str | None, control: str | None) -> Sides:
    """Names given win; of exactly two arms without telling names the first is the treatment."""
    names = [arm.name for arm in choice.arms]
    if treatment is None and control is None and len(names) == 2:
        telling = sorted(names, key=lambda name: name.startswith("without_"))
        if not (telling[0].startswith("with_") and telling[1].startswith("without_")):
            return Sides(treatment=names[0], control=names[1])
    return Sides(treatment=treatment, control=control)
