"""Judging the answers in a file: rows in, judgements out, resumable; `evenhand judge score`."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from msgspec import Struct

from evenhand.core import jsontext
from evenhand.core.errors import InputError, OptionError, OutputError
from evenhand.core.sample import response_text
from evenhand.datasets import read_rows
from evenhand.evaluation.lease import Lease
from evenhand.evaluation.score_file import was_cut_off
from evenhand.judging.pipeline import JudgeProgress
from evenhand.judging.rewards import judge_results, waits_for_judge
from evenhand.judging.rubric_files import make_judge
from evenhand.metrics.intervals import NoSpread, mean_interval
from evenhand.metrics.types import Interval
from evenhand.models.address import reachable
from evenhand.models.config import EndpointConfig
from evenhand.models.connect import connect
from evenhand.models.counters import EndpointCounters
from evenhand.models.reasoning import THINK_TAGS, split_reasoning
from evenhand.results.records import SampleError, SampleResult
from evenhand.results.writing import JsonlFile

RESPONSE_FIELDS = ("model_response", "response", "output", "answer")
TARGET_FIELDS = ("expected_answer", "target", "expected_output", "reference")

Key = tuple[int, int]
"""Problem and repeat."""
Listener = Callable[[SampleResult, JudgeProgress], None]
"""Is told every judgement as it comes."""


class JudgeFile(Struct, frozen=True, kw_only=True):
    """What to judge, by whom, and where the judgements go."""

    answers: Path
    """Rows with responses: JSONL, CSV or Parquet."""
    endpoint: EndpointConfig
    """Where the judge is."""
    rubric: str = "default"
    """A rubric's name or file."""
    concurrency: int = 32
    """Calls at a time."""
    output: Path | None = None
    """The file of judged samples."""
    resume: bool = False
    """Keep the judgements that the output has and judge the rest."""
    think_tags: tuple[str, ...] = THINK_TAGS
    """Tags of thinking that the judge is not shown."""


class Judged(Struct, frozen=True, kw_only=True):
    """What came of it."""

    samples: int
    """Rows of the file."""
    scored: int
    """With a score."""
    unscored: int
    """Without one, on purpose."""
    failed: int
    """Without one, for a failure."""
    without_score: dict[str, int]
    """Those without a score, by reason."""
    truncated: int
    """Answers that were cut off, at the token limit or inside their thinking."""
    injection_suspected: int
    """Answers that may try to steer the judge."""
    kept_from_earlier: int
    """Judgements of an earlier run that were kept."""
    mean_reward: Interval | None
    """Over the scored samples; None where there is no spread to estimate from."""
    judge: str
    """The judge's identity."""
    usage: EndpointCounters
    """What was asked of the endpoint now."""


def judge_file(wanted: JudgeFile, start: Callable[[int], AbstractContextManager[Listener]]) -> Judged:
    """Judge what is left to judge and write the output if there is one. `start` is told how many are left."""
    samples = read_samples(wanted.answers, wanted.think_tags)
    output = wanted.output
    if wanted.resume and output is None:
        raise OptionError("--resume needs --output")
    with _held(output) if output is not None else nullcontext():
        if output is not None and not wanted.resume:
            _partial(output).unlink(missing_ok=True)
        done = _finished(output, samples) if wanted.resume and output is not None else {}
        judged, usage, identity = asyncio.run(_judge(wanted, samples, done, start))
        if output is not None:
            with JsonlFile(output) as file:
                for sample in judged:
                    file.write(sample)
            _partial(output).unlink(missing_ok=True)
    return _summary(judged, usage, identity, kept=len(done))


def _held(output: Path) -> AbstractContextManager[object]:
    """Keeps other commands off the output and the judgements beside it; makes its folder."""
    file = output.resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{output}: cannot be written: {error.strerror}") from None
    return Lease(
        file.with_name(f".{file.name}.lock"),
        refusal=f"{output} is being written by another `evenhand judge score`",
        remove=True,
    )


