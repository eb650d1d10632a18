"""The typed options of a command are exactly the options that the command takes."""

import click
import pytest

from evenhand.cli.eval_run import RunOptions, run
from evenhand.cli.judge import selftest_command
from evenhand.cli.judge_options import JudgeOptions
from evenhand.cli.judge_score import ScoreOptions
from evenhand.cli.judge_score import command as judge_score
from evenhand.evaluation.config import RunConfig, RunSettings, Sampling, Selection, Service, ServiceSettings


@pytest.mark.parametrize(
    ("command", "options"),
    [(run, RunOptions), (selftest_command, JudgeOptions), (judge_score, ScoreOptions)],
)
def test_the_options_of_a_command(command: click.Command, options: type[JudgeOptions | RunOptions]) -> None:
    assert set(options.__struct_fields__) == {parameter.name for parameter in command.params}


def test_everything_that_decides_a_run_can_be_set() -> None:
    """A field of a run that neither a flag nor a suite file can set would be dead."""
    fields = {*RunConfig.__struct_fields__, *Sampling.__struct_fields__, *Selection.__struct_fields__}
    assert set(RunSettings.__struct_fields__) == fields - {
        "model",
        "task",
        "name",
        "treatment",
        "judge",
        "sampling",
        "selection",
    }
    assert set(Service.__struct_fields__) == {*ServiceSettings.__struct_fields__, "api_key"}


def test_settings_that_say_nothing_leave_the_defaults() -> None:
    model = Service(url="http://127.0.0.1/v1", id="m")
    assert RunSettings().config(model) == RunConfig(model=model)


def test_nearer_settings_win_and_gaps_are_filled() -> None:
    model = Service(url="http://127.0.0.1/v1", id="m")
    general = RunSettings(temperature=0.5, repeats=3, stop=("x",), shard=(1, 2))
    found = RunSettings(temperature=0.0, max_problems=7, stop=()).over(general).config(model)
    assert found == RunConfig(
        model=model,
        sampling=Sampling(temperature=0.0, stop=()),
        selection=Selection(max_problems=7, shard=(1, 2)),
        repeats=3,
    )
