"""Inspect AI: logs as JSON or in the `.eval` form, a zip of JSON members.

Letters are numbers as Inspect reads them: C is 1, P is 0.5, I and N are 0. A sample that raised has an error and no
scores: a failure here. Inspect leaves it out of its means and reduces the epochs of a sample to one value first.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, mode
from typing import Any

from evenhand.core.errors import InputError
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.integrations.archives import open_archive
from evenhand.integrations.foreign_json import (
    as_dict,
    as_int,
    as_list,
    as_number,
    as_text,
    decode,
    read_object,
)
from evenhand.integrations.port import Figure, ImportedRun, ImportedSample
from evenhand.results.records import Usage

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
MEANS = ("accuracy", "mean")
"""Metrics that are the mean of the samples' values."""
REDUCERS: dict[str, Callable[[list[float]], float]] = {"mean": fmean, "max": max, "mode": mode}
RULE = "the mean over samples of the epochs' reduced values; samples that raised are left out"


class InspectAi:
    """The importer."""

    name = "inspect"

    def recognises(self, path: Path, head: bytes) -> bool:
        if path.suffix == ".eval":
            return head.startswith(b"PK")
        return b'"eval_id"' in head and b'"task"' in head

    def read(self, path: Path) -> list[ImportedRun]:
        if path.suffix == ".eval":
            header, samples = _read_archive(path)
        else:
            header = read_object(path)
            samples = [as_dict(sample) for sample in as_list(header.get("samples"))]
        if not samples:
            raise InputError(
                f"there are no samples in it (status {header.get('status')!r}): "
                "the log was written without them, or the run did not get that far",
                path=path,
            )
        return [_run(header, samples)]


def _read_archive(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with open_archive(path) as archive:
        names = archive.names
        first = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
        if first is None:
            raise InputError(
                "neither header.json nor _journal/start.json is in it: not an Inspect log", path=path
            )
        header = as_dict(decode(archive.read(first), path))
        wanted = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
        return header, [as_dict(decode(archive.read(name), path)) for name in wanted]


def _run(header: dict[str, Any], raw: list[dict[str, Any]]) -> ImportedRun:
    about = as_dict(header.get("eval"))
    scorers = {
        str(one.get("name")): {"options": one.get("options")}
        for one in map(as_dict, as_list(about.get("scorers")))
    }
    samples = _samples(raw, list(scorers))
    unmapped = []
    if header.get("status") not in ("success", None):
        unmapped.append(f"the run ended with status {header.get('status')!r}: not every sample may be there")
    labels = sorted({name for sample in samples for name, one in sample.outcomes.items() if _is_label(one)})
    unmapped += [f"the values of {name} are words, not numbers" for name in labels]
    return ImportedRun(
        tool="inspect",
        name=str(about.get("task") or "task"),
        treatment={
            "model": about.get("model"),
            "generation": about.get("model_generate_config"),
            "task arguments": about.get("task_args"),
        },
        scorers=scorers,
        samples=samples,
        figures=_figures(header, samples),
        unmapped=unmapped,
    )


def _is_label(outcome: Outcome) -> bool:
    return isinstance(outcome, Unscored) and outcome.reason == "label"


def _samples(raw: list[dict[str, Any]], scorers: list[str]) -> list[ImportedSample]:
    found = []
    for one in raw:
        outcomes = dict(_outcomes(one, scorers))
        output = as_dict(one.get("output"))
        usage = as_dict(output.get("usage"))
        found.append(
            ImportedSample(
                item=str(one.get("id")),
                repeat=(as_int(one.get("epoch")) or 1) - 1,
                input=one.get("input"),
                output=as_text(output.get("completion")),
                expected=one.get("target"),
                outcomes=outcomes,
                metadata=as_dict(one.get("metadata")),
                usage=Usage(
                    input_tokens=as_int(usage.get("input_tokens")),
                    output_tokens=as_int(usage.get("output_tokens")),
                    duration_seconds=as_number(one.get("total_time")),
                ),
            )
        )
    return found


def _outcomes(sample: dict[str, Any], scorers: list[str]) -> Iterator[tuple[str, Outcome]]:
    error = as_dict(sample.get("error"))
    scores = as_dict(sample.get("scores"))
    for name in {**dict.fromkeys(scorers), **scores}:
        score = scores.get(name)
        if not isinstance(score, dict):
            if error:
                yield (
                    name,
                    Failed(error="task_error", message=str(error.get("message") or "the sample raised")),
                )
            elif sample.get("limit"):
                limit = as_dict(sample.get("limit")).get("type")
                yield name, Failed(error="limit", message=f"the sample ran into a limit: {limit}")
            else:
                yield name, Unscored(reason="no_score", message="the scorer left the sample out")
            continue
        value = score.get("value")
        if isinstance(value, dict):
            for key, part in value.items():
                yield f"{name}.{key}", _scored(part, score)
        else:
            yield name, _scored(value, score)


def _scored(value: Any, score: dict[str, Any]) -> Outcome:
    number = as_number(value)
    if number is None and isinstance(value, str):
        number = LETTERS.get(value, WORDS.get(value.lower()))
        if number is None:
            try:
                number = as_number(float(value))
            except ValueError:
                return Unscored(reason="label", message=f"the value is a word: {value}")
    if number is None:
        return Unscored(reason="no_value", message="the score has no value")
    details = {"explanation": score["explanation"]} if score.get("explanation") else {}
    return Scored(value=number, extracted=score.get("answer"), details=details)


def _figures(header: dict[str, Any], samples: list[ImportedSample]) -> list[Figure]:
    config = as_dict(as_dict(header.get("eval")).get("config"))
    reducers = [str(name) for name in as_list(config.get("epochs_reducer"))] or ["mean"]
    figures = []
    for score in map(as_dict, as_list(as_dict(header.get("results")).get("scores"))):
        name = str(score.get("name"))
        reducer = str(score.get("reducer") or reducers[0])
        values = _reduced(samples, name, reducer)
        for metric in map(as_dict, as_dict(score.get("metrics")).values()):
            if metric.get("name") not in MEANS:
                continue
            figures.append(
                Figure(
                    name=f"{name} {metric.get('name')}",
                    printed=as_number(metric.get("value")),
                    reproduced=fmean(values) if values else None,
                    rule=f"{RULE} (reducer: {reducer})",
                )
            )
    return figures


def _reduced(samples: list[ImportedSample], scorer: str, reducer: str) -> list[float]:
    by_item: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        outcome = sample.outcomes.get(scorer)
        if isinstance(outcome, Scored):
            by_item[sample.item].append(float(outcome.value))
    reduce = REDUCERS.get(reducer)
    return [reduce(values) for values in by_item.values()] if reduce is not None else []
