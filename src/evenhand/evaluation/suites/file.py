"""`evenhand.yaml`: prompts × models × rows × scorers. Data only: no code, no environment, no file outside the folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from evenhand.benchmarks.definition import Benchmark, ProblemMaker
from evenhand.benchmarks.items import EXPECTED_FIELDS, is_conversation
from evenhand.benchmarks.registry import find_benchmarks
from evenhand.compare.policy import Policy, parse_policy
from evenhand.core.errors import InputError, OptionError
from evenhand.core.jsontext import encode_text
from evenhand.datasets.sources import GivenRows, open_source
from evenhand.evaluation.config import PlannedRun, RunSettings, Service, ServiceSettings
from evenhand.evaluation.model_names import locate
from evenhand.evaluation.suites.built_in_models import echo_task, mock_task
from evenhand.evaluation.suites.reading import check_keys, inside, key_of, load_yaml, mapping, read_text, text
from evenhand.evaluation.suites.row_scorers import (
    CHECKS,
    JUDGE,
    ROW_KEY,
    Reviewer,
    checks_scorer,
    row_checks,
    suite_scorers,
)
from evenhand.evaluation.suites.variants import (
    Variant,
    VariantSuite,
    check_folders,
    chosen_baseline,
    matches,
    variant_names,
)
from evenhand.evaluation.tasks import Task
from evenhand.judging.config import JudgeScoringConfig
from evenhand.judging.rubrics import RUBRICS
from evenhand.scoring.definition import Scorer
from evenhand.scoring.judge import needs_judge

SAMPLING = (
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "reasoning_effort", "extra_body", "seed", "stop",
)  # fmt: skip
RUN = (
    "repeats",
    "max_problems",
    "shuffle_seed",
    "concurrency",
    "spend_cap_usd",
    "cache",
    "think_tags",
    *SAMPLING,
)
TOP = (
    "name", "description", "data", "benchmark", "prompts", "models", "scorers", "examples", "judge", "baseline",
    "margin", "policy", "matrix", "output", *RUN,
)  # fmt: skip
SERVICE = tuple(name for name in ServiceSettings.__struct_fields__)
MODEL = ("name", "model", "mock", "key", *SERVICE, *SAMPLING)
JUDGE_KEYS = ("model", "key", "rubric", "options", *SERVICE)
PROMPT = ("name", "text", "file", "messages", "system", "examples")
DATA = ("file", "expected", "rows")
EXPECTED = "expected"


def read_variant_suite(path: Path, *, data: str | None = None) -> VariantSuite:
    """The suite of a file; `data` names rows in place of the file's own, wherever they are."""
    loaded = load_yaml(path)
    try:
        return _Reader(mapping(loaded, "a suite"), path.resolve().parent, path.stem).suite(data)
    except InputError as error:
        if error.path is None:
            raise InputError(error.reason, path=path) from None
        raise
    except (OptionError, msgspec.ValidationError) as error:
        raise InputError(str(error), path=path) from None


