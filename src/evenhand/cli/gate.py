"""`evenhand gate`: may it ship?"""

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from evenhand import settings
from evenhand.cli.output import console, print_json, save_audit, save_text, table
from evenhand.compare.audit import classic_audit, digests, gate_audit
from evenhand.compare.gate import EXIT_STATUS, GateReport, run_gate
from evenhand.compare.junit import gate_junit
from evenhand.compare.policy import Policy, parse_policy, policy_schema
from evenhand.core.collecting import without_collection
from evenhand.core.errors import Incomparable, InputError, MissingFile, OptionError, OutputError
from evenhand.core.secret import Secret
from evenhand.core.terminal import printable
from evenhand.integrations.comparable import load_sides
from evenhand.reports.comparison_markdown import damage, gate_markdown, number
from evenhand.reports.gate import gate_page
from evenhand.results import RunResults, read_run, run_folders

FORCE_HINT = "\nInsist with --force if you know why that is all right."
STYLES = {"PASS": "green", "BREACH": "bold red", "GO": "bold green", "NO-GO": "bold red"}


@click.command(
    epilog="""\b
Examples:
  evenhand gate runs/base runs/candidate --policy policy.yaml
  evenhand gate runs/base runs/candidate --policy policy.yaml --junit gate.xml --report gate.html
  evenhand gate runs/base runs/candidate --policy classic      the A/B rule: success, duration, tokens
  evenhand gate before.json after.json --policy policy.yaml    files of other tools; benchmarks are NAME · SCORER
  evenhand gate --policy-schema                                the JSON Schema of policy files

\b
Exit status: GO 0, NO-GO 1, INCONCLUSIVE 2; 64 bad usage, 65 bad or incomparable input, 66 no such file.
A policy:
  version: 1
  defaults: {tier: supporting, metric: mean_reward, max_drop: 0.015}
  benchmarks:
    gpqa: {tier: critical, max_drop: 0.01}
    aime: {max_relative_drop: 0.02, relative_guard_below: 0.2}"""
)
@click.argument("base", required=False)
@click.argument("candidate", required=False)
@click.option("--scorer", "scorers", multiple=True, help="Of a file with several scorers: only this one.")
@click.option(
    "--token", help="The token of the service whose experiments are judged; default EVENHAND_TOKEN."
)
@click.option("--policy", help="A policy file (YAML), or the word 'classic' for the A/B rule.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="How to print the result.",
)
@click.option("--report", type=click.Path(path_type=Path), help="Also write the result: out.html or out.md.")
@click.option("--junit", type=click.Path(path_type=Path), help="Also write JUnit XML, which CI systems show.")
@click.option(
    "--github-summary", is_flag=True, help="Also append Markdown to the step summary of GitHub Actions."
)
@click.option(
    "--cluster-field",
    help="Metadata field that names what problems share, such as a passage: only clusters count as independent.",
)
@click.option("--force", is_flag=True, help="Judge even if the runs did not measure the same thing.")
@click.option(
    "--audit",
    type=click.Path(path_type=Path),
    help="Also write everything the verdict rests on, for tools/verify_verdict.py.",
)
@click.option(
    "--policy-schema", "schema", is_flag=True, help="Print the JSON Schema of policy files and stop."
)
@without_collection()
def command(
    base: str | None,
    candidate: str | None,
    scorers: tuple[str, ...],
    token: str | None,
    policy: str | None,
    format_: str,
    report: Path | None,
    junit: Path | None,
    github_summary: bool,
    cluster_field: str | None,
    force: bool,
    audit: Path | None,
    schema: bool,
) -> int:
    """Judge a candidate against a base by a release policy."""
    if schema:
        print_json(policy_schema())
        return 0
    if report is not None and report.suffix not in (".md", ".html"):
        raise OptionError(f"--report writes .md or .html, not '{report.name}'")
    if base is None or candidate is None or policy is None:
        raise OptionError("gate needs BASE, CANDIDATE and --policy FILE (see evenhand gate --help)")
    document: Any
    try:
        if policy == "classic":
            if cluster_field is not None:
                raise OptionError("--cluster-field is not for --policy classic")
            from evenhand.ab.classic import MIN_COVERAGE, classic_gate

            runs = _only_run(Path(base)), _only_run(Path(candidate))
            found, analysis = classic_gate(*runs, force=force)
            markdown = f"{gate_markdown(found)}\n{analysis.to_markdown()}"
            document = {"verdict": found.verdict, "analysis": analysis.to_dict()}
            if audit is not None:
                inputs = digests({"base": base, "candidate": candidate})
                written = classic_audit(
                    found, analysis.to_dict(), *runs, min_coverage=MIN_COVERAGE, inputs=inputs
                )
                save_audit(audit, written)
        else:
            key = Secret(token) if token else settings.load().token
            sides = load_sides(base, candidate, scorers=scorers, token=key)
            rules = _policy(Path(policy))
            found = run_gate(sides.base, sides.candidate, rules, force=force, cluster_field=cluster_field)
            markdown, document = gate_markdown(found), found
            if audit is not None:
                inputs = digests({"base": base, "candidate": candidate, "policy": policy})
                written = gate_audit(
                    found, sides.base, sides.candidate, rules, cluster_field=cluster_field, inputs=inputs
                )
                save_audit(audit, written)
    except Incomparable as error:
        raise Incomparable(error.differences, hint=FORCE_HINT) from None
    markdown = printable(markdown)
    if report is not None:
        save_text(report, gate_page(found) if report.suffix == ".html" else markdown)
    if junit is not None:
        save_text(junit, gate_junit(found))
    if github_summary:
        _append_summary(markdown)
    if format_ == "json":
        print_json(document)
    elif format_ == "markdown":
        click.echo(markdown, nl=False)
    else:
        _print(console(), found)
    return EXIT_STATUS[found.verdict]


def _only_run(side: Path) -> RunResults:
    folders = run_folders(side)
    if len(folders) != 1:
        raise InputError("the classic rule judges one benchmark: name one run folder on each side")
    return read_run(next(iter(folders.values())))


def _policy(policy: Path) -> Policy:
    try:
        text = policy.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingFile(f"cannot read the policy: {error.strerror}", path=policy) from None
    except UnicodeDecodeError:
        raise InputError("cannot read the policy: it is not UTF-8 text", path=policy) from None
    return parse_policy(text, policy)


def _append_summary(text: str) -> None:
    path = settings.load().github_step_summary
    if path is None:
        raise OptionError("--github-summary needs GITHUB_STEP_SUMMARY in the environment")
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def _print(out: Console, found: GateReport) -> None:
    for words in found.treatment:
        out.print(f"Treatment: {printable(words)}", markup=False)
    out.print(f"[{STYLES.get(found.verdict, 'bold yellow')}]{found.verdict}[/]", end=" ")
    out.print(printable(found.sentence) + "\n", markup=False)
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
