"""lm-evaluation-harness: `results_*.json` with `samples_<task>_*.jsonl` beside it (`--log_samples`).

A task is a run; its scorers are metric and filter together, as in the tool's table (`exact_match,strict`). Of the
several answers that `repeats` asks for, only the filtered one is scored.
"""

import re
from pathlib import Path
from typing import Any

from evenhand.core.errors import InputError
from evenhand.core.outcome import Outcome, Scored, Unscored
from evenhand.integrations.foreign_json import (
    as_dict,
    as_list,
    as_number,
    as_text,
    read_lines,
    read_object,
)
from evenhand.integrations.port import Figure, ImportedRun, ImportedSample

SAMPLES = re.compile(r"^samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT.+)\.jsonl$")
RESULTS = re.compile(r"^results_(?P<time>\d{4}-\d\d-\d\dT.+)\.json$")
RULE = "the mean over all documents; the tool has no failed samples"


class LmEval:
    """The importer."""

    name = "lm-eval"

    def recognises(self, path: Path, head: bytes) -> bool:
        if path.is_dir():
            return any(RESULTS.match(found.name) for found in path.glob("results_*.json"))
        if path.suffix == ".jsonl":
            return b'"doc_id"' in head and b'"filtered_resps"' in head
        return bool(RESULTS.match(path.name)) or b'"lm_eval_version"' in head

    def read(self, path: Path) -> list[ImportedRun]:
        if path.is_dir():
            newest = max(path.glob("results_*.json"), key=lambda found: found.name)
            return self.read(newest)
        if path.suffix == ".jsonl":
            match = SAMPLES.match(path.name)
            task = match["task"] if match else path.stem
            return [_run(task, path, _results_of(path))]
        results = read_object(path)
        match = RESULTS.match(path.name)
        time = match["time"] if match else "*"
        runs = []
        for task in as_dict(results.get("results")):
            beside = path.parent / f"samples_{task}_{time}.jsonl"
            if beside.exists():
                runs.append(_run(str(task), beside, results))
        if not runs:
            raise InputError(
                "no samples beside it: run lm_eval with --log_samples to get samples_*.jsonl", path=path
            )
        return runs


def _results_of(samples: Path) -> dict[str, Any]:
    match = SAMPLES.match(samples.name)
    beside = samples.parent / f"results_{match['time']}.json" if match else None
    return read_object(beside) if beside is not None and beside.exists() else {}


def _run(task: str, path: Path, results: dict[str, Any]) -> ImportedRun:
    samples: dict[str, ImportedSample] = {}
    skipped: set[str] = set()
    lines = list(read_lines(path))
    if not lines:
        raise InputError("there are no samples in it", path=path)
    for number, line in lines:
        key = str(line.get("doc_id"))
        filter_ = str(line.get("filter") or "none")
        known = samples.get(key)
        outcomes: dict[str, Outcome] = dict(known.outcomes) if known else {}
        for metric in as_list(line.get("metrics")):
            name = f"{metric},{filter_}"
            if name in outcomes:
                raise InputError(f"document {key} has two values of {name}", path=path, line=number)
            value = as_number(line.get(str(metric)))
            if value is None and line.get(str(metric)) is not None:
                skipped.add(name)
                outcomes[name] = Unscored(
                    reason="not_a_number", message="the metric has no value per document"
                )
            elif value is None:
                outcomes[name] = Unscored(reason="no_value", message="the file has no value")
            else:
                outcomes[name] = Scored(value=value, extracted=_first(line.get("filtered_resps")))
        samples[key] = ImportedSample(
            item=key,
            input=_prompt(line),
            output=as_text(_first(line.get("resps"))),
            expected=line.get("target"),
            outcomes=outcomes,
            metadata={"doc_hash": line.get("doc_hash"), "doc": line.get("doc")},
        )
    found = list(samples.values())
    figures = _figures(as_dict(as_dict(results.get("results")).get(task)), found)
    config = as_dict(as_dict(results.get("configs")).get(task))
    top = as_dict(results.get("config"))
    return ImportedRun(
        tool="lm-eval",
        name=task,
        treatment={
            "model": results.get("model_name") or top.get("model"),
            "model_args": top.get("model_args"),
            "num_fewshot": as_dict(results.get("n-shot")).get(task),
            "system_instruction": results.get("system_instruction"),
        },
        scorers={
            name: {"version": as_dict(results.get("versions")).get(task), "filter": _filter(config, name)}
            for name in {name for sample in found for name in sample.outcomes}
        },
        samples=found,
        figures=figures,
        unmapped=[f"{name} has no number per document" for name in sorted(skipped)],
    )


def _figures(printed: dict[str, Any], samples: list[ImportedSample]) -> list[Figure]:
    names = {name for sample in samples for name in sample.outcomes}
    figures = []
    for name in sorted(names):
        values = [
            float(outcome.value)
            for sample in samples
            if isinstance(outcome := sample.outcomes.get(name), Scored)
        ]
        again = sum(values) / len(values) if len(values) == len(samples) else None
        figures.append(Figure(name=name, printed=as_number(printed.get(name)), reproduced=again, rule=RULE))
    return figures


def _filter(config: dict[str, Any], name: str) -> Any:
    wanted = name.rpartition(",")[2]
    return next(
        (one for one in map(as_dict, as_list(config.get("filter_list"))) if one.get("name") == wanted), None
    )


def _first(value: Any) -> Any:
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _prompt(line: dict[str, Any]) -> Any:
    arguments = as_dict(line.get("arguments"))
    return as_dict(arguments.get("gen_args_0")).get("arg_0") or line.get("doc")
