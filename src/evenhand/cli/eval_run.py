"""`evenhand eval run`. What only some runs need, or only the end of a run, is imported there: see decision 62."""

import asyncio
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec import Struct
from msgspec.structs import asdict

from evenhand.benchmarks.registry import find_benchmarks
from evenhand.cli.endpoint_options import JUDGE, MODEL, EndpointFlags
from evenhand.cli.formats import format_option, print_json
from evenhand.cli.think_tags import THINK_TAGS_HELP
from evenhand.core.errors import EvenhandError, InputError, ModelError, OptionError, RunConflict
from evenhand.core.ids import new_id
from evenhand.core.jsontext import decode
from evenhand.core.terminal import printable
from evenhand.core.timestamps import format_instant, now
from evenhand.evaluation.config import PlannedRun, RunSettings, Service
from evenhand.evaluation.pipeline import Pipeline, Stopped
from evenhand.evaluation.progress import ProgressLine
from evenhand.evaluation.runner import Evaluation, Resume
from evenhand.evaluation.tasks import Task
from evenhand.models.reasoning import parse_tags
from evenhand.results.reading import read_run

if TYPE_CHECKING:
    from collections.abc import Collection

    from evenhand.benchmarks.definition import Benchmark
    from evenhand.evaluation.artifacts import Written
    from evenhand.evaluation.model_names import Located
    from evenhand.evaluation.report import ReportWriter
    from evenhand.evaluation.suites.variants import VariantSuite

WITH_CONFIG = frozenset(
    {
        "config",
        "output",
        "resume",
        "allow_drift",
        "allow_errors",
        "record",
        "record_token",
        "record_project",
        "format_",
        "baseline",
        "margin",
        "stop_when_decided",
        "order_seed",
    }
)
"""What is said on the command line also when a file says the rest."""
SAID_BY_SUITES = frozenset({"baseline", "margin", "stop_when_decided", "order_seed"})
"""Of these, what a file of prompts and models says itself."""
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SECRET_OPTIONS = ("--api-key", "--judge-api-key", "--record-token")
EXAMPLES = """
\b
Examples:
  evenhand eval run --bench gsm8k --model-url http://127.0.0.1:8000/v1 --model-id my-model -o out
  evenhand eval run --bench mmlu --model openai/gpt-4o --judge anthropic/claude-sonnet-4-5
  evenhand eval run --bench ./my_bench.py --model-url ... --model-id ... --max-problems 20
  evenhand eval run --bench simpleqa --model-url ... --model-id ... --judge-url ... --judge-id gpt-4o
  evenhand eval run evenhand.yaml                         prompts × models × rows × scorers: evenhand init
  evenhand eval run promptfooconfig.yaml                  the same from a file of promptfoo
  evenhand eval run nightly.yaml -o nightly --resume
  evenhand eval run --task app.py:answer --data qa.jsonl --scorer token_f1 --scorer mine.py:tone -o out
  evenhand eval run --task app.py:answer --bench gsm8k -o out
  evenhand eval run ... -o new --baseline runs/old --margin 0.02 --stop-when-decided

Exit status: 0 done, 1 some samples could not be measured (0 with --allow-errors); of a file with prompts and
models that of gate: 0 GO, 1 NO-GO, 2 inconclusive. 64 bad usage,
65 bad input, 66 no such file, 69 the model cannot be reached, 74 the results cannot be written,
75 another process is using the run, 130 interrupted.
"""


