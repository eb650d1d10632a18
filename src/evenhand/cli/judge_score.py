"""`evenhand judge score`: judge answers that are already there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.judge_options import JudgeOptions, judge_options
from evenhand.cli.output import console, format_option, interval_text, print_json, progress, table
from evenhand.cli.think_tags import THINK_TAGS_HELP

if TYPE_CHECKING:
    from evenhand.evaluation.judge_file import Judged
    from evenhand.judging.pipeline import JudgeProgress

EXAMPLES = """
\b
Examples:
  evenhand judge score answers.jsonl --judge-url http://127.0.0.1:8001/v1 --judge-id m
  evenhand judge score results.jsonl --rubric simpleqa --judge-url https://api.openai.com/v1 \\
      --judge-id gpt-4o --spend-cap 5 --price 2.5,10 -o judged.jsonl
  evenhand judge score answers.jsonl --rubric my_rubric.yaml --judge-url URL --judge-id ID \\
      -o judged.jsonl --resume

The key comes from EVENHAND_JUDGE_API_KEY, EVENHAND_API_KEY or OPENAI_API_KEY. A rubric file holds the fields of
JudgeScoringConfig, such as rubric_template, max_score and choices.

\b
Exit status: 0 every sample has a judgement, 1 some have none, 64 bad usage, 65 bad input,
66 no such file, 69 the judge cannot be reached, 75 another command is writing the output.
"""


class ScoreOptions(JudgeOptions, kw_only=True):
    """What the command line can say."""

    answers: Path
    output: Path | None
    resume: bool
    think_tags: str


@click.command(short_help="judge the answers in a file", epilog=EXAMPLES)
@click.argument("answers", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@judge_options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the judged samples go (JSONL).",
)
@click.option("--resume", is_flag=True, help="Keep the judgements that --output has and judge the rest.")
@click.option("--think-tags", default="think", show_default=True, help=THINK_TAGS_HELP)
@format_option
@click.pass_context
def command(context: click.Context, /, **_: object) -> int:
    """Judge the answers in ANSWERS, a JSONL, CSV or Parquet file with responses and, if need be, targets."""
    from evenhand.evaluation.judge_file import JudgeFile, judge_file
    from evenhand.models.reasoning import parse_tags

    options = ScoreOptions(**context.params)
    wanted = JudgeFile(
        answers=options.answers,
        endpoint=options.endpoint(),
        rubric=options.rubric,
        concurrency=options.concurrency,
        output=options.output,
        resume=options.resume,
        think_tags=parse_tags(options.think_tags),
    )
    found = judge_file(wanted, _progress)
    if options.format_ == "json":
        print_json(found)
    else:
        _print(found, options.output)
    return 1 if found.failed else 0


@contextmanager
def _progress(total: int) -> Iterator[Callable[[object, "JudgeProgress"], None]]:
    with progress("Judging", total=total) as steps:

        def heard(_: object, state: "JudgeProgress") -> None:
            steps.note(f"{state.scored} scored, {state.failed} failed")
            steps.advance()

        yield heard


def _print(found: "Judged", output: Path | None) -> None:
    """The summary for people."""
    usage = found.usage
    rows = [
        ["samples", f"{found.samples:,} ({found.kept_from_earlier:,} judged earlier)"],
        ["scored / unscored / failed", f"{found.scored:,} / {found.unscored:,} / {found.failed:,}"],
    ]
    if found.mean_reward is not None:
        rows.insert(0, ["mean reward [95% interval]", interval_text(found.mean_reward)])
    rows += [[f"  {kind}", f"{count:,}"] for kind, count in found.without_score.items()]
    if found.truncated:
        rows.append(["answers that were cut off: raise their model's limit", f"{found.truncated:,}"])
    if found.injection_suspected:
        rows.append(["answers that may try to steer the judge", f"{found.injection_suspected:,}"])
    retries = sum(usage.retries.values())
    rows += [
        ["requests (retries, from cache)", f"{usage.requests:,} ({retries:,}, {usage.cached:,})"],
        ["tokens in / out", f"{usage.input_tokens:,} / {usage.output_tokens:,}"],
        *([["parameters not taken", ", ".join(usage.adjusted)]] if usage.adjusted else []),
        ["cost", f"{usage.cost_usd:.4f} USD" if usage.cost_usd else "unknown or nothing"],
        ["judge", found.judge],
    ]
    console().print(table("", ["Judged", ""], rows))
    if output is not None:
        click.echo(f"Judgements: {output}")
