"""`evenhand judge score`: judge answers that are already there."""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from evenhand.cli.judge_options import endpoint, judge_options, make_judge
from evenhand.cli.output import console, format_option, interval_text, print_json, progress, table
from evenhand.core import jsontext
from evenhand.core.errors import InputError, OptionError

RESPONSE_FIELDS = ("model_response", "response", "output", "answer")
TARGET_FIELDS = ("expected_answer", "target", "expected_output", "reference")

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
Exit status: 0 every sample has a verdict, 1 some have none, 2 bad input,
75 another command is writing the output.
"""


@click.command(short_help="judge the answers in a file", epilog=EXAMPLES)
@click.argument("answers", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@judge_options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the judged samples go (JSONL).",
)
@click.option("--resume", is_flag=True, help="Keep the verdicts that --output has and judge the rest.")
@format_option
def command(format_: str, **options: Any) -> int:
    """Judge the answers in ANSWERS, a JSONL, CSV or Parquet file with responses and, if need be, targets."""
    samples = read_samples(options["answers"])
    output: Path | None = options["output"]
    if options["resume"] and output is None:
        raise OptionError("--resume needs --output")
    with held(output) if output is not None else nullcontext():
        found = _judge_into(output, options, samples)
    if format_ == "json":
        print_json(found)
    else:
        print_summary(found, output)
    return 1 if found["failed"] else 0


def held(output: Path) -> AbstractContextManager[object]:
    """Keeps other commands off the output and the verdicts beside it; makes its folder."""
    from evenhand.evaluation.lease import Lease

    file = output.resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", path=output) from None
    return Lease(
        file.with_name(f".{file.name}.lock"),
        refusal=f"{output} is being written by another `evenhand judge score`",
        remove=True,
    )


def _judge_into(output: Path | None, options: dict[str, Any], samples: list[Any]) -> dict[str, Any]:
    """Judge what is left to judge, write the output if there is one, and say what came of it."""
    from evenhand.results.writing import JsonlFile

    if output is not None and not options["resume"]:
        partial(output).unlink(missing_ok=True)
    done = finished(output, samples) if options["resume"] and output is not None else {}
    judged, usage, identity = asyncio.run(_judge(options, samples, done))
    if output is not None:
        with JsonlFile(output) as file:
            for sample in judged:
                file.write(sample)
        partial(output).unlink(missing_ok=True)
    return summary(judged, usage, identity, kept=len(done))


def read_samples(path: Path) -> list[Any]:
    """The file's rows as samples that wait for the judge."""
    from evenhand.datasets import read_rows
    from evenhand.results.records import SampleError, SampleResult

    waiting = SampleError(kind="needs_judge", message="a judge has to score this sample")
    samples: dict[tuple[int, int], Any] = {}
    for number, row in enumerate(read_rows(path)):
        values = dict(row.values)
        response = _first(values, RESPONSE_FIELDS)
        if response is None:
            names = ", ".join(RESPONSE_FIELDS)
            raise InputError(f"the row has no response; it may be called {names}", path=path, line=row.line)
        metadata = values.get("metadata") if isinstance(values.get("metadata"), dict) else {}
        rest = {k: v for k, v in values.items() if k not in (*RESPONSE_FIELDS, *TARGET_FIELDS, "metadata")}
        index = values.get("problem_idx", number)
        repeat = values.get("repeat", 0)
        key = (index if isinstance(index, int) else number, repeat if isinstance(repeat, int) else 0)
        if key in samples:
            raise InputError(f"problem {key[0]}, repeat {key[1]} comes twice", path=path, line=row.line)
        samples[key] = SampleResult(
            problem_idx=key[0],
            repeat=key[1],
            model_response=response if isinstance(response, str) else jsontext.encode_text(response),
            expected_answer=_first(values, TARGET_FIELDS),
            metadata={**rest, **(metadata or {})},
            status="unscored",
            error=waiting,
        )
    if not samples:
        raise InputError("the file has no rows", path=path)
    return list(samples.values())


def _first(values: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)


def partial(output: Path) -> Path:
    """Where verdicts are noted as they come."""
    return output.with_name(output.name + ".partial")


def finished(output: Path, samples: list[Any]) -> dict[tuple[int, int], Any]:
    """The verdicts of an earlier, perhaps interrupted, run; failures and changed samples are judged again."""
    from evenhand.results.records import SampleResult

    found: dict[tuple[int, int], Any] = {}
    wanted = {(sample.problem_idx, sample.repeat): _judged_part(sample) for sample in samples}
    for path in (output, partial(output)):
        if not path.exists():
            continue
        for line in path.read_bytes().splitlines():
            try:
                sample = jsontext.decode(line, type=SampleResult)
            except InputError:
                # The last line of a run that was killed while writing.
                continue
            key = (sample.problem_idx, sample.repeat)
            if sample.status != "failed" and wanted.get(key) == _judged_part(sample):
                found[key] = sample
    return found


