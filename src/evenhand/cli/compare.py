"""`evenhand compare`: is the change real?"""

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace
from rich.console import Console

from evenhand import settings
from evenhand.cli.output import (
    console,
    format_option,
    interval_text,
    print_json,
    save_audit,
    save_text,
    table,
)
from evenhand.compare.audit import compare_audit, digests
from evenhand.compare.comparison import Comparison, Options, compare_runs
from evenhand.compare.coverage import share_text
from evenhand.compare.family import correct_together
from evenhand.compare.many import ManyRuns, compare_many
from evenhand.compare.sequential import SequentialComparison, compare_sequentially
from evenhand.compare.stopping import in_asked_order
from evenhand.compare.verdict import EXIT_STATUS, worst_verdict
from evenhand.core.collecting import without_collection
from evenhand.core.errors import Incomparable, InputError, OptionError
from evenhand.core.secret import Secret
from evenhand.core.terminal import preview, printable
from evenhand.integrations.comparable import load_sides
from evenhand.reports.comparison_markdown import (
    cell,
    comparison_markdown,
    facts,
    interval,
    many_markdown,
)
from evenhand.results import RunResults, read_run

STYLES = {"PASS": "bold green", "WARN": "bold yellow", "INCONCLUSIVE": "bold yellow", "BLOCK": "bold red"}
RESCORE_HINT = (
    "\nTo compare them all the same, score both sides' stored responses with one scorer "
    "(evenhand eval rescore DIR --scorer NAME), or insist with --force."
)
SHOWN_FLIPS = 20
SHOWN_MISSING = 10


