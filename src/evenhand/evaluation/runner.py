"""One run of one benchmark: plan → generate → score → judge → aggregate → artifacts."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from evenhand.benchmarks.definition import Benchmark
from evenhand.benchmarks.requirements import check_requirements
from evenhand.core.errors import EvenhandError, OptionError, RunConflict
from evenhand.core.ids import new_id
from evenhand.core.timestamps import format_instant, now
from evenhand.datasets.sources import Source, open_source
from evenhand.evaluation.answer_cache import AnswerCache, cache_file
from evenhand.evaluation.arbiter import JudgeArbiter, make_judge
from evenhand.evaluation.config import (
    RunConfig,
    Service,
    benchmark_hashes,
    differences,
    digest,
    effective_sampling,
    environment,
    identity,
    versions,
)
from evenhand.evaluation.folder import FORMAT, Pinned, RunFolder
from evenhand.evaluation.generation import Generator, ModelGenerator
from evenhand.evaluation.journal import Journal, StorageFailed, storage_message
from evenhand.evaluation.lease import Lease
from evenhand.evaluation.ledger import Ledger
from evenhand.evaluation.pipeline import Concurrency, Decided, Pipeline, Watcher
from evenhand.evaluation.planning import ProblemFile, plan
from evenhand.evaluation.scoring_lane import ScoringLane
from evenhand.evaluation.tasks import TaskGenerator
from evenhand.judging.fence import kept_key
from evenhand.models.address import base_url, reachable
from evenhand.models.config import EndpointConfig, RetryPolicy
from evenhand.models.connect import connect
from evenhand.models.endpoint import Endpoint
from evenhand.models.spend import SpendCap

if TYPE_CHECKING:
    from evenhand.evaluation.artifacts import Written
    from evenhand.evaluation.report import ReportWriter
    from evenhand.evaluation.stopping import Stopper, StopRule


class Quiet:
    """Shows nothing."""

    def tick(self, ledger: Ledger) -> None:
        pass


class Resume(Struct, frozen=True, kw_only=True):
    """How to treat a folder that holds a run."""

    allowed: bool = False
    """Continue it; otherwise a folder with a run is refused."""
    allow_drift: bool = False
    """Continue it even though something that decides the result has changed."""


class Evaluation:
    """A run in its folder. `on_pipeline` is told how to stop it.

    `load_report` gives the writer of `report.html`; it is called in a thread while the first answers are awaited, so
    that loading it costs no time. Without it the run leaves no report.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        config: RunConfig,
        folder: Path,
        *,
        resume: Resume | None = None,
        watcher: Watcher | None = None,
        on_pipeline: Callable[[Pipeline], None] = lambda pipeline: None,
        load_report: "Callable[[], ReportWriter] | None" = None,
        stop: "StopRule | None" = None,
    ) -> None:
        self._benchmark = benchmark
        self._config = config
        self._folder = RunFolder(folder)
        self._resume = resume or Resume()
        self._watcher: Watcher = watcher or Quiet()
        self._on_pipeline = on_pipeline
        self._judge_model: Endpoint | None = None
        self._load_report = load_report
        self._stop_rule = stop

    async def run(self) -> "Written":
        """Do it all. What stops it early is raised; what was finished by then is kept and can be resumed."""
        check_requirements(self._benchmark)
        if self._benchmark.judge is not None and self._config.judge is None:
            raise OptionError(
                f"benchmark '{self._benchmark.name}' needs a judge; name one with --judge-url and --judge-id"
            )
        source = self._source()
        await asyncio.gather(
            *(reachable(service.url) for service in (self._config.model, self._config.judge) if service)
        )
        self._folder.create()
        with Lease(self._folder.lock, refusal=f"the run in {self._folder.path} is active"):
            try:
                pinned = self._pin(source)
                problems = ProblemFile(self._folder.problems)
            except OSError as error:
                raise StorageFailed(storage_message(self._folder.path, error)) from None
            except EvenhandError:
                self._folder.discard_if_empty()
                raise
            with contextlib.closing(problems):
                return await self._work(pinned, problems)

    def _source(self) -> Source:
        benchmark = self._benchmark
        if self._config.selection.sample:
            if benchmark.sample is None:
                raise OptionError(f"benchmark '{benchmark.name}' ships no sample rows")
            return open_source(benchmark.sample)
        if self._config.dataset is not None:
            return open_source(self._config.dataset)
        return open_source(benchmark.dataset, home=benchmark.home)

    def _pin(self, source: Source) -> Pinned:
        """Plan the run; an earlier run in the folder must have had the same plan."""
        folder, config, benchmark = self._folder, self._config, self._benchmark
        before = folder.pinned()
        if before is not None and not self._resume.allowed:
            done = "a finished run" if before.finished else "an unfinished run"
            raise RunConflict(
                f"{folder.path} holds {done} of '{before.benchmark}'; continue it with --resume (in Python: resume=True) or name another folder"
            )
        fresh = folder.problems.with_suffix(f".{os.getpid()}.tmp")
        try:
            planned = plan(benchmark, source, config.selection, config.system_prompt, fresh)
            hashes = benchmark_hashes(benchmark, config, planned.dataset_sha256)
            label = "shipped sample" if config.selection.sample else source.label
            found = identity(benchmark, config, label, hashes)
            if before is not None:
                # A benchmark that names no rubric may turn out to need a judge when the run is under way.
                unnamed = benchmark.judge is None
                changes = differences(before.identity, found, judge_may_come=unnamed)
                if changes and not self._resume.allow_drift:
                    raise RunConflict(
                        f"{folder.path} cannot be resumed: {'; '.join(changes)}. Start in another folder, or continue "
                        "anyway with --allow-drift and score all answers alike afterwards with "
                        f"`evenhand eval rescore {folder.path}`"
                    )
                if before.problems == planned.problems and before.repeats == config.repeats:
                    if unnamed and "judge" in hashes and "judge" not in before.hashes:
                        before = replace(before, identity=found, hashes=hashes)
                        folder.pin(before)
                    return before
                raise RunConflict(
                    f"{folder.path} cannot be resumed: the number of problems or repeats changed"
                )
            fresh.replace(folder.problems)
        finally:
            fresh.unlink(missing_ok=True)
        pinned = Pinned(
            format=FORMAT,
            run_id=new_id(),
            started_at=format_instant(now()),
            benchmark=benchmark.name,
            problems=planned.problems,
            repeats=config.repeats,
            identity=found,
            hashes=hashes,
            scorers=named_scorers(benchmark, config),
        )
        folder.pin(pinned)
        return pinned

    async def _work(self, pinned: Pinned, problems: ProblemFile) -> "Written":
        benchmark = self._benchmark
        with contextlib.closing(Journal(self._folder.journal)) as journal:
            ledger = Ledger(journal, pinned.problems * pinned.repeats)
            if pinned.finished:
                ledger.reopen_failed()
                self._folder.pin(replace(pinned, finished=False))
            before = (ledger.done(), ledger.spent.output_tokens)
            # Statistics and plots take a third of a second to load: that happens while answers are waited for.
            loading = asyncio.create_task(asyncio.to_thread(_load_artifacts, self._load_report))
            start = time.monotonic()
            pinned, stopper = self._stopper(pinned, problems, ledger)
            early = stopper is not None and await stopper.decided() is not None
            if ledger.done() < len(ledger) and not early:
                async with contextlib.AsyncExitStack() as stack:
                    pipeline = await self._pipeline(stack, ledger, problems, stopper)
                    self._on_pipeline(pipeline)
                    early = await _run_out(pipeline)
            session = (
                time.monotonic() - start,
                ledger.done() - before[0],
                ledger.spent.output_tokens - before[1],
            )
            artifacts, report = await loading
            judged = benchmark.judge is not None or ledger.any_judged()
            if stopper is not None:
                await stopper.decided()  # a last look, at what was in flight
            facts = artifacts.RunFacts(
                run_id=pinned.run_id,
                started_at=pinned.started_at,
                benchmark=benchmark.name,
                scorers=pinned.scorers,
                config=self._shown_config(pinned, judged=judged, stopper=stopper),
                stopped_early=early,
                # A judge that was never asked decides nothing.
                hashes={name: value for name, value in pinned.hashes.items() if judged or name != "judge"},
                versions=versions(),
                environment=environment(),
            )
            try:
                written: Written = artifacts.write_artifacts(
                    self._folder.path, facts, ledger, problems, pinned.repeats, session, report
                )
            except OSError as error:
                raise StorageFailed(storage_message(self._folder.path, error)) from None
            self._folder.pin(replace(pinned, finished=not early))
            return written

    def _stopper(
        self, pinned: Pinned, problems: ProblemFile, ledger: Ledger
    ) -> "tuple[Pinned, Stopper | None]":
        if self._stop_rule is None:
            return pinned, None
        from evenhand.evaluation.stopping import Stopper

        # The order is drawn once: drawn again after looking at scores, it would not be random.
        seed = self._stop_rule.seed if pinned.order_seed is None else pinned.order_seed
        if pinned.order_seed is None and ledger.done():
            raise RunConflict(
                f"{self._folder.path}: this run was begun in the order of its data, and cannot stop when it is decided; "
                "resume it without that, or begin in another folder"
            )
        rule = replace(self._stop_rule, seed=seed)
        stopper = Stopper(rule, pinned, problems, ledger, ahead=2 * self._config.concurrency)
        pinned = replace(pinned, order_seed=seed)
        self._folder.pin(pinned)
        return pinned, stopper

    def _shown_config(self, pinned: Pinned, *, judged: bool, stopper: "Stopper | None") -> dict[str, Any]:
        found = public_config(self._benchmark, self._config, pinned, judged=judged)
        if pinned.order_seed is not None:
            found["order_seed"] = pinned.order_seed
        if stopper is not None:
            found["stopping"] = to_builtins(stopper.report())
        if judged and self._judge_model is not None and self._judge_model.usage.adjusted:
            found["judge"]["adjusted_parameters"] = self._judge_model.usage.adjusted
        return found

    async def _pipeline(
        self,
        stack: contextlib.AsyncExitStack,
        ledger: Ledger,
        problems: ProblemFile,
        stopper: "Stopper | None",
    ) -> Pipeline:
        config, benchmark = self._config, self._benchmark
        spend = None
        if config.spend_cap_usd is not None:
            spend = SpendCap(config.spend_cap_usd, spent_usd=ledger.spent.cost_usd)
        generator = self._generator(stack, ledger, spend)
        made: list[tuple[Service, Endpoint]] = []

        def connected(service: Service) -> Endpoint:
            """One endpoint for all who ask the same judge, so that its limits hold for them together."""
            for known, endpoint in made:
                if known == service:
                    return endpoint
            endpoint = _connect(service, config, spend)
            stack.push_async_callback(endpoint.aclose)
            made.append((service, endpoint))
            return endpoint

        arbiter = None
        judgements = 1
        if config.judge is not None:
            # Whether a scorer wants the judge is known when it has seen an answer.
            judgements = config.judge.concurrency or config.concurrency
            self._judge_model = judge_model = connected(config.judge)
            try:
                key = kept_key(self._folder.judge_key)
            except OSError as error:
                raise StorageFailed(storage_message(self._folder.judge_key, error)) from None
            arbiter = JudgeArbiter(make_judge(benchmark, config, judge_model, key))
        for one in benchmark.scorers.values():
            if (begin := getattr(one, "begin", None)) is not None:  # a scorer that asks a judge itself
                begin(connected)
        sandbox: Any = None
        if benchmark.uses_sandbox:
            # Loaded here: most runs need no sandbox, and loading it takes as long as a hundred answers.
            from evenhand.scoring.code_execution import open_configured_sandbox

            sandbox = open_configured_sandbox()
            stack.callback(sandbox.close)
        return Pipeline(
            ledger=ledger,
            problems=problems,
            repeats=config.repeats,
            generator=generator,
            lane=ScoringLane(
                benchmark.scorers, options=benchmark.extra, sandbox=sandbox, workers=config.sandboxes
            ),
            arbiter=arbiter,
            concurrency=Concurrency(calls=config.concurrency, judgements=judgements),
            watcher=self._watcher,
            order=None if stopper is None else stopper.places,
            decider=stopper,
        )

    def _generator(
        self, stack: contextlib.AsyncExitStack, ledger: Ledger, spend: SpendCap | None
    ) -> Generator:
        config = self._config
        if config.task is not None:
            path = cache_file(config.cache)
            identity = (config.task.fingerprint, dict(config.treatment), config.think_tags)
            task = TaskGenerator(
                config.task,
                concurrency=config.concurrency,
                think_tags=config.think_tags,
                cache=None if path is None else AnswerCache(path, *identity),
            )
            stack.callback(task.close)
            return task
        assert config.model is not None
        model = _connect(config.model, config, spend)
        stack.push_async_callback(model.aclose)
        return ModelGenerator(
            model,
            sampling=effective_sampling(self._benchmark, config),
            think_tags=config.think_tags,
            has_answered=ledger.spent.calls > 0,
        )


