"""Several benchmarks in one YAML file, with the services they call."""

from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml
from msgspec import Struct, field

from evenhand import settings
from evenhand.benchmarks.registry import find_benchmarks
from evenhand.core import yamltext
from evenhand.core.errors import InputError, OptionError, UnknownName
from evenhand.core.secret import Secret
from evenhand.evaluation.config import Job, RunConfig, Sampling, Selection, Service


class ServiceEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model under `services`."""

    url: str
    """Up to and including `/v1`."""
    id: str
    """The model's id."""
    api_key: str | None = None
    """Best as `${NAME}`, a variable of the environment."""
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
    """Price of a million tokens of questions."""
    output_usd: float | None = None
    """Price of a million tokens of answers."""
    concurrency: int | None = None
    """Most requests in flight."""


class BenchmarkEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A benchmark under `benchmarks`; what is not set comes from `defaults`."""

    name: str = ""
    """A benchmark's name, `file.py` or `file.py:name`."""
    model: str | None = None
    """The service under test: its key under `services`. Default: `model`, or the only one."""
    judge: str | None = None
    """The service that judges. Default: `judge`."""
    dataset: str | None = None
    """In place of the benchmark's own."""
    system_prompt: str | None = None
    """In place of the benchmark's own."""
    repeats: int | None = None
    """Answers per problem."""
    max_problems: int | None = None
    """At most so many problems."""
    shuffle_seed: int | None = None
    """Choose them at random with this seed."""
    sample: bool | None = None
    """The rows that ship with the benchmark."""
    temperature: float | None = None
    """Spread of the sampling."""
    top_p: float | None = None
    """Share of the probability mass that is sampled from."""
    max_tokens: int | None = None
    """Longest answer, in tokens."""
    seed: int | None = None
    """Seed of the first repeat."""
    stop: list[str] | None = None
    """Texts at which the answer ends."""
    concurrency: int | None = None
    """Most calls in flight."""
    sandboxes: int | None = None
    """Most programs running at once."""
    judge_options: dict[str, Any] | None = None
    """Fields of the judge's configuration."""


class SuiteFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    services: dict[str, ServiceEntry]
    """Models by a name of your own."""
    benchmarks: list[str | BenchmarkEntry]
    """What to run, in this order."""
    defaults: BenchmarkEntry = field(default_factory=BenchmarkEntry)
    """Settings of every benchmark that does not set its own."""
    output: str | None = None
    """The folder of the results."""


def read_suite(path: Path) -> SuiteFile:
    """The file at `path`, with `${NAME}` replaced from the environment."""
    try:
        loaded = yamltext.load(path.read_bytes())
    except OSError as error:
        raise InputError(error.strerror or str(error), path=path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not YAML"
        raise InputError(str(problem), path=path, line=mark.line + 1 if mark else None) from None
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"not YAML: {error}", path=path) from None
    try:
        return msgspec.convert(_expanded(loaded), SuiteFile)
    except msgspec.ValidationError as error:
        raise InputError(str(error), path=path) from None
    except OptionError as error:
        raise InputError(str(error), path=path) from None


def jobs(suite: SuiteFile, home: Path) -> list[Job]:
    """The runs that a suite asks for; paths start from `home`."""
    found: list[Job] = []
    for entry in suite.benchmarks:
        chosen = BenchmarkEntry(name=entry) if isinstance(entry, str) else entry
        if not chosen.name:
            raise OptionError("a benchmark in the list has no name")
        spec = chosen.name
        if ".py" in spec and not Path(spec).is_absolute():
            spec = str(home / spec)
        config = _run_config(suite, chosen, home)
        found += [Job(benchmark=benchmark, config=config) for benchmark in find_benchmarks(spec)]
    if not found:
        raise OptionError("the list of benchmarks is empty")
    names = [job.benchmark.name for job in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise OptionError(f"benchmark '{twice[0]}' is in the list twice; use repeats, or two files")
    return found


def _run_config(suite: SuiteFile, entry: BenchmarkEntry, home: Path) -> RunConfig:
    def setting(name: str, fallback: Any = None) -> Any:
        own, general = getattr(entry, name), getattr(suite.defaults, name)
        return fallback if own is None and general is None else general if own is None else own

    dataset = setting("dataset")
    if dataset is not None and "://" not in dataset:
        dataset = str(home / dataset)
    judge = setting("judge") or ("judge" if "judge" in suite.services else None)
    return RunConfig(
        model=_service(suite, setting("model") or _only_model(suite)),
        judge=_service(suite, judge) if judge else None,
        dataset=dataset,
        system_prompt=setting("system_prompt"),
        sampling=Sampling(
            temperature=setting("temperature"),
            top_p=setting("top_p"),
            max_tokens=setting("max_tokens"),
            seed=setting("seed"),
            stop=tuple(setting("stop", ())),
        ),
        selection=Selection(
            max_problems=setting("max_problems"),
            shuffle_seed=setting("shuffle_seed"),
            sample=bool(setting("sample")),
        ),
        repeats=setting("repeats", 1),
        concurrency=setting("concurrency", 16),
        sandboxes=setting("sandboxes", 4),
        judge_options=setting("judge_options", {}),
    )


def _only_model(suite: SuiteFile) -> str:
    names = [name for name in suite.services if name != "judge"]
    if "model" in names or len(names) != 1:
        return "model"
    return names[0]


def _service(suite: SuiteFile, name: str) -> Service:
    entry = suite.services.get(name)
    if entry is None:
        raise UnknownName("service", name, suite.services)
    values = {key: getattr(entry, key) for key in entry.__struct_fields__ if key != "api_key"}
    return Service(api_key=Secret(entry.api_key) if entry.api_key else None, **values)


def _expanded(value: Any) -> Any:
    if isinstance(value, str):
        return settings.expand(value)
    if isinstance(value, dict):
        return {str(key): _expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    return value
