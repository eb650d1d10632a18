"""promptfoo: `promptfoo eval -o results.json` (version 3) or `results.jsonl`.

One file holds every prompt × provider; each is a run of its own. promptfoo has no number for repeats: `--repeat 2`
makes further test indices, so equal test cases are put together again as repeats of one item. An assertion that
crashed is told by promptfoo as a failed test with score 0; here it is a failure, not a zero.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

from evenhand.core.errors import InputError
from evenhand.core.jsontext import canonical
from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.core.terminal import preview
from evenhand.integrations.foreign_json import (
    as_dict,
    as_int,
    as_list,
    as_number,
    as_text,
    read_lines,
    read_object,
)
from evenhand.integrations.port import Figure, ImportedRun, ImportedSample
from evenhand.results.records import Usage

PASSED = "pass"
SCORE = "score"
ERROR = 2
"""promptfoo's `failureReason` when the provider failed: nothing was asserted."""
CRASHES = (
    "Custom function threw error",
    "Python code execution failed",
    "Ruby code execution failed",
    "Error:",
    "API error",
    "Could not parse",
    "No output",
)
"""How the reason of an assertion starts that crashed rather than failed."""


class Promptfoo:
    """The importer."""

    name = "promptfoo"

    def recognises(self, path: Path, head: bytes) -> bool:
        if path.suffix == ".jsonl":
            return b'"promptIdx"' in head and b'"gradingResult"' in head
        return b'"evalId"' in head and b'"results"' in head and b'"prompts"' in head

    def read(self, path: Path) -> list[ImportedRun]:
        if path.suffix == ".jsonl":
            rows = [row for _, row in read_lines(path)]
            stats, prompts, description = {}, [], None
        else:
            file = read_object(path)
            results = as_dict(file.get("results"))
            if results.get("version") not in (3, None):
                raise InputError(
                    f"version {results.get('version')!r} of promptfoo's results; version 3 is understood",
                    path=path,
                )
            rows = [as_dict(row) for row in as_list(results.get("results"))]
            stats, prompts = as_dict(results.get("stats")), as_list(results.get("prompts"))
            description = as_dict(file.get("config")).get("description")
        if not rows:
            raise InputError("there are no results in it", path=path)
        return _runs(rows, stats, prompts, str(description or path.name.partition(".")[0]))


def _runs(
    rows: list[dict[str, Any]], stats: dict[str, Any], prompts: list[Any], name: str
) -> list[ImportedRun]:
    variants: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        variants[(as_int(row.get("promptIdx")) or 0, _provider(row))].append(row)
    runs = []
    for (index, provider), found in variants.items():
        label = str(as_dict(found[0].get("prompt")).get("label") or f"prompt {index}")
        metrics = as_dict(as_dict(prompts[index]).get("metrics")) if index < len(prompts) else {}
        run = ImportedRun(
            tool="promptfoo",
            name=name,
            variant=f"{preview(label, 60)} | {provider}" if len(variants) > 1 else "",
            treatment={"prompt": label, "model": provider},
            samples=_samples(found),
            figures=_figures(found, metrics),
            unmapped=_unmapped(found),
        )
        runs.append(run)
    if stats and len(runs) > 1:
        passed, failed, errors = (as_int(stats.get(n)) or 0 for n in ("successes", "failures", "errors"))
        whole = passed / (passed + failed + errors) if passed + failed + errors else None
        again = sum(row.get("success") is True for row in rows) / len(rows)
        figure = Figure(name="pass rate of the whole file", printed=whole, reproduced=again, rule=RULE)
        for run in runs:
            run.figures.append(figure)
    return runs


RULE = "passed / (passed + failed + errors): a provider error and a crashed assertion count against the pass rate"