@click.command(
    epilog="""\b
Examples:
  evenhand compare runs/base runs/candidate
  evenhand compare runs/base runs/candidate --max-drop 0.01 --strict
  evenhand compare runs/base runs/candidate --show-flips --report out.html
  evenhand compare runs/a runs/b runs/c          several runs: a table and which ones cannot be told apart
  evenhand compare runs/base runs/candidate --audit audit.json && python tools/verify_verdict.py audit.json
  evenhand compare runs/base runs/candidate --sequential   may be looked at while both runs grow
  evenhand compare before.json after.json        files of promptfoo, Inspect, lm-eval, DeepEval, scores.jsonl
  evenhand compare URL/experiments/A URL/experiments/B     experiments of a scoring service

\b
Verdicts (with --strict also the exit status):
  PASS 0          no drop is shown, and one larger than --max-drop is ruled out
  BLOCK 1         a drop is shown, and its estimate is larger than --max-drop
  WARN 2          a drop is shown, and its estimate is within --max-drop
  INCONCLUSIVE 2  the data cannot tell, or too much is missing
Otherwise: 64 bad usage, 65 bad or incomparable input, 66 no such file."""
)
@click.argument("runs", nargs=-1, required=True)
@click.option("--scorer", "scorers", multiple=True, help="Of a file with several scorers: only this one.")
@click.option(
    "--token", help="The token of the service whose experiments are compared; default EVENHAND_TOKEN."
)
@click.option(
    "--max-drop",
    type=float,
    default=0.05,
    show_default=True,
    help="The drop that is tolerated, on the score's scale.",
)
@click.option(
    "--min-coverage",
    type=float,
    default=0.98,
    show_default=True,
    help="The share of samples that each side must have scored for a PASS, unless the worst case passes too.",
)
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Confidence level of the intervals."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the resampling.")
@click.option("--strict", is_flag=True, help="Use the verdict as the exit status.")
@click.option("--show-flips", is_flag=True, help="List the problems whose score changed.")
@click.option(
    "--sequential", is_flag=True, help="An anytime-valid verdict that may be looked at after every sample."
)
@click.option(
    "--cluster-field",
    help="Metadata field that names what problems share, such as a passage: only clusters count as independent.",
)
@click.option("--force", is_flag=True, help="Compare even if the runs did not measure the same thing.")
@click.option("--report", type=click.Path(path_type=Path), help="Write a report: out.md or out.html.")
@click.option(
    "--audit",
    type=click.Path(path_type=Path),
    help="Also write everything the verdict rests on, for tools/verify_verdict.py.",
)
@format_option
@without_collection()
def command(
    runs: tuple[str, ...],
    scorers: tuple[str, ...],
    token: str | None,
    max_drop: float,
    min_coverage: float,
    confidence: float,
    seed: int,
    strict: bool,
    show_flips: bool,
    sequential: bool,
    force: bool,
    cluster_field: str | None,
    report: Path | None,
    audit: Path | None,
    format_: str,
) -> int:
    """Compare a candidate run with a base run, problem by problem.

    BASE and CAND are run folders, bundles (eval-*.json) or results files; folders of run folders are compared
    benchmark by benchmark. Files of other tools, `scores.jsonl` and experiments of a service (URL/experiments/ID)
    are compared scorer by scorer. Three or more runs give a table instead.
    """
    if len(runs) < 2:
        raise OptionError("compare needs at least two runs: a base and a candidate")
    if report is not None and report.suffix not in (".md", ".html"):
        raise OptionError(f"--report writes .md or .html, not '{report.name}'")
    options = Options(
        max_drop=max_drop,
        min_coverage=min_coverage,
        confidence_level=confidence,
        seed=seed,
        force=force,
        cluster_field=cluster_field,
    )
    if len(runs) > 2 and (strict or show_flips or sequential):
        raise OptionError("--strict, --show-flips and --sequential are for two runs: a base and a candidate")
    if sequential and (show_flips or report is not None):
        raise OptionError("--sequential says where two growing runs stand: it has no flips and no report")
    if (cluster_field is not None or audit is not None) and (sequential or len(runs) > 2):
        raise OptionError("--cluster-field and --audit are for one look at two runs: a base and a candidate")
    try:
        if len(runs) > 2:
            paths = [Path(run) for run in runs]
            _check_distinct(paths)
            return _many([read_run(path) for path in paths], options, report, format_)
        if sequential:
            looks, absent = _looked_at(Path(runs[0]), Path(runs[1]), options)
            return _show_sequential(looks, absent, format_, strict)
        sides = load_sides(runs[0], runs[1], scorers=scorers, token=_secret(token))
        for name in sides.lonely:
            click.echo(f"Only on one side, not compared: {printable(name)}", err=True)
        for words in sides.notes:
            click.echo(f"Note: {printable(words)}", err=True)
        pairs = sides.pairs()
        tried = [(_compared(a, b, options, alone=len(pairs) == 1), (a, b)) for a, b in pairs]
        compared = [(one, pair) for one, pair in tried if one is not None]
        found = correct_together([one for one, _ in compared], options)
        left_out = [pair[0].name for one, pair in tried if one is None]
        left_out += sorted(sides.base.keys() & set(sides.lonely))
        if audit is not None and found:
            document = compare_audit(
                found,
                [pair for _, pair in compared],
                options,
                verdict=worst_verdict((one.verdict.name for one in found), some_left_out=bool(left_out)),
                left_out=left_out,
                inputs=digests({"base": runs[0], "candidate": runs[1]}),
            )
            save_audit(audit, document)
        return _show(found, left_out, format_, strict, show_flips, report)
    except Incomparable as error:
        raise Incomparable(error.differences, hint=RESCORE_HINT) from None


def _check_distinct(runs: Sequence[Path]) -> None:
    seen: set[Path] = set()
    for path in runs:
        if path.resolve() in seen:
            raise OptionError(f"the run '{path}' is given twice")
        seen.add(path.resolve())


def _compared(base: RunResults, candidate: RunResults, options: Options, *, alone: bool) -> Comparison | None:
    """The comparison; of several scorers one with too little data is named, and does not stop the others."""
    try:
        return compare_runs(base, candidate, options)
    except InputError as error:
        if alone:
            raise
        click.echo(f"Not compared: {printable(base.name)}: {printable(str(error))}", err=True)
        return None


def _secret(token: str | None) -> Secret | None:
    return Secret(token) if token else settings.load().token


