"""What a run is asked to do, and what of it decides its result."""

import platform
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct, to_builtins

from evenhand.benchmarks.definition import Benchmark
from evenhand.core import jsontext
from evenhand.core.errors import OptionError
from evenhand.core.secret import Secret
from evenhand.evaluation.tasks import Task
from evenhand.judging.judgements import PARSER_VERSION
from evenhand.models.address import base_url
from evenhand.models.config import Price, origin
from evenhand.models.reasoning import THINK_TAGS, check_tags
from evenhand.results.by_scorer import FURTHER
from evenhand.scoring.definition import Scorer
from evenhand.scoring.fingerprint import fingerprint, source_text

PACKAGES = ("evenhand", "aiohttp", "msgspec", "numpy", "scipy")


class ServiceSettings(Struct, frozen=True, kw_only=True):
    """What can be said about a model that is called, apart from its key."""

    url: str
    """Up to and including `/v1`."""
    id: str
    """The model's id, as requests name it."""
    dialect: Literal["openai", "anthropic"] = "openai"
    """Which protocol the endpoint speaks."""
    timeout: float = 120.0
    """Seconds for one request."""
    tries: int = 6
    """Requests per call, the first included."""
    requests_per_minute: float | None = None
    """Most requests started in a minute."""
    tokens_per_minute: float | None = None
    """Most tokens started in a minute."""
    spend_cap_usd: float | None = None
    """No call is started that could take the sum past this."""
    input_usd: float | None = None
    """Price of a million tokens of questions, in place of the shipped table."""
    output_usd: float | None = None
    """Price of a million tokens of answers."""
    concurrency: int | None = None
    """Most requests in flight; the run's own when None."""

    def service(self, api_key: Secret | None) -> "Service":
        """The model with its key."""
        names = ServiceSettings.__struct_fields__
        return Service(api_key=api_key, **{name: getattr(self, name) for name in names})


class Service(ServiceSettings, frozen=True, kw_only=True):
    """A model that is called: the one under test, or the judge."""

    api_key: Secret | None = None
    """Never written anywhere."""

    def __post_init__(self) -> None:
        # A password in the address would be written into the plan of the run.
        origin(base_url(self.url))

    @property
    def price(self) -> Price | None:
        """Both prices, or None for the shipped table's."""
        if self.input_usd is None and self.output_usd is None:
            return None
        if self.input_usd is None or self.output_usd is None:
            raise OptionError(f"model '{self.id}': give both prices, input_usd and output_usd")
        return Price(input_usd=self.input_usd, output_usd=self.output_usd)


class Sampling(Struct, frozen=True, kw_only=True):
    """How answers are drawn. What is None is left to the endpoint."""

    temperature: float | None = None
    """Spread of the sampling."""
    top_p: float | None = None
    """Share of the probability mass that is sampled from."""
    max_tokens: int | None = None
    """Longest answer, in tokens."""
    seed: int | None = None
    """Seed of the first repeat; the next ones count up from it, or they would all be the same answer."""
    stop: tuple[str, ...] = ()
    """Texts at which the answer ends."""
    max_completion_tokens: int | None = None
    """Longest answer and thinking together, as newer models name the limit."""
    reasoning_effort: str | None = None
    """How long to think, in the endpoint's words: `low`, `medium`, `high`, ..."""
    extra_body: dict[str, Any] = {}
    """Further fields of every request, as the endpoint names them."""


class Selection(Struct, frozen=True, kw_only=True):
    """Which problems are asked."""

    max_problems: int | None = None
    """At most so many."""
    shuffle_seed: int | None = None
    """Choose them at random with this seed; None takes the first ones."""
    shard: tuple[int, int] | None = None
    """(i, n): of the chosen problems only the i-th of every n, counted from 1."""
    sample: bool = False
    """The rows that ship with the benchmark in place of its dataset."""

    def __post_init__(self) -> None:
        if self.max_problems is not None and self.max_problems < 1:
            raise OptionError("max_problems must be at least 1")
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1]:
            raise OptionError(f"there is no shard {self.shard[0]} of {self.shard[1]}")