def _figures(rows: list[dict[str, Any]], metrics: dict[str, Any]) -> list[Figure]:
    passed, failed, errors = (
        as_int(metrics.get(name)) for name in ("testPassCount", "testFailCount", "testErrorCount")
    )
    total = sum(count or 0 for count in (passed, failed, errors))
    again = sum(row.get("success") is True for row in rows) / len(rows)
    printed = (passed or 0) / total if total else None
    return [Figure(name="pass rate", printed=printed, reproduced=again, rule=RULE)]


def _provider(row: dict[str, Any]) -> str:
    provider = row.get("provider")
    if isinstance(provider, str):
        return provider
    known = as_dict(provider)
    return str(known.get("label") or known.get("id") or "unknown provider")


def _samples(rows: list[dict[str, Any]]) -> list[ImportedSample]:
    seen: dict[str, int] = defaultdict(int)
    labels: dict[str, str] = {}
    samples = []
    for row in sorted(rows, key=lambda row: as_int(row.get("testIdx")) or 0):
        case = as_dict(row.get("testCase"))
        variables = as_dict(row.get("vars")) or as_dict(case.get("vars"))
        identity = _json(
            {
                "description": case.get("description"),
                "vars": variables,
                "assert": case.get("assert"),
            }
        )
        words = str(case.get("description") or _json(variables))
        item = labels.setdefault(identity, words if words not in labels.values() else f"{words} {identity}")
        repeat = seen[identity]
        seen[identity] += 1
        response = as_dict(row.get("response"))
        samples.append(
            ImportedSample(
                item=item,
                repeat=repeat,
                input=as_dict(row.get("prompt")).get("raw"),
                output=as_text(response.get("output")),
                outcomes=_outcomes(row),
                metadata={"vars": variables, "description": case.get("description")},
                usage=_usage(row, response),
            )
        )
    return samples


def _outcomes(row: dict[str, Any]) -> dict[str, Outcome]:
    grading = as_dict(row.get("gradingResult"))
    components = [as_dict(one) for one in as_list(grading.get("componentResults"))]
    names = [PASSED, SCORE, *as_dict(row.get("namedScores"))]
    error = str(row.get("error") or as_dict(row.get("response")).get("error") or "")
    if row.get("failureReason") == ERROR:
        failure = Failed(error="provider_error", message=error or "the provider failed")
        return dict.fromkeys(names, failure)
    crashed = [one for one in components if one.get("pass") is False and _crashed(one)]
    if crashed:
        failure = Failed(error="scorer_error", message=str(crashed[0].get("reason")))
        outcomes: dict[str, Outcome] = {PASSED: failure, SCORE: failure}
    else:
        details = {"reason": grading.get("reason")} if grading.get("reason") else {}
        score = as_number(row.get("score"))
        outcomes = {PASSED: Scored(value=float(row.get("success") is True), details=details)}
        if score is not None:
            outcomes[SCORE] = Scored(value=score, details=details)
    broken = {as_dict(one.get("assertion")).get("metric") for one in crashed}
    for name, value in as_dict(row.get("namedScores")).items():
        number = as_number(value)
        if name in broken:
            outcomes[name] = Failed(error="scorer_error", message=str(crashed[0].get("reason")))
        elif number is not None:
            outcomes[name] = Scored(value=number)
    return outcomes


def _crashed(component: dict[str, Any]) -> bool:
    return str(component.get("reason") or "").startswith(CRASHES)


def _usage(row: dict[str, Any], response: dict[str, Any]) -> Usage:
    tokens = as_dict(response.get("tokenUsage"))
    latency = as_number(row.get("latencyMs"))
    return Usage(
        input_tokens=as_int(tokens.get("prompt")),
        output_tokens=as_int(tokens.get("completion")),
        cost_usd=as_number(row.get("cost")),
        duration_seconds=None if latency is None else latency / 1_000,
    )


def _unmapped(rows: list[dict[str, Any]]) -> list[str]:
    if any(as_dict(row.get("response")).get("cached") for row in rows):
        return ["some answers came from promptfoo's cache: repeats of them are copies, not new answers"]
    return []


def _json(value: Any) -> str:
    return canonical(value).decode()