class RunOptions(Struct, frozen=True, kw_only=True):
    """Everything that the command line can say; a test holds it against the options below."""

    config: Path | None
    benches: tuple[str, ...]
    task: str | None
    data: str | None
    scorers: tuple[str, ...]
    name: str | None
    metadata: tuple[str, ...]
    cache: bool
    baseline: Path | None
    margin: float
    stop_when_decided: bool
    order_seed: int
    model_name: str | None
    model_url: str | None
    model_id: str | None
    api_key: str | None
    dialect: Literal["openai", "anthropic"]
    judge_name: str | None
    judge_url: str | None
    judge_id: str | None
    judge_api_key: str | None
    judge_max_tokens: int | None
    judge_dialect: Literal["openai", "anthropic"]
    dataset: str | None
    sample: bool
    system_prompt: str | None
    repeats: int
    max_problems: int | None
    shuffle_seed: int | None
    shard: tuple[int, int] | None
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    max_completion_tokens: int | None
    reasoning_effort: str | None
    extra_body: tuple[str, ...]
    seed: int | None
    stop: tuple[str, ...]
    think_tags: str
    concurrency: int
    sandboxes: int
    timeout: float
    tries: int
    spend_cap_usd: float | None
    price: str | None
    judge_price: str | None
    output: Path | None
    resume: bool
    allow_drift: bool
    allow_errors: bool
    record: str | None
    record_token: str | None
    record_project: str
    format_: str

    def settings(self) -> RunSettings:
        """What the flags say about the run."""
        return RunSettings(
            dataset=self.dataset,
            system_prompt=self.system_prompt,
            repeats=self.repeats,
            max_problems=self.max_problems,
            shuffle_seed=self.shuffle_seed,
            shard=self.shard,
            sample=self.sample,
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_tokens,
            max_completion_tokens=self.max_completion_tokens,
            reasoning_effort=self.reasoning_effort,
            extra_body=key_values(self.extra_body, "--extra-body"),
            seed=self.seed,
            stop=self.stop,
            think_tags=parse_tags(self.think_tags),
            concurrency=self.concurrency,
            sandboxes=self.sandboxes,
            spend_cap_usd=self.spend_cap_usd,
            cache=self.cache,
            judge_options=None if self.judge_max_tokens is None else {"max_tokens": self.judge_max_tokens},
        )

    def model(self) -> Service:
        """The model under test."""
        return self._service(MODEL, MODEL.require(asdict(self)))

    def judge(self) -> Service | None:
        """The judge, if there is one."""
        found = JUDGE.locate(asdict(self))
        return None if found is None else self._service(JUDGE, found)

    def _service(self, flags: EndpointFlags, found: "Located") -> Service:
        price = flags.prices(asdict(self))
        return Service(
            url=found.url,
            id=found.id,
            api_key=found.api_key,
            dialect=found.dialect,
            timeout=self.timeout,
            tries=self.tries,
            input_usd=price[0] if price else None,
            output_usd=price[1] if price else None,
        )

    def under_test(self, *, timed: bool) -> Task:
        """The function under test; the time limit of requests is not its own unless it was asked for."""
        assert self.task is not None
        if self.model_name or self.model_url or self.model_id:
            raise OptionError("name a model or a --task, not both")
        from evenhand.cli.user_code import load_function

        return Task(
            function=load_function(self.task, "--task"),
            timeout=self.timeout if timed else None,
        )


def key_values(given: tuple[str, ...], option: str) -> dict[str, Any]:
    """What KEY=VALUE options say: values are JSON where they can be read as such, and texts where not."""
    found: dict[str, Any] = {}
    for entry in given:
        name, equals, text = entry.partition("=")
        if not equals or not name:
            raise OptionError(f"{option} is KEY=VALUE, not '{entry}'")
        try:
            found[name] = decode(text)
        except InputError:
            found[name] = text
    return found