async def _run_out(pipeline: Pipeline) -> bool:
    """Run it to its end; whether that came early because it was decided."""
    try:
        await pipeline.run()
    except Decided:
        return True
    return False


def named_scorers(benchmark: Benchmark, config: RunConfig) -> tuple[str, ...]:
    """The scorers, where every line of the results names them: in runs of tasks, and where there are several."""
    return tuple(benchmark.scorers) if config.task is not None or benchmark.further_scorers else ()


def _load_artifacts(load_report: "Callable[[], ReportWriter] | None") -> "tuple[Any, ReportWriter | None]":
    from evenhand.evaluation import artifacts

    artifacts.warm_up()
    return artifacts, None if load_report is None else load_report()


def _connect(service: Service, config: RunConfig, spend: SpendCap | None) -> Endpoint:
    return connect(
        EndpointConfig(
            base_url=base_url(service.url),
            model=service.id,
            api_key=service.api_key,
            dialect=service.dialect,
            timeout=service.timeout,
            retry=RetryPolicy(tries=service.tries),
            concurrency=service.concurrency or config.concurrency,
            requests_per_minute=service.requests_per_minute,
            tokens_per_minute=service.tokens_per_minute,
            spend_cap_usd=service.spend_cap_usd,
            price=service.price,
            cache_path=cache_file(config.cache),
        ),
        spend=spend,
    )


