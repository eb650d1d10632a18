"""`evaluate(data, task, scorers)`: a function of the user's on the same pipeline as `evenhand eval run`."""

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from evenhand.benchmarks.definition import Benchmark
from evenhand.core.errors import InputError, OptionError
from evenhand.core.secret import Secret
from evenhand.datasets.sources import GivenRows
from evenhand.evaluation.config import RunConfig, Service
from evenhand.evaluation.model_names import locate
from evenhand.evaluation.pipeline import Watcher
from evenhand.evaluation.progress import ProgressLine
from evenhand.evaluation.result import Result, baseline_run
from evenhand.evaluation.runner import Evaluation, Quiet, Resume
from evenhand.evaluation.tasks import Task
from evenhand.scoring.functions import make_scorers
from evenhand.scoring.registry import Scorer

if TYPE_CHECKING:
    from evenhand.evaluation.stopping import StopRule

Data = str | Path | Iterable[Mapping[str, Any]]
"""Rows with `input`, `expected` and `metadata`: a list of dicts, a JSONL, CSV or Parquet file, `hf://org/name?split=`,
a data frame, or a dataset of a scoring service as `URL/datasets/ID`."""
AnyTask = Callable[..., Any] | Callable[..., Awaitable[Any]]
"""A plain or an async function of an item's `input`."""
AnyScorer = str | Scorer | Callable[..., Any]
"""A scorer's name, a scorer, or a function of `input, output, expected, metadata`."""
Scorers = AnyScorer | Sequence[Any] | Mapping[str, Any]
"""One of them, several, or several by name (checkers infer `object` for a list of different functions)."""
P = ParamSpec("P")
UNNAMED = "evaluation"
"""What data without a name is called."""


async def aevaluate(
    data: Data,
    task: AnyTask,
    scorers: Scorers,
    *,
    name: str | None = None,
    repeats: int = 1,
    concurrency: int = 16,
    timeout: float | None = None,  # noqa: ASYNC109  of every call of the task, not of this one
    metadata: Mapping[str, Any] | None = None,
    baseline: Result | str | Path | None = None,
    margin: float = 0.05,
    folder: str | Path | None = None,
    resume: bool = False,
    cache: bool | str | Path = False,
    judge: "str | Mapping[str, Any] | Service | None" = None,
    seed: int = 0,
    stop_when_decided: bool = False,
    progress: bool = True,
) -> Result:
    """Call `task` on every item of `data` and score what it returns.

    `name` is the run's own and may differ between runs that are compared, as may `metadata` (an application's
    version, a prompt). With a `folder` every finished step is on disk at once, and `resume=True` continues a run that
    was stopped without repeating a finished call. A task that raises or takes longer than `timeout` seconds is a
    failure of that sample, with its message; never a zero. A `baseline` (a result, or the folder of one) gives
    `.verdicts`, with `margin` as the drop that would be tolerated.

    With `stop_when_decided` the items are asked in a random order that `seed` draws, and the run ends as soon as a drop
    of more than `margin` is ruled out on every scorer, or proven on one; `.stopping` says what that saved.
    `cache=True` (or a file) takes answers of earlier runs of the same code to the same input and repeat.

    `evaluate` is for callers that are not async. Inside a running event loop, as in a notebook, it does the work in
    another thread and waits for it; `await aevaluate(...)` does not hold the loop up, and calls async tasks in the loop
    itself.
    """
    if resume and folder is None:
        raise OptionError("resume needs the folder of the run: evaluate(..., folder='out', resume=True)")
    before = (
        None if baseline is None else baseline_run(baseline)
    )  # a mistake in it is found before the first call
    if stop_when_decided and before is None:
        raise OptionError("stop_when_decided needs a baseline, and a margin")
    stop = None
    if stop_when_decided and before is not None:
        from evenhand.evaluation.stopping import StopRule

        stop = StopRule(baseline=before, margin=margin, seed=seed)
    service, rubric, options = _judge(judge)
    benchmark = item_benchmark(data, make_scorers(scorers), judge=rubric)
    config = RunConfig(
        task=Task(function=task, timeout=timeout),
        name=name or "",
        treatment=dict(metadata or {}),
        cache=str(cache) if isinstance(cache, Path) else cache,
        judge=service,
        judge_options=options,
        repeats=repeats,
        concurrency=concurrency,
    )
    line = ProgressLine(name or benchmark.name) if progress else None
    with _place(folder) as path:
        result = await run_in(benchmark, config, path, resume=Resume(allowed=resume), watcher=line, stop=stop)
    if line is not None:
        line.clear()
    if folder is None:
        result.forget_folder()
    if baseline is not None and stop is None:
        result.verdicts = result.compare(baseline, margin)
    return result


