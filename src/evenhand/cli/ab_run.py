"""`evenhand ab run`: run a suite with several arms, then compare them."""

import shlex
import sys
from pathlib import Path

import click

from evenhand.ab import analyze, load_records
from evenhand.ab.numbers import counted
from evenhand.cli.ab_files import exit_status, write_report
from evenhand.cli.ab_text import print_report
from evenhand.cli.output import Steps, console, progress, table
from evenhand.core.terminal import preview, printable
from evenhand.evaluation.trials.ledger import finished_trials
from evenhand.evaluation.trials.plan import planned
from evenhand.evaluation.trials.runner import Progress, TrialOptions, TrialsOutcome, run_suite
from evenhand.evaluation.trials.suite import Choice, Command, LoadedSuite, Sides, choose, load_suite, sides_of
from evenhand.evaluation.trials.workspaces import resolve_commit

SHOWN_TRIALS = 20

RUN_EXAMPLES = """
\b
Examples:
  evenhand ab run suite.json --arms with_tool,without_tool --repeats 5
  evenhand ab run suite.json --parallel 4 --output runs/monday
  evenhand ab run suite.json --dry-run

Run the same command again after an interruption or a crash: finished trials are kept and not repeated. More repeats,
tasks or arms may join a run later.

\b
Exit status: 0 finished and analyzed, 64 bad usage, 65 bad input or insufficient data, 66 no such file,
75 the folder is in use, 130 or 143 interrupted (resume with the same command).
With --strict: 0 prefer the treatment, 1 prefer the control, 2 mixed or insufficient.
"""


def _names(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


@click.command("run", epilog=RUN_EXAMPLES)
@click.argument("suite", type=click.Path(path_type=Path))
@click.option(
    "--arms", callback=_names, help="The arms to run, joined by commas: treatment first. Default: all."
)
@click.option("--repeats", type=click.IntRange(min=1), help="Repeats of every task in every arm.")
@click.option("--tag", "tags", multiple=True, help="Only tasks with this tag; several times for several.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The run's folder. Default: ab-NAME.")
@click.option(
    "--parallel", type=click.IntRange(1, 256), default=1, show_default=True, help="Trials at a time."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Decides the order.")
@click.option("--retry-infra", is_flag=True, help="Run infrastructure failures of an earlier run again.")
@click.option("--keep-workspaces", is_flag=True, help="Leave every trial's workspace for inspection.")
@click.option("--dry-run", is_flag=True, help="Show what would be run, and do nothing.")
@click.option("--treatment", help="The arm on trial, when it is not the first.")
@click.option("--control", help="The arm to compare it with.")
@click.option("--strict", is_flag=True, help="Use the decision as the exit status.")
def run_command(
    suite: Path,
    arms: tuple[str, ...],
    repeats: int | None,
    tags: tuple[str, ...],
    output: Path | None,
    parallel: int,
    seed: int,
    retry_infra: bool,
    keep_workspaces: bool,
    dry_run: bool,
    treatment: str | None,
    control: str | None,
    strict: bool,
) -> int:
    """Run every task of SUITE with every arm, each trial in a workspace of its own, and compare the arms."""
    loaded = load_suite(suite)
    choice = choose(loaded.suite, arms=arms, tags=tags, repeats=repeats)
    options = TrialOptions(
        folder=output or Path(f"ab-{loaded.suite.name}".replace("/", "-")),
        parallel=parallel,
        seed=seed,
        keep_workspaces=keep_workspaces,
        retry_infra=retry_infra,
    )
    sides = sides_of(choice, treatment, control)
    if dry_run:
        show_plan(loaded, choice, options)
        return 0
    with progress("trials", total=len(choice.tasks) * len(choice.arms) * choice.repeats) as steps:
        outcome = run_suite(loaded, choice, options, _Reporter(steps))
    if outcome.interrupted_by is not None:
        click.echo(_resume_text(outcome), err=True)
        return 128 + outcome.interrupted_by
    assert outcome.collected is not None
    return _finish(outcome, sides, strict=strict)


def _finish(outcome: TrialsOutcome, sides: Sides, *, strict: bool) -> int:
    collected = outcome.collected
    assert collected is not None
    click.echo(
        f"{outcome.total} trials finished, {outcome.ran} of them now; records in {printable(str(collected))}",
        err=True,
    )
    records = load_records(collected)
    if len(records.arms) > 2 and (sides.treatment is None or sides.control is None):
        click.echo(
            f"There are {len(records.arms)} arms; compare two of them with: "
            f"evenhand ab analyze {shlex.quote(str(collected))} --treatment NAME --control NAME",
            err=True,
        )
        return 0
    report = analyze(records, sides.treatment, sides.control)
    written = write_report(
        report,
        json_file=collected.with_name("analysis.json"),
        md_file=collected.with_name("analysis.md"),
        html_file=collected.with_name("analysis.html"),
    )
    print_report(report, written)
    return exit_status(report, strict=strict)


def _resume_text(outcome: TrialsOutcome) -> str:
    # The words of this very command line: running it again resumes.
    again = shlex.join(["evenhand", *sys.argv[1:]])
    return f"Interrupted: {outcome.done} of {outcome.total} trials are finished and kept; resume with: {printable(again)}"


class _Reporter:
    """Shows progress: the count, failures, and how long the rest will take."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._shown = 0

    def __call__(self, now: Progress) -> None:
        notes = []
        if now.failures:
            notes.append(counted(now.failures, "infrastructure failure"))
        if now.eta_seconds is not None and now.done < now.total:
            notes.append(f"ETA {_duration(now.eta_seconds)}")
        self._steps.note(", ".join(notes))
        self._steps.advance(now.done - self._shown)
        self._shown = now.done


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def show_plan(loaded: LoadedSuite, choice: Choice, options: TrialOptions) -> None:
    """What a run would do, without doing or writing anything."""
    resolve_commit(loaded)
    finished = finished_trials(options.folder, retry_infra=options.retry_infra)
    trials = planned(choice, seed=options.seed, finished=finished)
    total = len(choice.tasks) * len(choice.arms) * choice.repeats
    click.echo(
        f"{total} trials: {len(choice.tasks)} tasks × {len(choice.arms)} arms × {choice.repeats} repeats; "
        f"{total - len(trials)} finished, {len(trials)} to run, {options.parallel} at a time, seed {options.seed}"
    )
    click.echo(f"workspace: {loaded.suite.workspace.kind}; folder: {printable(str(options.folder))}")
    out = console()
    commands = [(arm.name, _text(arm.agent_command)) for arm in choice.arms]
    out.print(table("", ["arm", "agent command"], commands, numeric_from=2))
    order = [
        (str(place), trial.key.task, trial.key.arm, str(trial.key.repeat))
        for place, trial in enumerate(trials[:SHOWN_TRIALS], start=1)
    ]
    out.print(table("", ["order", "task", "arm", "repeat"], order, numeric_from=4))
    if len(trials) > SHOWN_TRIALS:
        click.echo(f"and {len(trials) - SHOWN_TRIALS} more")


def _text(command: Command) -> str:
    return preview(command if isinstance(command, str) else shlex.join(command), 100)
