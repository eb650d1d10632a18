"""`promptfooconfig.yaml` as a suite: what it says without JavaScript; a key that is not supported is named."""

import json
import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from evenhand.benchmarks.definition import Benchmark, ProblemMaker
from evenhand.benchmarks.items import is_conversation
from evenhand.core.errors import InputError, OptionError
from evenhand.datasets.rows import read_rows
from evenhand.datasets.sources import GivenRows
from evenhand.evaluation.config import PlannedRun, RunSettings, Service
from evenhand.evaluation.model_names import locate
from evenhand.evaluation.suites.built_in_models import echo_task
from evenhand.evaluation.suites.promptfoo_assertions import (
    ROW,
    TYPES,
    asks_judge,
    check_assertion,
    js_text,
    tests_scorer,
)
from evenhand.evaluation.suites.reading import check_keys, inside, key_of, load_yaml, mapping, read_text, text
from evenhand.evaluation.suites.row_scorers import Reviewer
from evenhand.evaluation.suites.variants import Variant, VariantSuite, check_folders, slug, variant_names
from evenhand.evaluation.tasks import Task

TOP = (
    "$schema", "description", "prompts", "providers", "targets", "tests", "defaultTest", "evaluateOptions", "tags",
    "metadata", "outputPath", "sharing",
)  # fmt: skip
SILENT = ("outputPath", "sharing")
"""Known, and without effect here: said so."""
TEST = ("description", "vars", "assert", "threshold", "options", "metadata")
TEST_OPTIONS = ("provider", "disableVarExpansion")
EVALUATE = {"maxConcurrency": "concurrency", "repeat": "repeats", "showProgressBar": None, "cache": None}
PROVIDER = ("id", "label", "config")
CONFIG = {
    "temperature": "temperature", "max_tokens": "max_tokens", "top_p": "top_p", "seed": "seed", "stop": "stop",
    "max_completion_tokens": "max_completion_tokens", "reasoning_effort": "reasoning_effort",
    "apiBaseUrl": None, "apiKeyEnvar": None,
}  # fmt: skip
KINDS = {
    "openai": "openai", "anthropic": "anthropic", "ollama": "ollama", "openrouter": "openrouter", "groq": "groq",
    "mistral": "mistral", "google": "gemini", "togetherai": "together",
}  # fmt: skip
"""promptfoo's names of providers, and ours."""
MODES = ("chat", "messages")
TARGET = "promptfoo expected"
MAX_TESTS = 100_000
_PLACE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_EXPECTED = re.compile(r"(not-)?([a-z-]+)(?:\(([0-9.]+)\))?(?::\s*(.*))?", re.DOTALL)


def read_promptfoo(path: Path) -> VariantSuite:
    """The suite of a file of promptfoo's."""
    try:
        return _Reader(mapping(load_yaml(path), "the file"), path.resolve().parent, path.stem).suite()
    except InputError as error:
        if error.path is None:
            raise InputError(error.reason, path=path) from None
        raise
    except OptionError as error:
        raise InputError(str(error), path=path) from None