class _Reader:
    def __init__(self, given: dict[str, Any], home: Path, stem: str) -> None:
        check_keys(given, TOP, "the suite")
        self._given = given
        self._home = home
        self._name = str(given.get("name") or stem)
        if not self._name or any(c in self._name for c in "/\\\0") or self._name.startswith("."):
            raise OptionError(f"'{self._name}' cannot name a suite: it becomes part of file names")

    def suite(self, data: str | None) -> VariantSuite:
        given = self._given
        judge, rubric, options = self._judge()
        benchmarks = self._benchmarks(data, judge, rubric)
        models = self._models()
        general = _settings({name: given[name] for name in RUN if name in given}, "the suite")
        general = replace(general, judge_options=options or None)
        pairs = [(prompt, model) for prompt in benchmarks for model in models]
        included = self._include(benchmarks, models)
        names = variant_names([*pairs, *((one["prompt"], one["model"]) for one in included)])
        found = []
        for place, usual in enumerate(names):
            extra = included[place - len(pairs)] if place >= len(pairs) else None
            prompt, model = (extra["prompt"], extra["model"]) if extra else pairs[place]
            subject, own = models[model]
            if extra:
                own = _settings({key: extra[key] for key in SAMPLING if key in extra}, "include").over(own)
            name = str(extra["name"]) if extra else usual
            treatment: dict[str, Any] = {"prompt name": prompt} if prompt else {}
            config = own.over(general).config(subject, judge, name=name, treatment=treatment)
            planned = PlannedRun(benchmark=benchmarks[prompt], config=config)
            found.append(Variant(name=name, prompt=prompt, model=model, planned=planned))
        found = self._without_excluded(found, len(pairs))
        check_folders(found)
        output = given.get("output")
        return VariantSuite(
            name=self._name,
            variants=found,
            baseline=chosen_baseline(given.get("baseline"), found, self._home),
            margin=self._margin(),
            policy=self._policy(),
            output=None if output is None else self._home / text(output, "output"),
        )

    def _margin(self) -> float:
        margin = self._given.get("margin", 0.05)
        if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin < 1e9:
            raise OptionError("margin is a number from 0 up: the drop that would be tolerated")
        return float(margin)

    def _policy(self) -> Policy | None:
        given = self._given.get("policy")
        if given is None:
            return None
        if "margin" in self._given:
            raise OptionError("name a margin or a policy, not both: a policy has limits of its own")
        if isinstance(given, str):
            path = inside(self._home, given, "policy")
            return parse_policy(read_text(path), path)
        return parse_policy(encode_text(mapping(given, "policy")))

    # What is asked

    def _benchmarks(
        self, data: str | None, judge: Service | None, rubric: JudgeScoringConfig | None
    ) -> dict[str, Benchmark]:
        """One per prompt, by the prompt's name."""
        given = self._given
        if "benchmark" in given:
            for key in ("data", "prompts", "scorers", "examples"):
                if key in given:
                    raise OptionError(f"a benchmark has its own {key}: leave out 'benchmark' or '{key}'")
            name = text(given["benchmark"], "benchmark")
            if ".py" in name:
                raise OptionError(
                    "a suite file runs no code: 'benchmark' is the name of a built-in or installed one"
                )
            return dict.fromkeys([""], find_benchmarks(name)[0])
        rows, label = self._rows(data)
        scorers = suite_scorers(given["scorers"]) if "scorers" in given else {}
        reviewer = None if judge is None else Reviewer(judge)
        if JUDGE not in scorers and rubric is not None:
            scorers[JUDGE] = needs_judge.renamed(JUDGE)
        if any(ROW_KEY in row for row in rows):
            scorers[CHECKS] = checks_scorer(reviewer if _asks_judge(rows) else None)
            if _asks_judge(rows) and judge is None:
                raise OptionError("a row asks the judge, and the suite names none: add judge: {model: ...}")
        if not scorers:
            raise OptionError("no scorer: name at least one under 'scorers', or in the rows")
        if JUDGE in scorers and judge is None:
            raise OptionError("the scorer 'judge' needs a judge: add judge: {model: ..., rubric: ...}")
        found = {
            name: self._benchmark(prompt, rows, label, scorers, rubric if JUDGE in scorers else None)
            for name, prompt in self._prompts().items()
        }
        for name, one in found.items():
            try:
                ProblemMaker(one)
            except OptionError as error:
                raise OptionError(f"prompt '{name}': {error}") from None
        return found

    def _benchmark(
        self,
        prompt: dict[str, Any],
        rows: list[dict[str, Any]],
        label: str,
        scorers: Mapping[str, Scorer],
        rubric: JudgeScoringConfig | None,
    ) -> Benchmark:
        (_, headline), *further = scorers.items()
        examples = prompt["examples"] if "examples" in prompt else self._given.get("examples", [])
        if not isinstance(examples, list) or not all(isinstance(one, dict) for one in examples):
            raise OptionError("examples must be a list of rows with 'expected'")
        shots = [_row(one, None, f"example {number}") for number, one in enumerate(examples, 1)]
        if any(one[EXPECTED] is None for one in shots):
            raise OptionError("an example needs 'expected': the answer that it shows")
        return Benchmark(
            name=self._name,
            dataset=GivenRows(rows, label=label),
            scorer=headline,
            further_scorers=dict(further),
            prompt=prompt["prompt"],
            system_prompt=prompt["system"],
            target_field=EXPECTED,
            few_shot=shots,
            judge=rubric,
        )

    def _rows(self, data: str | None) -> tuple[list[dict[str, Any]], str]:
        given: Any = self._given.get("data") if data is None else None
        column: str | None = None
        if isinstance(given, dict):
            check_keys(given, DATA, "data")
            column = given.get("expected")
            if ("file" in given) == ("rows" in given):
                raise OptionError("data: name 'file' or 'rows'")
            given = given.get("file", given.get("rows"))
        if data is None and given is None:
            raise OptionError("no data: list rows under 'data', or name a file")
        if isinstance(given, list):
            rows, label = given, "rows of the suite"
        else:
            named = data if data is not None else text(given, "data")
            if data is None and "://" not in named:
                named, label = str(inside(self._home, named, "data")), named
            else:
                label = named
            rows = [row.values for row in open_source(named).rows()]
        found = [_row(one, column, f"data, row {number}") for number, one in enumerate(rows, 1)]
        if not found:
            raise OptionError("data: there are no rows")
        return found, label

    def _prompts(self) -> dict[str, dict[str, Any]]:
        given = self._given.get("prompts")
        entries: list[tuple[str | None, Any]]
        if isinstance(given, dict):
            entries = [(str(name), one) for name, one in given.items()]
        elif isinstance(given, list) and given:
            entries = [(None, given)] if is_conversation(given) else [(None, one) for one in given]
        elif isinstance(given, str):
            entries = [(None, given)]
        else:
            raise OptionError("no prompts: list at least one under 'prompts'")
        found: dict[str, dict[str, Any]] = {}
        for number, (name, entry) in enumerate(entries, 1):
            made = self._prompt(entry, f"prompt {name or number}")
            chosen = str(name or made.pop("name", None) or f"prompt-{number}")
            if chosen in found:
                raise OptionError(f"two prompts are called '{chosen}'")
            found[chosen] = made
        return found

    def _prompt(self, entry: Any, where: str) -> dict[str, Any]:
        if isinstance(entry, str):
            return {"prompt": text(entry, where), "system": ""}
        if isinstance(entry, list):
            return {"prompt": _messages(entry, where), "system": ""}
        entry = mapping(entry, where)
        check_keys(entry, PROMPT, where)
        ways = [key for key in ("text", "file", "messages") if key in entry]
        if len(ways) != 1:
            raise OptionError(f"{where}: give one of text, file and messages")
        if ways[0] == "file":
            path = inside(self._home, text(entry["file"], where), where)
            made: Any = read_text(path).strip()
            if path.suffix in (".json", ".yaml", ".yml"):
                made = _messages(load_yaml(path), where)
        else:
            made = text(entry["text"], where) if ways[0] == "text" else _messages(entry["messages"], where)
        kept = {key: entry[key] for key in ("name", "examples") if key in entry}
        return {"prompt": made, "system": str(entry.get("system") or ""), **kept}

    # Who answers

    def _models(self) -> dict[str, tuple[Service | Task, RunSettings]]:
        given = self._given.get("models")
        entries: list[tuple[str | None, Any]]
        if isinstance(given, dict):
            entries = [(str(name), one) for name, one in given.items()]
        elif isinstance(given, list) and given:
            entries = [(None, one) for one in given]
        elif isinstance(given, str):
            entries = [(None, given)]
        else:
            raise OptionError("no models: list at least one under 'models', such as openai/gpt-4o or mock")
        found: dict[str, tuple[Service | Task, RunSettings]] = {}
        for name, given_entry in entries:
            plain = isinstance(given_entry, str)
            entry = {"model": given_entry} if plain else mapping(given_entry, f"model {name or ''}")
            where = f"model '{name or entry.get('name') or entry.get('model') or entry.get('id') or 'mock'}'"
            check_keys(entry, MODEL, where)
            chosen = str(name or entry.get("name") or entry.get("model") or entry.get("id") or "mock")
            if chosen in found:
                raise OptionError(f"two models are called '{chosen}'; give one a name")
            sampling = _settings({key: entry[key] for key in SAMPLING if key in entry}, where)
            found[chosen] = (_subject(entry, chosen, where), sampling)
        return found

    def _judge(self) -> tuple[Service | None, JudgeScoringConfig | None, dict[str, Any]]:
        given = self._given.get("judge")
        if given is None:
            return None, None, {}
        entry = {"model": given} if isinstance(given, str) else mapping(given, "judge")
        check_keys(entry, JUDGE_KEYS, "judge")
        rubric = entry.get("rubric")
        options = mapping(entry.get("options") or {}, "judge: options")
        check_keys(options, JudgeScoringConfig.__struct_fields__, "judge: options")
        config: JudgeScoringConfig | None = None
        if isinstance(rubric, str):
            config = RUBRICS.get(rubric) or JudgeScoringConfig(rubric_template=rubric)
        elif rubric is not None:
            fields = mapping(rubric, "judge: rubric")
            check_keys(fields, JudgeScoringConfig.__struct_fields__, "judge: rubric")
            config = msgspec.convert(fields, JudgeScoringConfig)
        service = _subject(
            {key: entry[key] for key in entry if key not in ("rubric", "options")}, "judge", "judge"
        )
        if not isinstance(service, Service):
            raise OptionError(
                "judge: the mock cannot judge; name a model, or the address of `evenhand mock-model`"
            )
        return service, config, options

    # Which pairs

    def _include(self, prompts: Mapping[str, Any], models: Mapping[str, Any]) -> list[dict[str, Any]]:
        matrix = mapping(self._given.get("matrix") or {}, "matrix")
        check_keys(matrix, ("include", "exclude"), "matrix")
        found = []
        for entry in _entries(matrix, "include", ("prompt", "model", "name", *SAMPLING)):
            made = {"prompt": next(iter(prompts)), "model": next(iter(models)), **entry}
            for key, known in (("prompt", prompts), ("model", models)):
                if made[key] not in known:
                    raise OptionError(
                        f"matrix: include: no {key} is called '{made[key]}' (there are: {', '.join(known)})"
                    )
            if not made.get("name"):
                raise OptionError("matrix: a variant under 'include' needs a name")
            found.append(made)
        return found

    def _without_excluded(self, variants: list[Variant], product: int) -> list[Variant]:
        """Of the product of prompts and models; what is included by name stays."""
        excluded = _entries(
            mapping(self._given.get("matrix") or {}, "matrix"), "exclude", ("prompt", "model")
        )
        for entry in excluded:
            if not any(matches(one, entry) for one in variants[:product]):
                raise OptionError(f"matrix: exclude: no variant is {entry}")
        kept = [one for one in variants[:product] if not any(matches(one, entry) for entry in excluded)]
        kept += variants[product:]
        if not kept:
            raise OptionError("matrix: every variant is excluded")
        return kept


