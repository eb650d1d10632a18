"""Several benchmarks in one YAML file, with the services they call."""

from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from evenhand import settings
from evenhand.benchmarks.registry import find_benchmarks
from evenhand.core import yamltext
from evenhand.core.errors import InputError, MissingFile, OptionError, UnknownName
from evenhand.core.secret import Secret
from evenhand.evaluation.config import PlannedRun, RunConfig, RunSettings, Service, ServiceSettings
from evenhand.evaluation.model_names import locate
from evenhand.evaluation.suites.variants import slug


class ServiceEntry(ServiceSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model under `services`: `model: openai/gpt-4o`, or `url` and `id`."""

    url: str = ""
    """Up to and including `/v1`."""
    id: str = ""
    """The model's id, as requests name it."""
    model: str | None = None
    """PROVIDER/MODEL in place of address and id."""
    api_key: str | None = None
    """Best as `${NAME}`, a variable of the environment."""


class BenchmarkEntry(RunSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A benchmark under `benchmarks`; what is not set comes from `defaults`."""

    name: str = ""
    """A benchmark's name, `file.py` or `file.py:name`."""
    model: str | None = None
    """The service under test: its key under `services`. Default: `model`, or the only one."""
    judge: str | None = None
    """The service that judges. Default: `judge`."""


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
        raise MissingFile(error.strerror or str(error), path=path) from None
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


def planned_runs(suite: SuiteFile, home: Path) -> list[PlannedRun]:
    """The runs that a suite asks for; paths start from `home`."""
    found: list[PlannedRun] = []
    for entry in suite.benchmarks:
        chosen = BenchmarkEntry(name=entry) if isinstance(entry, str) else entry
        if not chosen.name:
            raise OptionError("a benchmark in the list has no name")
        spec = chosen.name
        if ".py" in spec and not Path(spec).is_absolute():
            spec = str(home / spec)
        config = _run_config(suite, chosen, home)
        found += [PlannedRun(benchmark=benchmark, config=config) for benchmark in find_benchmarks(spec)]
    if not found:
        raise OptionError("the list of benchmarks is empty")
    names = [run.benchmark.name for run in found]
    placed = [
        run if names.count(run.benchmark.name) == 1 else replace(run, place=_place(run)) for run in found
    ]
    places = [run.place for run in placed if run.place]
    twice = sorted({name for name in places if places.count(name) > 1})
    if twice:
        raise OptionError(
            f"benchmark '{twice[0]}' is in the list twice with one model; use repeats, or two files"
        )
    return placed


def _place(run: PlannedRun) -> str:
    """The folder of a benchmark that several models are put to."""
    assert run.config.model is not None
    return f"{run.benchmark.name}-{slug(run.config.model.id)}"


def _run_config(suite: SuiteFile, entry: BenchmarkEntry, home: Path) -> RunConfig:
    chosen = entry.over(suite.defaults)
    if chosen.dataset is not None and "://" not in chosen.dataset:
        chosen = replace(chosen, dataset=str(home / chosen.dataset))
    model = entry.model or suite.defaults.model or _only_model(suite)
    judge = entry.judge or suite.defaults.judge or ("judge" if "judge" in suite.services else None)
    return chosen.config(_service(suite, model), _service(suite, judge) if judge else None)


def _only_model(suite: SuiteFile) -> str:
    names = [name for name in suite.services if name != "judge"]
    if "model" in names or len(names) != 1:
        return "model"
    return names[0]


def _service(suite: SuiteFile, name: str) -> Service:
    entry = suite.services.get(name)
    if entry is None:
        raise UnknownName("service", name, suite.services)
    key = Secret(entry.api_key) if entry.api_key else None
    if entry.model is not None:
        if entry.url or entry.id:
            raise OptionError(f"service '{name}': give model, or url and id, not both")
        found = locate(entry.model, api_key=key)
        return replace(entry, url=found.url, id=found.id, dialect=found.dialect).service(found.api_key)
    if not entry.url or not entry.id:
        raise OptionError(f"service '{name}' needs url and id, or model: PROVIDER/MODEL")
    return entry.service(key)


def _expanded(value: Any) -> Any:
    if isinstance(value, str):
        return settings.expand(value)
    if isinstance(value, dict):
        return {str(key): _expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    return value