class _Reader:
    def __init__(self, given: dict[str, Any], home: Path, stem: str) -> None:
        check_keys(given, TOP, "promptfoo's file (not supported here)")
        self._given = given
        self._home = home
        self._name = slug(stem)

    def suite(self) -> VariantSuite:
        given = self._given
        default = mapping(given.get("defaultTest") or {}, "defaultTest")
        check_keys(default, TEST, "defaultTest (not supported here)")
        rows, judge = self._rows(default)
        reviewer = None if judge is None else Reviewer(judge)
        prompts = self._prompts()
        columns = {name for row in rows for name in row}
        models = self._models()
        scorer = tests_scorer(reviewer)
        run = self._run_settings()
        pairs = [(prompt, model) for prompt in prompts for model in models]
        found = []
        for name, (prompt, model) in zip(variant_names(pairs), pairs, strict=True):
            subject, own = models[model]
            template, asked = prompts[prompt]
            filled = [{**dict.fromkeys(asked - columns, ""), **_filled(row, asked)} for row in rows]
            benchmark = Benchmark(
                name=self._name,
                dataset=GivenRows(filled, label="tests"),
                scorer=scorer,
                prompt=template,
                target_field=TARGET,
            )
            ProblemMaker(benchmark)
            config = own.over(run).config(subject, None, name=name, treatment={"prompt name": prompt})
            found.append(
                Variant(
                    name=name,
                    prompt=prompt,
                    model=model,
                    planned=PlannedRun(benchmark=benchmark, config=config),
                )
            )
        check_folders(found)
        notes = [f"'{key}' of the file has no effect here" for key in SILENT if key in given]
        return VariantSuite(name=self._name, variants=found, tests=True, notes=notes)

    def _run_settings(self) -> RunSettings:
        options = mapping(self._given.get("evaluateOptions") or {}, "evaluateOptions")
        check_keys(options, tuple(EVALUATE), "evaluateOptions (not supported here)")
        said = {ours: options[theirs] for theirs, ours in EVALUATE.items() if ours and theirs in options}
        return _settings(said, "evaluateOptions")

    # Prompts

    def _prompts(self) -> dict[str, tuple[Any, set[str]]]:
        given = self._given.get("prompts")
        entries = [given] if isinstance(given, str) else given
        if not isinstance(entries, list) or not entries:
            raise OptionError("prompts must be a list of texts and files")
        found: dict[str, tuple[Any, set[str]]] = {}
        for number, entry in enumerate(entries, 1):
            where = f"prompt {number}"
            label = None
            if isinstance(entry, dict):
                check_keys(entry, ("id", "label", "raw"), f"{where} (not supported here)")
                label = entry.get("label")
                entry_text = text(entry.get("raw", entry.get("id")), where)
            else:
                entry_text = text(entry, where)
            for part, raw in enumerate(self._texts(entry_text, where), 1):
                name = str(label or f"prompt-{number}") + (f".{part}" if part > 1 else "")
                if name in found:
                    raise OptionError(f"two prompts are called '{name}'")
                found[name] = _prompt(raw, where)
        return found

    def _texts(self, given: str, where: str) -> list[str]:
        is_file = given.startswith("file://") or (
            "\n" not in given and re.fullmatch(r"[^{}]+\.(txt|md|json|ya?ml|j2|js|cjs|mjs|ts|py|csv)", given)
        )
        if not is_file:
            return [given]
        name = given.removeprefix("file://")
        if not name.endswith((".txt", ".md", ".json", ".yaml", ".yml", ".j2")) or "*" in name:
            raise OptionError(
                f"{where}: '{given}' is not supported here; a prompt is a text, or one file of text or JSON"
            )
        path = inside(self._home, name, where)
        if path.suffix in (".yaml", ".yml"):
            return [json.dumps(load_yaml(path))]
        content = read_text(path)
        if path.suffix != ".txt":
            return [content.strip()]
        return [part.strip() for part in re.split(r"^---\s*$", content, flags=re.MULTILINE) if part.strip()]

    # Providers

    def _models(self) -> dict[str, tuple[Service | Task, RunSettings]]:
        given = self._given.get("providers", self._given.get("targets"))
        entries = [given] if isinstance(given, str | dict) else given
        if not isinstance(entries, list) or not entries:
            raise OptionError("providers must be a list, such as [openai:gpt-4o-mini] or [echo]")
        found: dict[str, tuple[Service | Task, RunSettings]] = {}
        for entry in entries:
            name, made, sampling = _provider(entry)
            if name in found:
                raise OptionError(f"two providers are called '{name}'; give one a label")
            found[name] = (made, sampling)
        return found

    # Tests

    def _rows(self, default: dict[str, Any]) -> tuple[list[dict[str, Any]], Service | None]:
        rows: list[dict[str, Any]] = []
        judges: dict[str, Any] = {}
        for number, test in enumerate(self._tests(), 1):
            where = f"test {number}"
            check_keys(test, TEST, f"{where} (not supported here)")
            options = {
                **mapping(default.get("options") or {}, "defaultTest: options"),
                **mapping(test.get("options") or {}, f"{where}: options"),
            }
            check_keys(options, TEST_OPTIONS, f"{where}: options (not supported here)")
            assertions = [
                check_assertion(one, f"{where}, assertion {place}")
                for place, one in enumerate([*_list(default, "assert"), *_list(test, "assert")], 1)
            ]
            for grader in _graders(assertions, options.get("provider")):
                judges[json.dumps(grader, sort_keys=True, default=str)] = grader
            given = {
                **mapping(default.get("vars") or {}, "defaultTest: vars"),
                **self._vars(test.get("vars"), where),
            }
            threshold = test.get("threshold", default.get("threshold"))
            for chosen in _combinations(given, expand=not options.get("disableVarExpansion")):
                values = _resolved({name: self._value(one, where) for name, one in chosen.items()})
                said = [_rendered(one, values, self._home) for one in assertions]
                # In prompts, and only there, promptfoo leaves out a line break at the end of a value.
                asked = {name: one.removesuffix("\n") for name, one in values.items()}
                row: dict[str, Any] = {**asked, ROW: {"assert": said}, TARGET: None}
                if threshold is not None:
                    row[ROW]["threshold"] = threshold
                rows.append(row)
                if len(rows) > MAX_TESTS:
                    raise OptionError(f"more than {MAX_TESTS:,} tests")
        if len(judges) > 1:
            raise OptionError("llm-rubric: one judge for the whole file; two providers are named")
        if not judges:
            return rows, None
        grader = next(iter(judges.values()))
        if grader is None:
            raise OptionError(
                "llm-rubric needs a judge: name it under defaultTest: {options: {provider: openai:gpt-4o}}"
            )
        _, service, _ = _provider(grader)
        if not isinstance(service, Service):
            raise OptionError("llm-rubric: the judge must be a model")
        return rows, service

    def _tests(self) -> list[dict[str, Any]]:
        given = self._given.get("tests")
        if given is None:
            return [{}]
        found: list[dict[str, Any]] = []
        for entry in [given] if isinstance(given, str) else given if isinstance(given, list) else [None]:
            if isinstance(entry, str):
                found += self._test_file(entry)
            else:
                found.append(mapping(entry, "a test"))
        return found

    def _test_file(self, name: str) -> list[dict[str, Any]]:
        plain = name.removeprefix("file://")
        if "*" in plain or "://" in plain or not plain.endswith((".csv", ".yaml", ".yml", ".json", ".jsonl")):
            raise OptionError(
                f"tests: '{name}' is not supported here; tests are in one CSV, YAML, JSON or JSONL file"
            )
        path = inside(self._home, plain, "tests")
        if path.suffix == ".csv":
            return [_csv_test(row.values, f"{plain}, line {row.line}") for row in read_rows(path)]
        if path.suffix == ".jsonl":
            return [mapping(row.values, plain) for row in read_rows(path)]
        loaded = load_yaml(path)
        return [mapping(one, plain) for one in (loaded if isinstance(loaded, list) else [loaded])]

    def _vars(self, given: Any, where: str) -> dict[str, Any]:
        if isinstance(given, str):
            return mapping(load_yaml(inside(self._home, given.removeprefix("file://"), where)), where)
        return mapping(given or {}, f"{where}: vars")

    def _value(self, value: Any, where: str) -> Any:
        if not isinstance(value, str) or not value.startswith("file://"):
            return value
        name = value.removeprefix("file://")
        if "*" in name or name.endswith((".js", ".cjs", ".mjs", ".ts", ".py", ".pdf")):
            raise OptionError(
                f"{where}: '{value}' is not supported here; a variable is a text or one file of text"
            )
        path = inside(self._home, name, where)
        if path.suffix in (".yaml", ".yml"):
            return js_text(load_yaml(path))
        return read_text(path).strip()