def _waited_for(function: Callable[P, Coroutine[Any, Any, Result]], name: str) -> Callable[P, Result]:
    """`function` for callers that are not async, with its parameters: stated once, so that the two cannot differ."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        def run() -> Result:
            return asyncio.run(function(*args, **kwargs))

        return _in_thread(run) if _in_loop() else run()

    call.__name__ = call.__qualname__ = name
    return call


evaluate = _waited_for(aevaluate, "evaluate")
"""Call a task on every item and score what it returns: `aevaluate` for callers that are not async."""


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def run_in(
    benchmark: Benchmark,
    config: RunConfig,
    folder: Path,
    *,
    resume: Resume | None = None,
    watcher: Watcher | None = None,
    stop: "StopRule | None" = None,
) -> Result:
    """Run a benchmark, of a model or of a task, in a folder, and read back what it came to."""
    evaluation = Evaluation(benchmark, config, folder, resume=resume, watcher=watcher or Quiet(), stop=stop)
    await evaluation.run()
    return Result.load(folder)


def item_benchmark(
    data: Data, scorers: Mapping[str, Scorer], *, name: str | None = None, judge: Any = None
) -> Benchmark:
    """Rows of items and the scorers of a task as a benchmark; the first scorer's numbers are the headline."""
    rows, found = _rows(data)
    (first, headline), *further = scorers.items()
    return Benchmark(
        name=name or found,
        dataset=rows,
        scorer=headline if headline.name == first else headline.renamed(first),
        further_scorers=dict(further),
        judge=judge,
    )


def _rows(data: Data) -> tuple[str | Path | GivenRows, str]:
    """The rows, and what they are called: runs are compared only when that is the same."""
    if isinstance(data, str) and "://" in data and not data.startswith("hf://"):
        return _service_rows(data)
    if isinstance(data, str | Path):
        text = str(data)
        stem = (
            text.removeprefix("hf://").partition("?")[0].replace("/", "-") if text.startswith("hf://") else ""
        )
        return data, stem or Path(text).name.partition(".")[0] or UNNAMED
    for method in ("to_dicts", "to_dict"):  # data frames of polars and pandas
        if hasattr(data, "columns") and hasattr(data, method):
            found = getattr(data, method)(*(["records"] if method == "to_dict" else []))
            return GivenRows(found), UNNAMED
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise OptionError(f"data is a list of dicts or a file, not {type(data).__name__}")
    return GivenRows(list(data)), UNNAMED


def _service_rows(address: str) -> tuple[GivenRows, str]:
    from evenhand import settings
    from evenhand.client.addresses import split_address
    from evenhand.client.service import ServiceClient

    found = split_address(address, "datasets")
    if found is None:
        raise OptionError(
            f"'{address}' is not a dataset: write URL/datasets/ID, a file, or hf://org/name?split=..."
        )
    url, identifier = found
    with ServiceClient(url, settings.load().token) as client:
        rows = [
            {
                "input": item["input"],
                "expected": item.get("expected_output"),
                "metadata": {**(item.get("metadata") or {}), "id": item["id"]},
            }
            for item in client.dataset_items(identifier)
        ]
    if not rows:
        raise InputError("the dataset has no items", path=address)
    return GivenRows(rows, label=f"{url}/datasets/{identifier}"), f"dataset-{identifier}"


def _judge(given: "str | Mapping[str, Any] | Service | None") -> tuple[Service | None, Any, dict[str, Any]]:
    """The judge, its rubric, and options over the rubric's."""
    if given is None or isinstance(given, Service):
        return given, None, {}
    wanted: dict[str, Any] = {"model": given} if isinstance(given, str) else dict(given)
    rubric: Any = wanted.pop("rubric", None)
    options: Any = wanted.pop("options", {})
    key = wanted.pop("api_key", None)
    secret = Secret(key) if isinstance(key, str) else key
    try:
        if "model" in wanted:
            found = locate(str(wanted.pop("model")), api_key=secret, general_key="EVENHAND_JUDGE_API_KEY")
            wanted |= {"url": found.url, "id": found.id, "dialect": found.dialect}
            secret = found.api_key
        return Service(api_key=secret, **wanted), rubric, options
    except TypeError as error:
        raise OptionError(
            f"judge: {error}; it takes model, or url and id, and rubric, options, api_key"
        ) from None


@contextlib.contextmanager
def _place(folder: str | Path | None) -> Iterator[Path]:
    if folder is not None:
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory(prefix="evenhand-") as scratch:
        yield Path(scratch) / "run"


def _in_thread(run: Callable[[], Result]) -> Result:
    found: list[Result] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(run())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="evenhand-evaluate", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
