"""One run of one task by one arm: the line of `collected.jsonl`, and what is wrong with a line that is not one.

`RunRecord` is the only definition of a record: the loader decodes into it, the checks and their messages are read off
its types, the suite runner builds it, and the shipped `run_record.schema.json` is generated from it
(`python -m evenhand.ab.record` prints it; a test compares).
"""

import sys
from collections.abc import Mapping
from importlib import resources
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from evenhand.ab.fields import make_schema, rules_of
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
    """What the run cost; null when unknown."""
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


RULES = rules_of(RunRecord)
"""What each field may hold."""
AMOUNTS = tuple(name for name, rule in RULES.items() if rule.kind == "number")
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


def generated_schema() -> str:
    """The same, made from `RunRecord`."""
    return make_schema(
        RunRecord,
        title="Run record",
        description="One line of collected.jsonl: one run of one task by one arm. A null amount is missing, not "
        "zero. Unknown fields are allowed and ignored.",
    )


def record_fields(record: RunRecord) -> dict[str, Any]:
    """The record as a mapping to be written as one line; optional fields that are not known are left out."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return fields


def parse_record(value: Any) -> RunRecord:
    """The record that a decoded JSON value stands for; `InputError` with field and reason otherwise."""
    if isinstance(value, RunRecord):
        value = msgspec.structs.asdict(value)
    if not isinstance(value, Mapping):
        raise InputError(f"a run record is a JSON object, not {_shown(value)}")
    checked = dict(value)
    for field, rule in RULES.items():
        if field not in value:
            if rule.required:
                raise InputError("is missing", field=field)
            continue
        if not rule.accepts(value[field]):
            raise InputError(f"must be {rule.expectation}, not {_shown(value[field])}", field=field)
        # JSON has one kind of number: 1.0 is the integer 1. numpy's floats become plain ones.
        if value[field] is not None and rule.kind in ("integer", "number"):
            checked[field] = int(value[field]) if rule.kind == "integer" else float(value[field])
    return msgspec.convert(checked, RunRecord)


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f'"{preview(value, 40)}"' if value else "an empty string"
    if isinstance(value, int | float):
        return preview(repr(value), 40)
    return "an object" if isinstance(value, Mapping) else "an array"


if __name__ == "__main__":
    sys.stdout.write(generated_schema())