def _list(given: Mapping[str, Any], key: str) -> list[Any]:
    found = given.get(key) or []
    if not isinstance(found, list):
        raise OptionError(f"'{key}' must be a list; a file of assertions is not supported here")
    return found


def _graders(assertions: list[dict[str, Any]], usual: Any) -> list[Any]:
    return [
        found
        for one in assertions
        for found in (
            _graders(one["assert"], usual)
            if one["type"] == "assert-set"
            else [one.get("provider", usual)]
            if asks_judge([one])
            else []
        )
    ]


def _combinations(given: Mapping[str, Any], *, expand: bool) -> list[dict[str, Any]]:
    """Every combination of the values of lists of texts, the last variable first to change."""
    values = [
        value if expand and isinstance(value, list) and value and isinstance(value[0], str) else [value]
        for value in given.values()
    ]
    return [dict(zip(given, one, strict=True)) for one in product(*values)]


def _resolved(values: Mapping[str, Any]) -> dict[str, str]:
    """Values as texts, with the variables within them filled in."""
    found = {name: js_text(value) for name, value in values.items()}

    def fill(match: re.Match[str]) -> str:
        return found.get(match.group(1), match.group())

    for _ in range(5):  # what promptfoo does: variables within variables, and no further
        found.update({name: _PLACE.sub(fill, value) for name, value in found.items()})
    return found