class RunConfig(Struct, frozen=True, kw_only=True):
    """One run of one benchmark, by a model or by a task."""

    model: Service | None = None
    """The model under test."""
    task: Task | None = None
    """The function under test, in place of a model."""
    name: str = ""
    """What the run is called; it may differ between runs that are compared."""
    treatment: Mapping[str, Any] = {}
    """What else is known about what is under test, and may differ too: a version, a prompt."""
    judge: Service | None = None
    """The model that judges, where a benchmark needs one."""
    dataset: str | None = None
    """In place of the benchmark's own: `hf://...` or a file."""
    system_prompt: str | None = None
    """In place of the benchmark's own."""
    sampling: Sampling = Sampling()
    """How answers are drawn."""
    selection: Selection = Selection()
    """Which problems are asked."""
    repeats: int = 1
    """Answers per problem."""
    concurrency: int = 16
    """Most calls of the model in flight."""
    sandboxes: int = 4
    """Most programs running at once."""
    spend_cap_usd: float | None = None
    """No call of model or judge is started that could take the sum of the run past this."""
    judge_options: Mapping[str, Any] = {}
    """Fields of the judge's `JudgeScoringConfig`, over those of the benchmark."""
    think_tags: tuple[str, ...] = THINK_TAGS
    """Tags between which answers hold thinking that is not scored: a name, or a pair such as `<a>...</a>`."""
    cache: bool | str = False
    """Take answers that are kept on disk already: from the user's cache, or from the file of this name."""

    def __post_init__(self) -> None:
        check_tags(self.think_tags)
        if (self.model is None) == (self.task is None):
            raise OptionError("a run is of a model or of a task: name one of them")
        if self.sampling.reasoning_effort is not None and self.model and self.model.dialect == "anthropic":
            raise OptionError(
                "reasoning_effort is a parameter of OpenAI-compatible endpoints; for Anthropic's, say what to send "
                "with extra_body"
            )
        try:
            jsontext.encode(dict(self.treatment))
        except (TypeError, ValueError, RecursionError) as error:
            raise OptionError(f"metadata cannot be kept as JSON: {error}") from None
        for name in ("repeats", "concurrency", "sandboxes"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} must be at least 1")


class RunSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be said about a run, apart from its models: by flags, in a suite file or in Python.

    None everywhere means: not said. `over` fills the gaps from more general settings, `config` from the defaults.
    """

    dataset: str | None = None
    """In place of the benchmark's own: `hf://...` or a file."""
    system_prompt: str | None = None
    """In place of the benchmark's own."""
    repeats: int | None = None
    """Answers per problem."""
    max_problems: int | None = None
    """Maximum number of problems."""
    shuffle_seed: int | None = None
    """Choose them at random with this seed; None takes the first ones."""
    shard: tuple[int, int] | None = None
    """(i, n): of the chosen problems only the i-th of every n, counted from 1."""
    sample: bool | None = None
    """The rows that ship with the benchmark in place of its dataset."""
    temperature: float | None = None
    """Spread of the sampling."""
    top_p: float | None = None
    """Share of the probability mass that is sampled from."""
    max_tokens: int | None = None
    """Longest answer, in tokens."""
    seed: int | None = None
    """Seed of the first repeat."""
    stop: tuple[str, ...] | None = None
    """Texts at which the answer ends."""
    max_completion_tokens: int | None = None
    """Longest answer and thinking together, as newer models name the limit."""
    reasoning_effort: str | None = None
    """How long to think, in the endpoint's words: `low`, `medium`, `high`, ..."""
    extra_body: dict[str, Any] | None = None
    """Further fields of every request, as the endpoint names them."""
    concurrency: int | None = None
    """Most calls of the model in flight."""
    sandboxes: int | None = None
    """Most programs running at once."""
    spend_cap_usd: float | None = None
    """No call of model or judge is started that could take the sum of the run past this."""
    judge_options: dict[str, Any] | None = None
    """Fields of the judge's configuration, over those of the benchmark."""
    think_tags: tuple[str, ...] | None = None
    """Tags between which answers hold thinking that is not scored: a name, or a pair such as `<a>...</a>`."""
    cache: bool | str | None = None
    """Take answers that are kept on disk already: from the user's cache, or from the file of this name."""

    def over(self, general: "RunSettings") -> "RunSettings":
        """These settings, and those of `general` where these say nothing."""
        names = RunSettings.__struct_fields__
        return RunSettings(
            **{
                name: getattr(general, name) if getattr(self, name) is None else getattr(self, name)
                for name in names
            }
        )

    def config(
        self,
        subject: Service | Task,
        judge: Service | None = None,
        *,
        name: str = "",
        treatment: Mapping[str, Any] = MappingProxyType({}),
    ) -> "RunConfig":
        """The run that these settings make of a model or a task, and a judge."""
        given = {name: getattr(self, name) for name in RunSettings.__struct_fields__}
        said = {name: value for name, value in given.items() if value is not None}

        def part(kind: type[Any]) -> dict[str, Any]:
            return {name: said[name] for name in kind.__struct_fields__ if name in said}

        return RunConfig(
            model=subject if isinstance(subject, Service) else None,
            task=subject if isinstance(subject, Task) else None,
            name=name,
            treatment=dict(treatment),
            judge=judge,
            sampling=Sampling(**part(Sampling)),
            selection=Selection(**part(Selection)),
            **part(RunConfig),
        )


class PlannedRun(Struct, frozen=True, kw_only=True):
    """One run that is to be made."""

    benchmark: Benchmark
    """What."""
    config: RunConfig
    """How."""
    place: str = ""
    """Its folder within that of several runs; the benchmark's name when empty."""


def digest(value: Any) -> str:
    """One spelling per value, hashed."""
    return sha256(jsontext.canonical(to_builtins(value))).hexdigest()


def source_digest(*functions: Any) -> str:
    """A digest of the functions' source text; of their names where there is no source."""
    return digest(
        [one or "" if one is None or isinstance(one, str) else source_text(one) for one in functions]
    )


