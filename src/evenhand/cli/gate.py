"""`evenhand gate`: may it ship?"""

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from evenhand import settings
from evenhand.cli.output import console, print_json, table
from evenhand.compare.gate import EXIT_STATUS, GateReport, run_gate
from evenhand.compare.junit import gate_junit
from evenhand.compare.markdown import damage, gate_markdown, number
from evenhand.compare.policy import parse_policy, policy_schema
from evenhand.core.errors import Incomparable, InputError, OptionError, UserError
from evenhand.core.terminal import printable
from evenhand.results import read_run, run_folders, write_text

STYLES = {"PASS": "green", "BREACH": "bold red", "GO": "bold green", "NO-GO": "bold red"}


@click.command(
    epilog="""\b
Examples:
  evenhand gate runs/base runs/candidate --policy policy.yaml
  evenhand gate runs/base runs/candidate --policy policy.yaml --junit gate.xml --report gate.md
  evenhand gate runs/base runs/candidate --policy classic      the A/B rule: success, duration, tokens
  evenhand gate --policy-schema                                the JSON Schema of policy files

\b
Exit status: GO 0, NO-GO 1, INCONCLUSIVE 2.
A policy:
  version: 1
  defaults: {tier: supporting, metric: mean_reward, max_drop: 0.015}
  benchmarks:
    gpqa: {tier: critical, max_drop: 0.01}
    aime: {max_relative_drop: 0.02, relative_guard_below: 0.2}"""
)
@click.argument("base", type=click.Path(path_type=Path), required=False)
@click.argument("candidate", type=click.Path(path_type=Path), required=False)
@click.option("--policy", help="A policy file (YAML), or the word 'classic' for the A/B rule.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="How to print the result.",
)
@click.option("--report", type=click.Path(path_type=Path), help="Also write the result as Markdown.")
@click.option("--junit", type=click.Path(path_type=Path), help="Also write JUnit XML, which CI systems show.")
@click.option(
    "--github-summary", is_flag=True, help="Also append Markdown to the step summary of GitHub Actions."
)
@click.option("--force", is_flag=True, help="Judge although the runs did not measure the same thing.")
@click.option(
    "--policy-schema", "schema", is_flag=True, help="Print the JSON Schema of policy files and stop."
)
def command(
    base: Path | None,
    candidate: Path | None,
    policy: str | None,
    format_: str,
    report: Path | None,
    junit: Path | None,
    github_summary: bool,
    force: bool,
    schema: bool,
) -> int:
    """Judge a candidate against a base by a release policy."""
    if schema:
        print_json(policy_schema())
        return 0
    if base is None or candidate is None or policy is None:
        raise OptionError("gate needs BASE, CANDIDATE and --policy FILE (see evenhand gate --help)")
    document: Any
    try:
        if policy == "classic":
            from evenhand.cli.classic import classic_gate

            found, analysis = classic_gate(base, candidate, force=force)
            markdown = f"{gate_markdown(found)}\n{analysis.to_markdown()}"
            document = {"verdict": found.verdict, "analysis": analysis.to_dict()}
        else:
            found = _judge(base, candidate, Path(policy), force)
            markdown, document = gate_markdown(found), found
    except Incomparable as error:
        raise UserError(f"{error}\nInsist with --force if you know why that is all right.") from None
    if report is not None:
        write_text(report, markdown)
    if junit is not None:
        write_text(junit, gate_junit(found))
    if github_summary:
        _append_summary(markdown)
    if format_ == "json":
        print_json(document)
    elif format_ == "markdown":
        click.echo(markdown, nl=False)
    else:
        _print(console(), found)
    return EXIT_STATUS[found.verdict]


def _judge(base: Path, candidate: Path, policy: Path, force: bool) -> GateReport:
    try:
        text = policy.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the policy: {error.strerror}", path=policy) from None
    except UnicodeDecodeError:
        raise InputError("cannot read the policy: it is not UTF-8 text", path=policy) from None
    rules = parse_policy(text, policy)
    sides = [{name: read_run(path) for name, path in run_folders(side).items()} for side in (base, candidate)]
    return run_gate(sides[0], sides[1], rules, force=force)


def _append_summary(text: str) -> None:
    path = settings.load().github_step_summary
    if path is None:
        raise OptionError("--github-summary needs GITHUB_STEP_SUMMARY in the environment")
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def _print(out: Console, found: GateReport) -> None:
    out.print(f"[{STYLES.get(found.verdict, 'bold yellow')}]{found.verdict}[/]", end=" ")
    out.print(found.sentence + "\n", markup=False)
    rows = [
        [
            gate.benchmark,
            gate.metric,
            gate.tier,
            gate.status,
            number(gate.base),
            number(gate.candidate),
            damage(gate),
            number(gate.limit),
        ]
        for gate in found.gates
    ]
    columns = [
        "benchmark",
        "metric",
        "tier",
        "status",
        "base",
        "candidate",
        "damage (one-sided bounds)",
        "limit",
    ]
    out.print(table("", columns, rows, numeric_from=4))
    out.print()
    for gate in found.gates:
        for reason in gate.reasons:
            out.print(f"{printable(gate.benchmark)} {gate.metric}: {printable(reason)}", markup=False)
    for note in found.notes:
        out.print(f"Note: {printable(note)}", markup=False)