def _judged_part(sample: Any) -> bytes:
    """What a verdict is about."""
    return jsontext.canonical([sample.model_response, sample.expected_answer, sample.metadata])


class Journal:
    """The file beside the output that takes each verdict as it comes; nothing without an output."""

    def __init__(self, output: Path | None) -> None:
        self._file = partial(output).open("a+b") if output is not None else None
        if self._file is not None and self._file.tell():
            self._file.seek(-1, 2)
            if self._file.read(1) != b"\n":
                # A line that was cut short must not take the next verdict with it.
                self._file.write(b"\n")

    def __enter__(self) -> "Journal":
        return self

    def write(self, sample: Any) -> None:
        if self._file is not None:
            self._file.write(jsontext.encode(sample) + b"\n")
            self._file.flush()

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def check_identity(identity: str, done: dict[tuple[int, int], Any]) -> None:
    """Refuse to put the verdicts of two judges into one file."""
    earlier = {s.scoring_details["judge"]["identity"] for s in done.values() if "judge" in s.scoring_details}
    if earlier - {identity}:
        raise OptionError(
            "the verdicts in the output come from another judge (model, rubric or parameters differ); "
            "choose another output"
        )


async def _judge(options: dict[str, Any], samples: list[Any], done: dict[tuple[int, int], Any]) -> Any:
    from evenhand.models.address import reachable
    from evenhand.models.connect import connect
    from evenhand.scoring.judging.rewards import judge_results

    model = connect(endpoint(options))
    output: Path | None = options["output"]
    left = [sample for sample in samples if (sample.problem_idx, sample.repeat) not in done]
    try:
        judge = make_judge(options["rubric"], model)
        check_identity(judge.identity, done)
        if left:
            await reachable(options["judge_url"])
        with progress("Judging", total=len(left)) as steps, Journal(output) as journal:

            def heard(result: Any, state: Any) -> None:
                journal.write(result)
                steps.note(f"{state.scored} scored, {state.failed} failed")
                steps.advance()

            fresh = await judge_results(judge, left, concurrency=options["concurrency"], on_result=heard)
    finally:
        await model.aclose()
    by_key = {**done, **{(sample.problem_idx, sample.repeat): sample for sample in fresh}}
    return [by_key[sample.problem_idx, sample.repeat] for sample in samples], model.usage, judge.identity


def summary(judged: list[Any], usage: Any, identity: str, *, kept: int) -> dict[str, Any]:
    """What came of it."""
    rewards = [sample.reward for sample in judged if sample.reward is not None]
    kinds: dict[str, int] = {}
    for sample in judged:
        if sample.status != "scored":
            kind = getattr(sample.error, "kind", "unknown")
            kinds[kind] = kinds.get(kind, 0) + 1
    flagged = sum(
        "injection_suspected" in s.scoring_details.get("judge", {}).get("flags", ()) for s in judged
    )
    return {
        "samples": len(judged),
        "scored": len(rewards),
        "unscored": sum(sample.status == "unscored" for sample in judged),
        "failed": sum(sample.status == "failed" for sample in judged),
        "without_score": kinds,
        "injection_suspected": flagged,
        "kept_from_earlier": kept,
        "mean_reward": _mean(rewards),
        "judge": identity,
        "usage": usage,
    }


def _mean(rewards: list[float]) -> Any:
    from evenhand.metrics.intervals import NoSpread, mean_interval

    try:
        return mean_interval(rewards) if len(rewards) > 1 else None
    except NoSpread:
        return None


def print_summary(found: dict[str, Any], output: Path | None) -> None:
    """The summary for people."""
    usage = found["usage"]
    rows = [
        ["samples", f"{found['samples']:,} ({found['kept_from_earlier']:,} judged earlier)"],
        ["scored / unscored / failed", f"{found['scored']:,} / {found['unscored']:,} / {found['failed']:,}"],
    ]
    if found["mean_reward"] is not None:
        rows.insert(0, ["mean reward [95% interval]", interval_text(found["mean_reward"])])
    rows += [[f"  {kind}", f"{count:,}"] for kind, count in found["without_score"].items()]
    if found["injection_suspected"]:
        rows.append(["answers that may try to steer the judge", f"{found['injection_suspected']:,}"])
    retries = sum(usage.retries.values())
    rows += [
        ["requests (retries, from cache)", f"{usage.requests:,} ({retries:,}, {usage.cached:,})"],
        ["tokens in / out", f"{usage.input_tokens:,} / {usage.output_tokens:,}"],
        ["cost", f"{usage.cost_usd:.4f} USD" if usage.cost_usd else "unknown or nothing"],
        ["judge", found["judge"]],
    ]
    console().print(table("", ["Judged", ""], rows))
    if output is not None:
        click.echo(f"Verdicts: {output}")