def _looked_at(base: Path, candidate: Path, options: Options) -> tuple[list[SequentialComparison], list[str]]:
    """Where every benchmark stands, and those of the base that could not be compared."""
    # Only this needs the runner's packages, and they take their time to load.
    from evenhand.evaluation.growing import is_growing, read_growing

    if is_growing(base) or is_growing(candidate):
        first, second, shuffled = in_asked_order(read_growing(base), read_growing(candidate))
        return [compare_sequentially(first, second, options, shuffled=shuffled)], []
    sides = load_sides(str(base), str(candidate))
    for name in sides.lonely:
        click.echo(f"Only on one side, not compared: {printable(name)}", err=True)
    left_out = sorted(sides.base.keys() & set(sides.lonely))
    pairs = sides.pairs()
    # Several benchmarks share the error rate.
    level = 1 - (1 - options.confidence_level) / len(pairs)
    options = replace(options, confidence_level=level)
    found = []
    for one, other in pairs:
        try:
            first, second, shuffled = in_asked_order(one, other)
            found.append(compare_sequentially(first, second, options, growing=False, shuffled=shuffled))
        except InputError as error:
            if len(pairs) == 1:
                raise
            click.echo(f"Not compared: {printable(one.name)}: {printable(str(error))}", err=True)
            left_out.append(one.name)
    if not found:
        raise InputError("there is nothing that can be compared")
    return found, left_out


def _show(
    found: Sequence[Comparison],
    left_out: Sequence[str],
    format_: str,
    strict: bool,
    show_flips: bool,
    report: Path | None,
) -> int:
    if not found:
        raise InputError("there is nothing that can be compared")
    worst = worst_verdict((one.verdict.name for one in found), some_left_out=bool(left_out))
    if report is not None:
        save_text(report, _report_text(found, left_out, report.suffix))
    if format_ == "json":
        shown = [one if show_flips else replace(one, flips=[]) for one in found]
        print_json({"verdict": worst, "left_out": list(left_out), "comparisons": shown})
    else:
        out = console()
        for one in found:
            _print(out, one, show_flips)
        if len(found) > 1 or left_out:
            out.print(f"[{STYLES[worst]}]Overall: {worst}[/]")
        if left_out:
            out.print(_left_out_words(left_out), markup=False)
        if report is not None:
            out.print(f"Report: {printable(str(report))}", markup=False)
    return EXIT_STATUS[worst] if strict else 0


def _left_out_words(left_out: Sequence[str]) -> str:
    return f"Of the base's benchmarks these could not be compared: {', '.join(map(printable, left_out))}."


def _report_text(found: Sequence[Comparison], left_out: Sequence[str], suffix: str) -> str:
    if suffix == ".md":
        parts = [comparison_markdown(one) for one in found]
        if left_out:
            worst = worst_verdict((one.verdict.name for one in found), some_left_out=True)
            parts.insert(0, f"**Overall: {worst}.** {cell(_left_out_words(left_out))}\n")
        return "\n".join(parts)
    if len(found) > 1 or left_out:
        raise OptionError(
            "an HTML report holds one benchmark: name one run folder on each side, or write .md"
        )
    from evenhand.reports.comparison import comparison_page

    return comparison_page(found[0])


def _print(out: Console, found: Comparison, show_flips: bool) -> None:
    verdict = found.verdict
    for change in found.treatment:
        out.print(f"Treatment: {printable(str(change))}", markup=False)
    out.print(f"[{STYLES[verdict.name]}]{verdict.name}[/]", end=" ")
    out.print(f"{printable(found.benchmark)}: {verdict.sentence}", markup=False)
    for reason in verdict.reasons:
        out.print(f"  • {reason}", markup=False)
    out.print(f"  Next: {verdict.next_step}\n", markup=False)
    sides = [
        [
            name,
            preview(side.name, 60),
            interval_text(side.mean),
            f"{side.lowest_mean:.4f} to {side.highest_mean:.4f}",
            *(f"{n:,}" for n in (side.tally.scored, side.tally.unscored, side.tally.failed)),
        ]
        for name, side in (("base", found.base), ("candidate", found.candidate))
    ]
    columns = [
        "",
        "run",
        f"mean over {found.base.covered}",
        "worst to best case",
        "scored",
        "unscored",
        "failed",
    ]
    out.print(table("", columns, sides, numeric_from=2))
    out.print(f"\n{facts(found)}", markup=False)
    if found.categories:
        rows = [
            [
                one.category,
                f"{one.problems:,}",
                f"{one.base_mean:.4f}",
                f"{one.candidate_mean:.4f}",
                interval(one.delta, sign=True),
                f"{one.p_adjusted:.3g}",
            ]
            for one in found.categories
        ]
        out.print()
        out.print(table("", ["category", "problems", "base", "candidate", "delta", "p (Holm)"], rows))
    if show_flips:
        _print_flips(out, found)
    for words in found.caveats:
        out.print(f"Note: {words}", markup=False)
    _print_missing(out, found)
    out.print()