def _rendered(assertion: dict[str, Any], values: Mapping[str, str], home: Path) -> dict[str, Any]:
    kept = {key: one for key, one in assertion.items() if key not in ("provider", "metric")}
    if "assert" in assertion:
        return {**kept, "assert": [_rendered(one, values, home) for one in assertion["assert"]]}
    value = assertion.get("value")
    if isinstance(value, list):
        kept["value"] = [_text_value(one, values, home) for one in value]
    elif isinstance(value, str):
        kept["value"] = _text_value(value, values, home)
    return kept


def _text_value(value: Any, values: Mapping[str, str], home: Path) -> Any:
    if not isinstance(value, str):
        return value
    if value.startswith("file://"):
        name = value.removeprefix("file://")
        if not name.endswith((".txt", ".md", ".json", ".yaml", ".yml")):
            raise OptionError(
                f"assertion: '{value}' is not supported here; only files of text, JSON and YAML are read"
            )
        path = inside(home, name, "assertion")
        return read_text(path).strip() if path.suffix in (".txt", ".md") else load_yaml(path)
    return _render(value, values)


def _render(template: str, values: Mapping[str, str]) -> str:
    _check_template(template)
    return _PLACE.sub(lambda match: values.get(match.group(1), ""), template)


def _check_template(template: str) -> None:
    if "{%" in template or "{#" in template:
        raise OptionError(f"templates with {{% and {{# are not supported here: {template[:80]!r}")
    for match in _PLACE.finditer(template):
        if not _NAME.fullmatch(match.group(1)):
            raise OptionError(f"'{match.group()}' is not supported here; {{{{name}}}} of a variable is")


def _filled(row: Mapping[str, Any], asked: set[str]) -> dict[str, Any]:
    return {**dict.fromkeys(asked - row.keys(), ""), **row}


def _prompt(raw: str, where: str) -> tuple[Any, set[str]]:
    """The prompt as our template, and the variables that it names."""
    _check_template(raw)
    names = {match.group(1) for match in _PLACE.finditer(raw)}
    try:
        parsed = json.loads(raw) if raw.lstrip().startswith("[") else None
    except ValueError:
        parsed = None
    if parsed is not None and is_conversation(parsed):
        for one in parsed:
            check_keys(one, ("role", "content"), f"{where} (not supported here)")
        return _converted(parsed), names
    return _converted(raw), names


def _converted(value: Any) -> Any:
    """`{{name}}` as `{name}`, and every other brace as a brace."""
    if isinstance(value, str):
        made, place = [], 0
        for match in _PLACE.finditer(value):
            made += [_braces(value[place : match.start()]), "{" + match.group(1) + "}"]
            place = match.end()
        return "".join([*made, _braces(value[place:])])
    if isinstance(value, list):
        return [_converted(one) for one in value]
    return {key: _converted(one) for key, one in value.items()} if isinstance(value, dict) else value