def public_config(benchmark: Benchmark, config: RunConfig, pinned: Pinned, *, judged: bool) -> dict[str, Any]:
    """What was asked for, without secrets."""

    def shown(service: Service) -> dict[str, Any]:
        return {name: getattr(service, name) for name in service.__struct_fields__ if name != "api_key"}

    found: dict[str, Any] = {
        "benchmark": benchmark.name,
        "benchmark_version": benchmark.version,
        "dataset": pinned.identity.get("dataset"),
        "problems": pinned.problems,
        "repeats": pinned.repeats,
        "selection": to_builtins(config.selection),
        "prompt": None if callable(benchmark.prompt) else to_builtins(benchmark.prompt),
        "system_prompt": benchmark.system_prompt if config.system_prompt is None else config.system_prompt,
        "scorer": benchmark.scorer.identity,
        "think_tags": list(config.think_tags),
        "concurrency": config.concurrency,
    }
    if config.name:
        found["name"] = config.name
    if config.model is not None:
        found["model"] = shown(config.model)
        found["sampling"] = effective_sampling(benchmark, config)
    treated: dict[str, Any] = {"run": config.name} if config.name else {}
    if config.task is not None:
        found["task"] = {"name": config.task.label, "timeout": config.task.timeout}
        treated |= {"task": config.task.label, "code": digest(config.task.fingerprint)[:12]}
    treated |= dict(config.treatment)
    if treated:
        found["treatment"] = treated
    if named := named_scorers(benchmark, config):
        found["scorers"] = {name: benchmark.scorers[name].identity for name in named}
    if config.judge is not None and judged:
        found["judge"] = shown(config.judge)
        found["judge_options"] = dict(config.judge_options)
    return found