def _print_missing(out: Console, found: Comparison) -> None:
    missing = found.coverage.missing
    if not missing:
        return
    rows = [
        [str(one.problem_idx), str(one.repeat), one.base, one.candidate] for one in missing[:SHOWN_MISSING]
    ]
    out.print()
    title = f"Not compared ({len(rows)} of {len(missing):,})"
    out.print(table(title, ["problem", "repeat", "base", "candidate"], rows, numeric_from=9))


def _print_flips(out: Console, found: Comparison) -> None:
    rows = [
        [
            f"{flip.problem_idx}, {flip.of_repeat}" if flip.of_repeat else str(flip.problem_idx),
            "regressed" if flip.candidate < flip.base else "improved",
            f"{flip.base:.2f} → {flip.candidate:.2f}",
            preview(str(flip.expected), 24),
            preview(flip.base_response, 40),
            preview(flip.candidate_response, 40),
        ]
        for flip in found.flips[:SHOWN_FLIPS]
    ]
    out.print()
    columns = ["problem", "", "score", "expected", "base's answer", "candidate's answer"]
    out.print(table(f"Flipped problems ({len(rows)} of {len(found.flips)})", columns, rows, numeric_from=9))


def _many(runs: Sequence[RunResults], options: Options, report: Path | None, format_: str) -> int:
    found = compare_many(runs, options)
    if report is not None:
        if report.suffix != ".md":
            raise OptionError("the report on several runs is Markdown: name a .md file")
        save_text(report, many_markdown(found))
    if format_ == "json":
        print_json(found)
    else:
        _print_many(console(), found)
    return 0


def _print_many(out: Console, found: ManyRuns) -> None:
    out.print(
        f"{printable(found.benchmark)}: {len(found.runs)} runs on {found.problems:,} shared problems",
        markup=False,
    )
    if found.dropped:
        out.print(
            f"Note: {found.dropped:,} problems are not scored in every run and are left out", markup=False
        )
    runs = [
        [
            one.name,
            interval_text(one.mean),
            f"{one.lowest_mean:.4f} to {one.highest_mean:.4f}",
            share_text(one.share),
            f"{one.tally.scored:,}",
            f"{one.tally.unscored:,}",
            f"{one.tally.failed:,}",
            one.letters,
        ]
        for one in found.runs
    ]
    mean = f"mean over {found.problems:,} shared problems"
    columns = ["run", mean, "worst to best case", "coverage", "scored", "unscored", "failed", "group"]
    out.print(table("", columns, runs))
    out.print("Runs that share a letter cannot be told apart.\n")
    pairs = [
        [one.first, one.second, interval(one.delta, sign=True), f"{one.p_adjusted:.3g}"]
        for one in found.pairs
    ]
    out.print(table("", ["first", "second", "second − first", "p (Holm)"], pairs, numeric_from=2))


def _show_sequential(
    found: Sequence[SequentialComparison], left_out: Sequence[str], format_: str, strict: bool
) -> int:
    worst = worst_verdict((one.verdict.name for one in found), some_left_out=bool(left_out))
    if format_ == "json":
        print_json({"verdict": worst, "left_out": list(left_out), "comparisons": list(found)})
    else:
        out = console()
        for one in found:
            out.print(f"[{STYLES[one.verdict.name]}]{one.verdict.name}[/]", end=" ")
            out.print(f"{printable(one.benchmark)}: {one.verdict.sentence}", markup=False)
            for reason in one.verdict.reasons:
                out.print(f"  • {reason}", markup=False)
            out.print(f"  Next: {one.verdict.next_step}", markup=False)
        if len(found) > 1 or left_out:
            out.print(f"[{STYLES[worst]}]Overall: {worst}[/]")
        if left_out:
            out.print(_left_out_words(left_out), markup=False)
    return EXIT_STATUS[worst] if strict else 0
