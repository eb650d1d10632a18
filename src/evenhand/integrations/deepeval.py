"""DeepEval: `test_run_*.json` in the folder that `DEEPEVAL_RESULTS_FOLDER` names.

A metric that raised has no score and no text in the file: it is a failure here. DeepEval counts its test as failed.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from evenhand.core.errors import InputError
from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.integrations.foreign_json import as_dict, as_int, as_list, as_number, as_text, read_object
from evenhand.integrations.port import Figure, ImportedRun, ImportedSample
from evenhand.results.records import Usage

PASSED = "pass"


class DeepEval:
    """The importer."""

    name = "deepeval"

    def recognises(self, path: Path, head: bytes) -> bool:
        return b'"testCases"' in head and b'"metricsData"' in head

    def read(self, path: Path) -> list[ImportedRun]:
        file = read_object(path)
        cases = [as_dict(case) for case in as_list(file.get("testCases"))]
        if not cases:
            raise InputError("there are no test cases in it", path=path)
        names = Counter(str(case.get("name")) for case in cases)
        samples = [_sample(case, number, names) for number, case in enumerate(cases)]
        unmapped = []
        if as_list(file.get("conversationalTestCases")):
            unmapped.append("conversational test cases: only single-turn ones are read")
        return [
            ImportedRun(
                tool="deepeval",
                name=str(file.get("testFile") or path.stem),
                scorers=_scorers(cases),
                samples=samples,
                figures=_figures(file, cases),
                unmapped=unmapped,
            )
        ]


def _sample(case: dict[str, Any], number: int, names: Counter[str]) -> ImportedSample:
    name = str(case.get("name"))
    metrics = [as_dict(metric) for metric in as_list(case.get("metricsData"))]
    outcomes: dict[str, Outcome] = {}
    for metric in metrics:
        score = as_number(metric.get("score"))
        if score is None:
            message = str(metric.get("error") or "the metric has no score in the file: it raised")
            outcomes[str(metric.get("name"))] = Failed(error="scorer_error", message=message)
        else:
            details = {"reason": metric["reason"]} if metric.get("reason") else {}
            outcomes[str(metric.get("name"))] = Scored(value=score, details=details)
    failed = next((one for one in outcomes.values() if isinstance(one, Failed)), None)
    outcomes[PASSED] = failed or Scored(value=float(case.get("success") is True))
    return ImportedSample(
        item=name if names[name] == 1 else f"{name} #{as_int(case.get('order')) or number}",
        input=case.get("input"),
        output=as_text(case.get("actualOutput")),
        expected=case.get("expectedOutput"),
        outcomes=outcomes,
        metadata={key: case[key] for key in ("context", "retrievalContext", "tags") if case.get(key)},
        usage=Usage(duration_seconds=as_number(case.get("runDuration"))),
    )


def _scorers(cases: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for case in cases:
        for metric in map(as_dict, as_list(case.get("metricsData"))):
            found.setdefault(
                str(metric.get("name")),
                {name: metric.get(name) for name in ("evaluationModel", "strictMode")},
            )
    return found


def _figures(file: dict[str, Any], cases: list[dict[str, Any]]) -> list[Figure]:
    passed, failed = as_int(file.get("testPassed")), as_int(file.get("testFailed"))
    total = (passed or 0) + (failed or 0)
    return [
        Figure(
            name="pass rate",
            printed=(passed or 0) / total if total else None,
            reproduced=sum(case.get("success") is True for case in cases) / len(cases),
            rule="passed / (passed + failed): a test whose metric raised counts as failed",
        )
    ]