def _shard(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    first, _, count = value.partition("/")
    if not (first.isdigit() and count.isdigit()):
        raise click.BadParameter("write it as 2/4: the second of four")
    return int(first), int(count)


@click.command(epilog=EXAMPLES)
@click.argument("config", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--bench", "-b", "benches", multiple=True, help="A benchmark's name, file.py or file.py:name.")
@click.option("--task", metavar="FILE.py:FUNCTION", help="A function of your own in place of a model.")
@click.option(
    "--data", help="Rows with input and expected, in place of a benchmark: a file, hf://..., URL/datasets/ID."
)
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    help="With --data: NAME[:option=value,...] or FILE.py:FUNCTION; the first one leads.",
)
@click.option("--name", help="What the run is called; it may differ between runs that are compared.")
@click.option(
    "--metadata", multiple=True, metavar="KEY=VALUE", help="What else is under test, such as a version."
)
@MODEL
@JUDGE
@click.option(
    "--judge-max-tokens",
    type=click.IntRange(1),
    help="Longest reply of the judge, its thinking included.  [default: the rubric's, mostly 1024]",
)
@click.option("--dataset", help="In place of the benchmark's own: a file or hf://org/name?split=...")
@click.option("--sample", is_flag=True, help="Use the few rows that ship with the benchmark.")
@click.option("--system-prompt", help="In place of the benchmark's own.")
@click.option(
    "--repeats", "-n", type=click.IntRange(1), default=1, show_default=True, help="Answers per problem."
)
@click.option("--max-problems", type=click.IntRange(1), help="Maximum number of problems.")
@click.option("--shuffle-seed", type=int, help="Choose them at random with this seed, not the first ones.")
@click.option("--shard", callback=_shard, help="Only the i-th of n parts, as i/n; see `eval merge`.")
@click.option("--temperature", type=click.FloatRange(0), help="Sampling temperature.")
@click.option("--top-p", type=click.FloatRange(0, 1), help="Nucleus sampling.")
@click.option("--max-tokens", type=click.IntRange(1), help="Longest answer, in tokens.")
@click.option(
    "--max-completion-tokens",
    type=click.IntRange(1),
    help="Longest answer and thinking together, as newer models name the limit.",
)
@click.option("--reasoning-effort", help="How long to think, in the endpoint's words: low, medium, high, ...")
@click.option(
    "--extra-body",
    multiple=True,
    metavar="KEY=VALUE",
    help="A further field of every request; VALUE is JSON, or text. Several times for several.",
)
@click.option("--seed", type=int, help="Seed of the sampling; each repeat gets the next number.")
@click.option("--stop", multiple=True, help="Text at which an answer ends; several times for several.")
@click.option("--think-tags", default="think", show_default=True, help=THINK_TAGS_HELP)
@click.option(
    "--concurrency", "-c", type=click.IntRange(1), default=16, show_default=True, help="Calls at a time."
)
@click.option("--sandboxes", type=click.IntRange(1), default=4, show_default=True, help="Programs at a time.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    help="Seconds per request.",
)
@click.option("--tries", type=click.IntRange(1), default=6, show_default=True, help="Requests per call.")
@click.option(
    "--spend-cap-usd",
    type=click.FloatRange(0),
    help="Start no call of model or judge that could cost the run more in sum. Needs the prices.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the results.  [default: eval-results/NAME-TIME]",
)
@click.option(
    "--resume", is_flag=True, help="Continue the run in the folder; finished calls are not repeated."
)
@click.option(
    "--allow-drift", is_flag=True, help="Resume although something that decides the result changed."
)
@click.option(
    "--baseline",
    type=click.Path(exists=True, path_type=Path),
    help="A run to compare with: its folder or results file.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0),
    default=0.05,
    show_default=True,
    help="The drop against it that is tolerated.",
)
@click.option(
    "--stop-when-decided",
    is_flag=True,
    help="Ask in a random order, and stop as soon as the verdict against --baseline is reached.",
)
@click.option("--order-seed", type=int, default=0, show_default=True, help="Seed of that order.")
@click.option(
    "--cache", is_flag=True, help="Take answers from earlier runs to equal questions, and keep new ones."
)
@click.option("--allow-errors", is_flag=True, help="Exit with 0 even when samples could not be measured.")
@click.option("--record", help="Also send the run to a scoring service: its URL, or its SQLite file.")
@click.option("--record-token", help="The service's token; default EVENHAND_TOKEN.")
@click.option("--record-project", default="default", show_default=True, help="The service's project.")
@format_option
@click.pass_context
def run(context: click.Context, /, **_: object) -> int:
    """Run benchmarks: flags for one model, or a YAML CONFIG: prompts and models, or services and benchmarks."""
    options = RunOptions(**context.params)
    if options.config is not None and (suite := _variant_suite(context, options)) is not None:
        from evenhand.cli.suite_run import run_suite

        if options.resume and options.output is None and suite.output is None:
            raise OptionError("--resume needs the folder of the run: -o FOLDER")
        return run_suite(
            suite,
            options.output or suite.output or _new_folder(suite.name),
            lambda planned, path, resume, name: make_run(planned, path, resume, options, title=name),
            resume=Resume(allowed=options.resume, allow_drift=options.allow_drift),
            interrupted=SIGNALS.values(),
            as_json=options.format_ == "json",
        )
    wanted = _planned_runs(context, options)
    if options.record:
        from evenhand.evaluation.connecting import check_target

        check_target(options.record)  # a run of hours must not end with a package that is missing
    resume = Resume(allowed=options.resume, allow_drift=options.allow_drift)
    named = options.output or _suite_output(options)
    if options.resume and named is None:
        raise OptionError("--resume needs the folder of the run: -o FOLDER")
    folder = named or _new_folder(wanted[0].benchmark.name if len(wanted) == 1 else "suite")
    statuses = [0]
    for planned in wanted:
        path = folder if len(wanted) == 1 else folder / (planned.place or planned.benchmark.name)
        status = make_run(planned, path, resume, options)
        statuses.append(status)
        if status in SIGNALS.values():
            break
    return max(statuses)


def _variant_suite(context: click.Context, options: RunOptions) -> "VariantSuite | None":
    """The suite of prompts and models in the file, unless it is one of services and benchmarks."""
    from evenhand.evaluation.suites.dispatch import find_variant_suite

    assert options.config is not None
    found = find_variant_suite(options.config, data=options.data)
    if found is not None:
        if options.stop_when_decided:
            raise OptionError(
                "--stop-when-decided is for one run with a --baseline: the grid of a suite needs every row of every variant"
            )
        _refuse_unused(context, (WITH_CONFIG - SAID_BY_SUITES) | {"data"})
        if options.data is not None and found.tests:
            raise OptionError("--data is not used with promptfoo's files: they have their tests")
    return found


def _planned_runs(context: click.Context, options: RunOptions) -> list[PlannedRun]:
    if options.config is not None:
        if options.benches or options.model_url or options.model_name or options.task or options.data:
            raise OptionError("name a config file, or --bench or --data and a model or a task, not both")
        _refuse_unused(context)
        from evenhand.evaluation.suite import planned_runs, read_suite

        return planned_runs(read_suite(options.config), options.config.resolve().parent)
    if not options.benches and options.data is None:
        raise OptionError("nothing to run: name a benchmark with --bench, rows with --data, or a config file")
    timed = context.get_parameter_source("timeout") is click.core.ParameterSource.COMMANDLINE
    config = options.settings().config(
        options.model() if options.task is None else options.under_test(timed=timed),
        options.judge(),
        name=options.name or "",
        treatment=key_values(options.metadata, "--metadata"),
    )
    return [PlannedRun(benchmark=one, config=config) for one in _benchmarks(options)]


def _benchmarks(options: RunOptions) -> "list[Benchmark]":
    if options.data is None:
        if options.scorers:
            raise OptionError("--scorer goes with --data; a benchmark has its own")
        return [one for spec in options.benches for one in find_benchmarks(spec)]
    if options.benches or options.dataset or options.sample:
        raise OptionError("name rows with --data, or a benchmark with --bench, not both")
    if not options.scorers:
        raise OptionError("--data needs at least one --scorer")
    from evenhand.cli.scorer_spec import parse_scorer
    from evenhand.evaluation.evaluate import item_benchmark
    from evenhand.scoring.functions import make_scorers

    return [item_benchmark(options.data, make_scorers([parse_scorer(one) for one in options.scorers]))]


def _refuse_unused(context: click.Context, used: "Collection[str]" = WITH_CONFIG) -> None:
    """A flag that a config file would silently overrule, a spend cap for one."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in used:
            raise OptionError(f"{parameter.opts[0]} is not used with a config file; set it in the file")


def _suite_output(options: RunOptions) -> Path | None:
    if options.config is None:
        return None
    from evenhand.evaluation.suite import read_suite
    from evenhand.evaluation.suites.dispatch import find_variant_suite

    if (variants := find_variant_suite(options.config, data=options.data)) is not None:
        return variants.output
    named = read_suite(options.config).output
    return options.config.resolve().parent / named if named else None


def _new_folder(name: str) -> Path:
    # The id keeps two runs of the same second apart.
    stamp = format_instant(now())[:19].replace("-", "").replace(":", "").replace("T", "-")
    return Path("eval-results") / f"{name}-{stamp}-{new_id()[-6:]}"


def make_run(
    planned: PlannedRun, path: Path, resume: Resume, options: RunOptions, *, title: str | None = None
) -> int:
    """One run from start to its last word; an error ends this one and leaves the others alone.

    With a `title` it is one of the variants of a suite, which shows them together at its end.
    """
    name = title or planned.benchmark.name
    line = ProgressLine(name)
    try:
        written = asyncio.run(_evaluate(planned, path, resume, line, options))
    except EvenhandError as error:
        line.clear()
        click.echo(f"Error: {printable(name)}: {printable(str(error))}", err=True)
        if isinstance(error, ModelError) and (help_ := _advice(error)):
            click.echo(f"→ {help_}", err=True)
        if (path / ".run" / "journal.jsonl").exists() and not isinstance(error, RunConflict):
            click.echo(
                f"resume with: {resume_command(path if title is None else path.parent, options)}", err=True
            )
        if isinstance(error, Stopped):
            return SIGNALS.get(signal.Signals(int(error.reason)), 1)
        return error.exit_status
    line.clear()
    if title is None:
        _show(written, path, options)
    if options.record:
        from evenhand.cli.eval_record import record_quietly

        record_quietly(path, options.record, options.record_token, options.record_project)
    failed = written.bundle.benchmark.tally.failed if written.bundle.benchmark.tally else 0
    if failed and not options.allow_errors:
        click.echo(
            f"{failed:,} samples could not be measured; try them again with: "
            f"{resume_command(path if title is None else path.parent, options)}",
            err=True,
        )
        return 1
    return 0


def _advice(error: ModelError) -> str:
    from evenhand.evaluation.arbiter import JudgeRejected
    from evenhand.evaluation.causes import advice_for

    return advice_for(error.kind, str(error), judge=isinstance(error, JudgeRejected))


async def _evaluate(
    planned: PlannedRun, path: Path, resume: Resume, line: ProgressLine, options: RunOptions
) -> "Written":
    loop = asyncio.get_running_loop()

    def watch(pipeline: Pipeline) -> None:
        def stop(number: signal.Signals) -> None:
            line.clear()
            click.echo("Stopping: waiting for the calls in flight (again: at once).", err=True)
            pipeline.stop(
                Stopped("interrupted; everything that was finished is kept", reason=str(int(number)))
            )

        for number in SIGNALS:
            loop.add_signal_handler(number, stop, number)

    stop = None
    if options.stop_when_decided:
        if options.baseline is None:
            raise OptionError("--stop-when-decided needs a --baseline to decide against, and a --margin")
        from evenhand.evaluation.stopping import StopRule

        run = read_run(options.baseline)
        stop = StopRule(baseline=run, margin=options.margin, seed=options.order_seed)
    evaluation = Evaluation(
        planned.benchmark,
        planned.config,
        path,
        resume=resume,
        watcher=line,
        on_pipeline=watch,
        load_report=_load_report,
        stop=stop,
    )
    try:
        return await evaluation.run()
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _load_report() -> "ReportWriter":
    from evenhand.reports.rendering import warm_up
    from evenhand.reports.run import run_page

    warm_up()
    return run_page


def _show(written: "Written", path: Path, options: RunOptions) -> None:
    if options.format_ == "json":
        print_json(written.bundle)
        return
    from evenhand.evaluation.summary import summary_text

    click.echo(summary_text(written.bundle, path, written.failures, written.runtime))
    if options.baseline is not None and not options.stop_when_decided:
        from evenhand.evaluation.result import Result

        click.echo(str(Result.load(path).compare(options.baseline, options.margin)))


def resume_command(path: Path, options: RunOptions) -> str:
    """The command that continues this run, without secrets."""
    words: list[str] = []
    skip = False
    for word in sys.argv[1:]:
        if skip or word.partition("=")[0] in SECRET_OPTIONS:
            skip = not skip and "=" not in word
            continue
        words.append(word)
    if not options.resume:
        words.append("--resume")
    if options.output is None and _suite_output(options) is None:
        words += ["-o", str(path)]
    return shlex.join(["evenhand", *words])