def _entries(matrix: Mapping[str, Any], key: str, known: tuple[str, ...]) -> list[dict[str, Any]]:
    given = matrix.get(key) or []
    if not isinstance(given, list):
        raise OptionError(f"matrix: {key} must be a list")
    found = [mapping(one, f"matrix: {key}") for one in given]
    for one in found:
        check_keys(one, known, f"matrix: {key}")
        if not one:
            raise OptionError(f"matrix: {key}: an entry names a prompt or a model")
    return found


def _subject(entry: Mapping[str, Any], name: str, where: str) -> Service | Task:
    """The model that an entry describes."""
    model = entry.get("model")
    ways = [key for key in ("model", "mock", "url") if key in entry]
    if len(ways) != 1:
        raise OptionError(f"{where}: give one of model (PROVIDER/MODEL), url (with id), and mock")
    if "mock" in entry or model == "mock":
        return mock_task(name, entry.get("mock"), where)
    if model == "echo":
        return echo_task(name)
    key = key_of(entry.get("key"), where)
    said = {field: entry[field] for field in SERVICE if field in entry}
    if model is not None:
        found = locate(text(model, where), api_key=key)
        said |= {"url": found.url, "id": found.id, "dialect": found.dialect}
        key = found.api_key
    elif "id" not in entry:
        raise OptionError(f"{where}: 'url' needs 'id', the model's id")
    try:
        return msgspec.convert(said, ServiceSettings).service(key)
    except msgspec.ValidationError as error:
        raise OptionError(f"{where}: {error}") from None