def _braces(given: str) -> str:
    return given.replace("{", "{{").replace("}", "}}")


def _provider(entry: Any) -> tuple[str, Service | Task, RunSettings]:
    if isinstance(entry, str):
        entry = {"id": entry}
    entry = mapping(entry, "a provider")
    if "id" not in entry and len(entry) == 1:
        identifier, rest = next(iter(entry.items()))
        entry = {"id": identifier, **mapping(rest or {}, "a provider")}
    check_keys(entry, PROVIDER, "provider (not supported here)")
    identifier = text(entry.get("id"), "provider: id")
    name = str(entry.get("label") or identifier)
    where = f"provider '{name}'"
    config = mapping(entry.get("config") or {}, where)
    if "apiKey" in config:
        raise OptionError(f"{where}: apiKey: a file holds no keys; name the variable with apiKeyEnvar")
    check_keys(config, tuple(CONFIG), f"{where}, config (not supported here)")
    sampling = _settings({ours: config[key] for key, ours in CONFIG.items() if ours and key in config}, where)
    if identifier == "echo":
        return name, echo_task(name), sampling
    kind, _, model = identifier.partition(":")
    mode, _, rest = model.partition(":")
    model = rest if mode in MODES and rest else model
    if kind not in KINDS or not model:
        raise OptionError(
            f"{where} is not supported here (supported: echo, {', '.join(f'{one}:MODEL' for one in KINDS)})"
        )
    if kind == "openai":  # what promptfoo sends where the file says nothing
        limit = {} if "max_completion_tokens" in config else {"max_tokens": 1024}
        sampling = sampling.over(_settings({"temperature": 0.0, **limit}, where))
    key = key_of(config.get("apiKeyEnvar"), where)
    if "apiBaseUrl" in config:
        return name, Service(url=text(config["apiBaseUrl"], where), id=model, api_key=key), sampling
    located = locate(f"{KINDS[kind]}/{model}", api_key=key)
    service = Service(url=located.url, id=located.id, dialect=located.dialect, api_key=located.api_key)
    return name, service, sampling


def _settings(given: Mapping[str, Any], where: str) -> RunSettings:
    try:
        return msgspec.convert(dict(given), RunSettings)
    except msgspec.ValidationError as error:
        raise OptionError(f"{where}: {error}") from None


def _csv_test(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A line of a CSV file: columns are variables, `__expected` is an assertion."""
    found: dict[str, Any] = {"vars": {}, "assert": []}
    for column, value in row.items():
        shown = js_text(value)
        if re.fullmatch(r"__expected\d*", column):
            if shown.strip():
                found["assert"].append(_expectation(shown.strip(), where))
        elif column in ("__description", "__threshold"):
            if shown.strip():
                found[column[2:]] = float(shown) if column == "__threshold" else shown
        elif column.startswith("__"):
            raise OptionError(f"{where}: the column '{column}' is not supported here")
        else:
            found["vars"][column] = shown
    return found


def _expectation(given: str, where: str) -> dict[str, Any]:
    if re.match(r"(fn|eval|javascript|python|ruby|file)\b.*:", given):
        raise OptionError(f"{where}: '{given[:60]}' is not supported here: no code is run")
    given = re.sub(r"^grade:", "llm-rubric:", given)
    match = _EXPECTED.fullmatch(given)
    if match is None or match.group(2) not in TYPES:
        return {"type": "equals", "value": given}
    negated, kind, threshold, value = match.groups()
    if value is None and kind not in ("is-json", "contains-json", "latency", "cost"):
        return {"type": "equals", "value": given}
    found: dict[str, Any] = {"type": f"{negated or ''}{kind}"}
    if threshold is not None:
        found["threshold"] = float(threshold)
    if value:
        found["value"] = (
            [part.strip() for part in value.split(",")] if kind.endswith(("-any", "-all")) else value.strip()
        )
    return found
