"""`evenhand compare`: is the change real?"""

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace
from rich.console import Console

from evenhand.cli.output import console, format_option, interval_text, print_json, table
from evenhand.compare.comparison import Comparison, Options, compare_runs
from evenhand.compare.many import ManyRuns, compare_many
from evenhand.compare.markdown import comparison_markdown, facts, interval, many_markdown
from evenhand.compare.page import comparison_page
from evenhand.compare.sequential import SequentialComparison, compare_sequentially
from evenhand.compare.verdict import EXIT_STATUS, VerdictName
from evenhand.core.errors import Incomparable, InputError, OptionError, UserError
from evenhand.core.terminal import preview, printable
from evenhand.results import RunResults, read_run, run_folders, write_text

SEVERITY: dict[VerdictName, int] = {"PASS": 0, "WARN": 1, "INCONCLUSIVE": 2, "BLOCK": 3}
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
  evenhand compare runs/a runs/b runs/c          several runs: a table and who cannot be told apart
  evenhand compare runs/base runs/candidate --sequential   may be looked at while both runs grow

\b
Verdicts (with --strict also the exit status):
  PASS 0          no real drop, and one larger than --max-drop is ruled out
  BLOCK 1         a real drop, larger than --max-drop
  WARN 2          a real drop, within --max-drop
  INCONCLUSIVE 2  the data cannot tell"""
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
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
    default=0.0,
    show_default=True,
    help="The part of the pairs that must be compared.",
)
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Confidence level of the intervals."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of whatever is resampled.")
@click.option("--strict", is_flag=True, help="Let the verdict be the exit status.")
@click.option("--show-flips", is_flag=True, help="List the problems whose score changed.")
@click.option(
    "--sequential", is_flag=True, help="An anytime-valid verdict that may be looked at after every sample."
)
@click.option("--force", is_flag=True, help="Compare although the runs did not measure the same thing.")
@click.option("--report", type=click.Path(path_type=Path), help="Write a report: out.md or out.html.")
@format_option
def command(
    runs: tuple[Path, ...],
    max_drop: float,
    min_coverage: float,
    confidence: float,
    seed: int,
    strict: bool,
    show_flips: bool,
    sequential: bool,
    force: bool,
    report: Path | None,
    format_: str,
) -> int:
    """Compare a candidate run with a base run, problem by problem.

    BASE and CAND are run folders, bundles (eval-*.json) or results files; folders of run folders are compared
    benchmark by benchmark. Three or more runs give a table instead.
    """
    if len(runs) < 2:
        raise OptionError("compare needs at least two runs: a base and a candidate")
    if report is not None and report.suffix not in (".md", ".html"):
        raise OptionError(f"--report writes .md or .html, not '{report.name}'")
    options = Options(
        max_drop=max_drop, min_coverage=min_coverage, confidence_level=confidence, seed=seed, force=force
    )
    if len(runs) > 2 and (strict or show_flips or sequential):
        raise OptionError("--strict, --show-flips and --sequential are for two runs: a base and a candidate")
    if sequential and (show_flips or report is not None):
        raise OptionError("--sequential says where two growing runs stand: it has no flips and no report")
    try:
        if len(runs) > 2:
            _check_distinct(runs)
            return _many([read_run(path) for path in runs], options, report, format_)
        if sequential:
            return _show_sequential(_looked_at(runs[0], runs[1], options), format_, strict)
        pairs = paired_paths(*runs)
        return _show(
            [compare_runs(read_run(a), read_run(b), options) for a, b in pairs],
            format_,
            strict,
            show_flips,
            report,
        )
    except Incomparable as error:
        raise UserError(f"{error}{RESCORE_HINT}") from None


def _check_distinct(runs: Sequence[Path]) -> None:
    seen: set[Path] = set()
    for path in runs:
        if path.resolve() in seen:
            raise OptionError(f"the run '{path}' is given twice")
        seen.add(path.resolve())


def _looked_at(base: Path, candidate: Path, options: Options) -> list[SequentialComparison]:
    # Only this needs the runner's packages, and they take their time to load.
    from evenhand.evaluation.growing import is_growing, read_growing

    growing = is_growing(base) or is_growing(candidate)
    pairs = [(base, candidate)] if growing else paired_paths(base, candidate)
    return [compare_sequentially(read_growing(a), read_growing(b), options) for a, b in pairs]


def paired_paths(base: Path, candidate: Path) -> list[tuple[Path, Path]]:
    """The runs that belong together: two single runs, or the benchmarks that two folders share."""
    mine, theirs = run_folders(base), run_folders(candidate)
    if len(mine) == 1 and len(theirs) == 1:
        return [(next(iter(mine.values())), next(iter(theirs.values())))]
    shared = sorted(mine.keys() & theirs.keys())
    if not shared:
        raise InputError(f"no benchmark in common: {', '.join(mine)} against {', '.join(theirs)}")
    for name in sorted(mine.keys() ^ theirs.keys()):
        click.echo(f"Only on one side, not compared: {printable(name)}", err=True)
    return [(mine[name], theirs[name]) for name in shared]


def _show(
    found: Sequence[Comparison], format_: str, strict: bool, show_flips: bool, report: Path | None
) -> int:
    worst = max((one.verdict.name for one in found), key=SEVERITY.__getitem__)
    if report is not None:
        write_text(report, _report_text(found, report.suffix))
    if format_ == "json":
        shown = [one if show_flips else replace(one, flips=[]) for one in found]
        print_json({"verdict": worst, "comparisons": shown})
    else:
        out = console()
        for one in found:
            _print(out, one, show_flips)
        if len(found) > 1:
            out.print(f"[{STYLES[worst]}]Overall: {worst}[/]")
        if report is not None:
            out.print(f"Report: {printable(str(report))}", markup=False)
    return EXIT_STATUS[worst] if strict else 0


def _report_text(found: Sequence[Comparison], suffix: str) -> str:
    if suffix == ".md":
        return "\n".join(comparison_markdown(one) for one in found)
    if len(found) > 1:
        raise OptionError(
            "an HTML report holds one benchmark: name one run folder on each side, or write .md"
        )
    return comparison_page(found[0])


def _print(out: Console, found: Comparison, show_flips: bool) -> None:
    verdict = found.verdict
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
            *(f"{n:,}" for n in (side.tally.scored, side.tally.unscored, side.tally.failed)),
        ]
        for name, side in (("base", found.base), ("candidate", found.candidate))
    ]
    out.print(table("", ["", "run", "mean", "scored", "unscored", "failed"], sides, numeric_from=2))
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
            str(flip.problem_idx),
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
        write_text(report, many_markdown(found))
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
            f"{one.tally.scored:,}",
            f"{one.tally.unscored:,}",
            f"{one.tally.failed:,}",
            one.letters,
        ]
        for one in found.runs
    ]
    out.print(table("", ["run", "mean", "scored", "unscored", "failed", "group"], runs))
    out.print("Runs that share a letter cannot be told apart.\n")
    pairs = [
        [one.first, one.second, interval(one.delta, sign=True), f"{one.p_adjusted:.3g}"]
        for one in found.pairs
    ]
    out.print(table("", ["first", "second", "second − first", "p (Holm)"], pairs, numeric_from=2))


def _show_sequential(found: Sequence[SequentialComparison], format_: str, strict: bool) -> int:
    worst = max((one.verdict.name for one in found), key=SEVERITY.__getitem__)
    if format_ == "json":
        print_json({"verdict": worst, "comparisons": list(found)})
    else:
        out = console()
        for one in found:
            out.print(f"[{STYLES[one.verdict.name]}]{one.verdict.name}[/]", end=" ")
            out.print(f"{printable(one.benchmark)}: {one.verdict.sentence}", markup=False)
            for reason in one.verdict.reasons:
                out.print(f"  • {reason}", markup=False)
            out.print(f"  Next: {one.verdict.next_step}", markup=False)
    return EXIT_STATUS[worst] if strict else 0
