"""NeMo Evaluator: a bundle `eval-*.json` with `results.jsonl` beside it. Our own run folders have the same layout."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.integrations.foreign_json import as_dict, as_number, read_object
from evenhand.integrations.port import Figure, ImportedRun, ImportedSample
from evenhand.results.reading import newest_bundle, read_samples
from evenhand.results.records import SampleError, SampleResult

REWARD = "reward"


class NemoEvaluator:
    """The importer."""

    name = "nemo"

    def recognises(self, path: Path, head: bytes) -> bool:
        if path.is_dir():
            return newest_bundle(path) is not None and (path / "results.jsonl").exists()
        return b'"sdk_version"' in head and b'"config_hash"' in head

    def read(self, path: Path) -> list[ImportedRun]:
        folder = path if path.is_dir() else path.parent
        bundle = newest_bundle(folder) if path.is_dir() else path
        assert bundle is not None, "recognises has looked"
        file = read_object(bundle)
        about = as_dict(file.get("benchmark"))
        config = as_dict(file.get("config"))
        rows = list(read_samples(folder / "results.jsonl"))
        return [
            ImportedRun(
                tool="nemo",
                name=str(about.get("name") or folder.name),
                treatment={"model": config.get("model")},
                samples=[_sample(row) for row in rows],
                figures=_figures(as_dict(about.get("scores")), rows),
            )
        ]


def _sample(row: SampleResult) -> ImportedSample:
    return ImportedSample(
        item=str(row.problem_idx),
        repeat=row.repeat,
        output=row.model_response,
        expected=row.expected_answer,
        outcomes={REWARD: _outcome(row)},
        metadata=row.metadata,
        usage=row.usage,
    )


def _outcome(row: SampleResult) -> Outcome:
    if row.reward is not None:
        return Scored(value=row.reward, extracted=row.extracted_answer, details=row.scoring_details)
    error = row.error if isinstance(row.error, SampleError) else None
    message = error.message if error else str(row.error or "")
    kind = error.kind if error else "unknown"
    if row.status == "failed":
        return Failed(error=kind, message=message)
    return Unscored(reason=kind, message=message)


def _figures(scores: dict[str, Any], rows: list[SampleResult]) -> list[Figure]:
    by_problem: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row.reward is not None:
            by_problem[row.problem_idx].append(row.reward)
    means = [fmean(values) for values in by_problem.values()]
    return [
        Figure(
            name="pass@1",
            printed=as_number(as_dict(scores.get("pass@1")).get("value")),
            reproduced=fmean(means) if means else None,
            rule="the mean over problems of the mean over repeats; the tool counts a failed sample as 0",
        )
    ]