def _settings(given: Mapping[str, Any], where: str) -> RunSettings:
    try:
        return msgspec.convert(dict(given), RunSettings)
    except msgspec.ValidationError as error:
        raise OptionError(f"{where}: {error}") from None


def _messages(given: Any, where: str) -> list[dict[str, Any]]:
    if not is_conversation(given):
        raise OptionError(f"{where}: messages are a list of {{role: ..., content: ...}}")
    for one in given:
        check_keys(one, ("role", "content"), where)
    return [dict(one) for one in given]


def _row(given: Any, column: str | None, where: str) -> dict[str, Any]:
    row = mapping(given, where)
    if ROW_KEY in row:
        if row[ROW_KEY] in (None, "", []):
            del row[ROW_KEY]
        else:
            row_checks(row[ROW_KEY], where)
    if column is not None and column not in row:
        raise OptionError(f"{where}: there is no column '{column}' (there are: {', '.join(row)})")
    name = column or next((one for one in EXPECTED_FIELDS if one in row), None)
    return {**row, EXPECTED: None if name is None else row[name]}


def _asks_judge(rows: list[dict[str, Any]]) -> bool:
    return any(
        check.scorer is None for row in rows if ROW_KEY in row for check in row_checks(row[ROW_KEY], "a row")
    )