def read_samples(path: Path, tags: Sequence[str] = THINK_TAGS) -> list[SampleResult]:
    """The file's rows as samples that wait for the judge; those whose response is null have no score."""
    waiting = SampleError(kind="needs_judge", message="a judge has to score this sample")
    nothing = SampleError(kind="no_response", message="the sample has no response")
    samples: dict[Key, SampleResult] = {}
    for number, row in enumerate(read_rows(path)):
        values = dict(row.values)
        response = _first(values, RESPONSE_FIELDS)
        if response is None and not values.keys() & set(RESPONSE_FIELDS):
            names = ", ".join(RESPONSE_FIELDS)
            raise InputError(f"the row has no response; it may be called {names}", path=path, line=row.line)
        metadata = values.get("metadata") if isinstance(values.get("metadata"), dict) else {}
        rest = {k: v for k, v in values.items() if k not in (*RESPONSE_FIELDS, *TARGET_FIELDS, "metadata")}
        index = values.get("problem_idx", number)
        repeat = values.get("repeat", 0)
        key = (index if isinstance(index, int) else number, repeat if isinstance(repeat, int) else 0)
        if key in samples:
            raise InputError(f"duplicate entry: problem {key[0]}, repeat {key[1]}", path=path, line=row.line)
        split = split_reasoning(response_text(response) or "", tags)
        samples[key] = SampleResult(
            problem_idx=key[0],
            repeat=key[1],
            model_response=None if response is None else split.answer,
            reasoning=split.reasoning,
            truncated=split.unclosed or was_cut_off({**rest, **(metadata or {})}),
            expected_answer=_first(values, TARGET_FIELDS),
            metadata={**rest, **(metadata or {})},
            status="unscored",
            error=nothing if response is None else waiting,
        )
    if not samples:
        raise InputError("the file has no rows", path=path)
    return list(samples.values())


def _first(values: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)


def _partial(output: Path) -> Path:
    """Where judgements are noted as they come."""
    return output.with_name(output.name + ".partial")


def _finished(output: Path, samples: list[SampleResult]) -> dict[Key, SampleResult]:
    """The judgements of an earlier, perhaps interrupted, run; failures and changed samples are judged again."""
    found: dict[Key, SampleResult] = {}
    wanted = {(sample.problem_idx, sample.repeat): _judged_part(sample) for sample in samples}
    for path in (output, _partial(output)):
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


def _judged_part(sample: SampleResult) -> bytes:
    """What a judgement is about."""
    return jsontext.canonical([sample.model_response, sample.expected_answer, sample.metadata])


class JudgementJournal:
    """The file beside the output that takes each judgement as it comes; nothing without an output."""

    def __init__(self, output: Path | None) -> None:
        self._file = _partial(output).open("a+b") if output is not None else None
        if self._file is not None and self._file.tell():
            self._file.seek(-1, 2)
            if self._file.read(1) != b"\n":
                # A line that was cut short must not take the next judgement with it.
                self._file.write(b"\n")

    def __enter__(self) -> "JudgementJournal":
        return self

    def write(self, sample: Any) -> None:
        """One more judgement."""
        if self._file is not None:
            self._file.write(jsontext.encode(sample) + b"\n")
            self._file.flush()

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _check_identity(identity: str, done: dict[Key, SampleResult]) -> None:
    """Refuse to put the judgements of two judges into one file."""
    earlier = {s.scoring_details["judge"]["identity"] for s in done.values() if "judge" in s.scoring_details}
    if earlier - {identity}:
        raise OptionError(
            "the judgements in the output come from another judge (model, rubric or parameters differ); "
            "choose another output"
        )


async def _judge(
    wanted: JudgeFile,
    samples: list[SampleResult],
    done: dict[Key, SampleResult],
    start: Callable[[int], AbstractContextManager[Listener]],
) -> tuple[list[SampleResult], EndpointCounters, str]:
    model = connect(wanted.endpoint)
    left = [sample for sample in samples if (sample.problem_idx, sample.repeat) not in done]
    try:
        judge = make_judge(wanted.rubric, model)
        _check_identity(judge.identity, done)
        waiting = sum(map(waits_for_judge, left))
        if waiting:
            await reachable(wanted.endpoint.base_url)
        with start(waiting) as listener, JudgementJournal(wanted.output) as journal:

            def heard(result: SampleResult, state: JudgeProgress) -> None:
                journal.write(result)
                listener(result, state)

            fresh = await judge_results(judge, left, concurrency=wanted.concurrency, on_result=heard)
    finally:
        await model.aclose()
    by_key = {**done, **{(sample.problem_idx, sample.repeat): sample for sample in fresh}}
    return [by_key[sample.problem_idx, sample.repeat] for sample in samples], model.usage, judge.identity


def _summary(judged: list[SampleResult], usage: EndpointCounters, identity: str, *, kept: int) -> Judged:
    rewards = [sample.reward for sample in judged if sample.reward is not None]
    kinds = Counter(
        getattr(sample.error, "kind", "unknown") for sample in judged if sample.status != "scored"
    )
    flagged = sum(
        "injection_suspected" in s.scoring_details.get("judge", {}).get("flags", ()) for s in judged
    )
    return Judged(
        samples=len(judged),
        scored=len(rewards),
        unscored=sum(sample.status == "unscored" for sample in judged),
        failed=sum(sample.status == "failed" for sample in judged),
        without_score=dict(kinds),
        truncated=sum(sample.truncated for sample in judged),
        injection_suspected=flagged,
        kept_from_earlier=kept,
        mean_reward=_mean(rewards),
        judge=identity,
        usage=usage,
    )


def _mean(rewards: list[float]) -> Interval | None:
    try:
        return mean_interval(rewards) if len(rewards) > 1 else None
    except NoSpread:
        return None