def benchmark_hashes(benchmark: Benchmark, config: RunConfig, dataset_sha256: str) -> dict[str, str]:
    """What must be equal for two runs to be comparable, except the model."""
    prompt = benchmark.prompt
    system = benchmark.system_prompt if config.system_prompt is None else config.system_prompt
    shown = source_digest(prompt) if callable(prompt) else digest(prompt)
    found = {
        "benchmark": digest(
            [
                benchmark.name,
                benchmark.version,
                benchmark.target_field,
                dict(benchmark.field_mapping),
                source_digest(benchmark.prepare_row, benchmark.seed_fn),
            ]
        ),
        "dataset": dataset_sha256,
        "prompt": digest(
            [shown, system, [dict(row) for row in benchmark.few_shot], benchmark.few_shot_answer]
        ),
        "scorer": scorer_digest(benchmark.scorer, benchmark, config),
        "sampling": digest(effective_sampling(benchmark, config)),
    }
    for name, one in benchmark.further_scorers.items():
        found[f"{FURTHER}{name}"] = scorer_digest(one, benchmark, config)
    if config.task is not None:
        found["task"] = digest([config.task.label, config.task.fingerprint, dict(config.treatment)])
        del found["sampling"]
        if benchmark.has_items:
            del found["prompt"]
    if config.judge is not None:
        parts = [config.judge.id, benchmark.judge, dict(config.judge_options), PARSER_VERSION]
        found["judge"] = digest(parts)
    return found


def scorer_digest(scorer: Scorer, benchmark: Benchmark, config: RunConfig) -> str:
    """What decides a scorer's grades in this run, hashed."""
    found = digest([fingerprint(scorer), dict(benchmark.extra)])
    return found if config.think_tags == THINK_TAGS else digest([found, config.think_tags])


def effective_sampling(benchmark: Benchmark, config: RunConfig) -> dict[str, Any]:
    """The sampling parameters with the benchmark's own length limit where the run sets none."""
    chosen = to_builtins(config.sampling)
    assert isinstance(chosen, dict)
    if chosen["max_tokens"] is None and chosen["max_completion_tokens"] is None:
        chosen["max_tokens"] = benchmark.max_tokens
    # Newer parameters are named only where they are set: the digests of older runs stay what they were.
    return {name: value for name, value in chosen.items() if value or name not in _NEWER}


_NEWER = ("max_completion_tokens", "reasoning_effort", "extra_body")


def identity(
    benchmark: Benchmark, config: RunConfig, dataset: str, hashes: Mapping[str, str]
) -> dict[str, Any]:
    """Everything that decides the result, flat: what a resumed run must agree with."""
    found: dict[str, Any] = {
        "benchmark": benchmark.name,
        "dataset": dataset,
        "repeats": config.repeats,
        "think tags": config.think_tags,
    }
    if config.model is not None:
        found |= {"model id": config.model.id, "model url": config.model.url}
        for name, value in effective_sampling(benchmark, config).items():
            found[name.replace("_", " ")] = value
    for name in ("max_problems", "shuffle_seed", "shard"):
        found[name.replace("_", " ")] = to_builtins(getattr(config.selection, name))
    if config.judge is not None:
        found["judge id"] = config.judge.id
        found["judge url"] = config.judge.url
    for name, value in hashes.items():
        if name != "sampling":
            found[_content_name(name)] = value
    # As it will be read back: tuples are lists there.
    plain: dict[str, Any] = jsontext.decode(jsontext.encode(found))
    return plain


_CONTENTS = {
    "benchmark": "definition of the benchmark",
    "dataset": "contents of the dataset",
    "prompt": "prompt",
    "scorer": "scorer",
    "judge": "judge's rubric and options",
    "task": "task or its code",
}


def _content_name(aspect: str) -> str:
    if aspect.startswith(FURTHER):
        return f"scorer {aspect.removeprefix(FURTHER)}"
    return _CONTENTS.get(aspect, aspect)


_OF_THE_JUDGE = ("judge id", "judge url", _CONTENTS["judge"])


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], *, judge_may_come: bool = False
) -> list[str]:
    """What changed, in words. `judge_may_come`: only one of the two may have a judge."""
    found = []
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old == new or (judge_may_come and name in _OF_THE_JUDGE and (old is None or new is None)):
            continue
        if name in _CONTENTS.values() or name.startswith("scorer "):
            how = "is new" if old is None else "is gone" if new is None else "changed"
            found.append(f"the {name} {how}")
        else:
            found.append(f"{name} was {_shown(old)} and is now {_shown(new)}")
    return found


def _shown(value: Any) -> str:
    return "not set" if value is None else jsontext.encode_text(value)


def versions() -> dict[str, str]:
    """Versions of Python and the packages that matter."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def environment() -> dict[str, Any]:
    """Where the run takes place; nothing that names a person or a secret."""
    return {"system": platform.system(), "machine": platform.machine(), "release": platform.release()}
