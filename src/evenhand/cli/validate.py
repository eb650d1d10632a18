"""`evenhand validate`: check a benchmark without calling a model."""

import asyncio

import click

from evenhand.benchmarks.registry import find_benchmarks
from evenhand.cli.output import format_option, print_json
from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.core.terminal import preview, printable
from evenhand.evaluation.validation import Check, check_benchmark

EXAMPLES = """
\b
Examples:
  evenhand validate -b my_bench.py --samples 5
  evenhand validate -b gsm8k --sample
"""


@click.command(epilog=EXAMPLES)
@click.option("--bench", "-b", required=True, help="A benchmark's name, file.py or file.py:name.")
@click.option(
    "--samples", type=click.IntRange(1), default=5, show_default=True, help="How many rows to show."
)
@click.option("--dataset", help="In place of the benchmark's own: a file or hf://org/name?split=...")
@click.option("--sample", is_flag=True, help="Use the few rows that ship with the benchmark.")
@format_option
def command(bench: str, samples: int, dataset: str | None, sample: bool, format_: str) -> int:
    """Check a benchmark: read every row, make every prompt, score the target itself and an empty answer.

    Exit status: 0 everything works, 1 the scorer fails on a row, 64 bad usage, 65 a row or the file is bad, 66 no
    such file.
    """
    failed = False
    for benchmark in find_benchmarks(bench):
        checks, count = asyncio.run(check_benchmark(benchmark, samples, dataset=dataset, sample=sample))
        failed = failed or any(isinstance(o, Failed) for check in checks for o in (check.right, check.empty))
        if format_ == "json":
            print_json({"benchmark": benchmark.name, "problems": count, "checks": checks})
            continue
        click.echo(f"{printable(benchmark.name)}: {count:,} problems, every prompt can be made")
        for check in checks:
            _show(check)
    return 1 if failed else 0


def _show(check: Check) -> None:
    problem = check.problem
    click.echo(f"\nproblem {problem.index}, target {preview(str(problem.target), 60)!r}")
    for turn in problem.turns:
        for number, line in enumerate(printable(turn.text).splitlines() or [""]):
            click.echo(f"  {turn.role + ':' if number == 0 else '':<11}{line}")
    click.echo(f"  the target as the answer → {_words(check.right)}; no answer → {_words(check.empty)}")


def _words(outcome: Outcome) -> str:
    match outcome:
        case Scored():
            return f"scored {outcome.value}"
        case Failed():
            return f"FAILED ({outcome.error}: {preview(outcome.message, 200)})"
        case _:
            return f"unscored ({outcome.reason})"
