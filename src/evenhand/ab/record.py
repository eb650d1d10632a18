"""One run of one task by one arm: the line of `collected.jsonl`, and what is wrong with a line that is not one.

The shipped `run_record.schema.json` says the same in JSON Schema; a test holds the two together.
"""

from collections.abc import Callable, Mapping
from importlib import resources
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from evenhand.core.errors import InputError
from evenhand.core.terminal import preview

MAX_AMOUNT = 1e15
"""No time, cost or count is larger: beyond it, sums of whole numbers would no longer be exact."""
MAX_REPEAT = 2**31 - 1
MAX_EXIT_CODE = 2**31 - 1
MAX_NAME = 1_000
"""No name of a task or an arm is longer: it stands in tables and pictures."""

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Amount = Annotated[float, Meta(ge=0, le=MAX_AMOUNT)]
ExitCode = Annotated[int, Meta(ge=-MAX_EXIT_CODE, le=MAX_EXIT_CODE)]


class RunRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One run. Amounts that are None are missing, not zero."""

    task_id: Name
    """The task."""
    arm: Name
    """Which variant ran."""
    repeat: Annotated[int, Meta(ge=1, le=MAX_REPEAT)]
    """Counts from 1 within a task and an arm; equal repeats of both arms form a pair."""
    success: bool
    """Whether the task was solved."""
    duration_seconds: Amount
    """Wall time of the agent."""
    total_cost_usd: Amount | None
    """What the run cost."""
    input_tokens: Amount | None
    """Tokens sent, without those read from a cache."""
    output_tokens: Amount | None
    """Tokens received."""
    cache_read_tokens: Amount | None
    """Tokens read from a prompt cache."""
    cache_write_tokens: Amount | None
    """Tokens written to a prompt cache."""
    step_count: Amount | None = None
    """Steps that the agent took."""
    tool_call_count: Amount | None = None
    """Tools that the agent called."""
    acceptance_cmd_count: Amount | None = None
    """How often the agent ran the acceptance command by itself."""
    acceptance_first_pass: bool | None = None
    """Whether the agent's first run of the acceptance command passed."""
    run_id: str | None = None
    """A name for the run; without one, task, arm and repeat identify it."""
    session_id: str | None = None
    """The agent's own id of the session."""
    started_at_utc: str | None = None
    """When the agent started."""
    ended_at_utc: str | None = None
    """When the agent ended."""
    workspace: str | None = None
    """The folder it worked in."""
    prompt_file: str | None = None
    """The file with the prompt."""
    acceptance_command: str | None = None
    """What decided about success."""
    agent_exit_code: ExitCode | None = None
    """Exit status of the agent command."""
    opencode_exit_code: ExitCode | None = None
    """The same under the name that opencode logs use."""
    acceptance_exit_code: ExitCode | None = None
    """Exit status of the acceptance command."""
    setup_exit_code: ExitCode | None = None
    """Exit status of the task's setup commands."""
    arm_setup_exit_code: ExitCode | None = None
    """Exit status of the arm's setup commands."""
    infra_failure: bool | None = None
    """Whether the run failed for reasons that have nothing to do with the arm."""


AMOUNTS = (
    "duration_seconds",
    "total_cost_usd",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "step_count",
    "tool_call_count",
    "acceptance_cmd_count",
)
"""The numeric fields that are measured, in the order of the columns of a `RunTable`."""

INFRA_EXIT_CODE = 86
"""An agent that exits with this says itself that the infrastructure failed."""
ACCEPTANCE_INFRA_EXIT_CODE = 99
"""An acceptance command that exits with this after a failed agent could not judge the run."""


def is_infra_failure(
    flag: bool | None, agent: int | None, opencode: int | None, acceptance: int | None
) -> bool:
    """Whether a run says nothing about its arm: it is left out of summaries and decisions, and counted."""
    if flag or agent == INFRA_EXIT_CODE or opencode == INFRA_EXIT_CODE:
        return True
    return acceptance == ACCEPTANCE_INFRA_EXIT_CODE and bool(agent or opencode)


def schema_text() -> str:
    """The JSON Schema (draft 2020-12) of a run record, as shipped."""
    return resources.files("evenhand.ab").joinpath("run_record.schema.json").read_text(encoding="utf-8")


def parse_record(value: Any) -> RunRecord:
    """The record that a decoded JSON value stands for; `InputError` with field and reason otherwise."""
    if isinstance(value, RunRecord):
        value = msgspec.structs.asdict(value)
    if not isinstance(value, Mapping):
        raise InputError(f"a run record is a JSON object, not {_shown(value)}")
    checked = dict(value)
    for field, (check, expectation, required) in _CHECKS.items():
        if field not in value:
            if required:
                raise InputError("is missing", field=field)
            continue
        if not check(value[field]):
            raise InputError(f"must be {expectation}, not {_shown(value[field])}", field=field)
        if field in _WHOLE and value[field] is not None:
            # JSON has one kind of number: 1.0 is the integer 1.
            checked[field] = int(value[field])
    return msgspec.convert(checked, RunRecord)


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f'"{preview(value, 40)}"' if value else "an empty string"
    if isinstance(value, int | float):
        return preview(repr(value), 40)
    return "an object" if isinstance(value, Mapping) else "an array"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any, low: int, high: int) -> bool:
    return _is_number(value) and low <= value <= high and float(value).is_integer()


def _or_null(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_amount(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= MAX_AMOUNT


def _is_repeat(value: Any) -> bool:
    return _is_whole(value, 1, MAX_REPEAT)


def _is_exit_code(value: Any) -> bool:
    return _is_whole(value, -MAX_EXIT_CODE, MAX_EXIT_CODE)


_NAME_TEXT = f"a non-empty string of at most {MAX_NAME:,} characters"
_AMOUNT_TEXT = "a number from 0 to 1e15"
_EXIT_CODES = (
    "agent_exit_code",
    "opencode_exit_code",
    "acceptance_exit_code",
    "setup_exit_code",
    "arm_setup_exit_code",
)
_TEXTS = (
    "run_id",
    "session_id",
    "started_at_utc",
    "ended_at_utc",
    "workspace",
    "prompt_file",
    "acceptance_command",
)
_WHOLE = frozenset(("repeat", *_EXIT_CODES))
_REQUIRED_AMOUNTS = AMOUNTS[1:6]
_CHECKS: dict[str, tuple[Callable[[Any], bool], str, bool]] = {
    "task_id": (_is_name, _NAME_TEXT, True),
    "arm": (_is_name, _NAME_TEXT, True),
    "repeat": (_is_repeat, f"an integer from 1 to {MAX_REPEAT}", True),
    "success": (_is_flag, "true or false", True),
    "duration_seconds": (_is_amount, _AMOUNT_TEXT, True),
    **{name: (_or_null(_is_amount), f"{_AMOUNT_TEXT}, or null", True) for name in _REQUIRED_AMOUNTS},
    **{name: (_or_null(_is_amount), f"{_AMOUNT_TEXT}, or null", False) for name in AMOUNTS[6:]},
    "acceptance_first_pass": (_or_null(_is_flag), "true, false or null", False),
    "infra_failure": (_or_null(_is_flag), "true, false or null", False),
    **{name: (_or_null(_is_text), "a string or null", False) for name in _TEXTS},
    **{name: (_or_null(_is_exit_code), "an integer or null", False) for name in _EXIT_CODES},
}
