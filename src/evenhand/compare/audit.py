"""A verdict with everything that it was made from, as one JSON document.

`tools/verify_verdict.py` recomputes the numbers that decide with the standard library alone, and names those that it
leaves, so that nobody has to trust this program to trust its verdict.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from evenhand.compare.comparison import Comparison, Options, cluster_codes
from evenhand.compare.coverage import expected_keys, planned_keys
from evenhand.compare.gate import GateReport
from evenhand.compare.policy import Policy, limits_of
from evenhand.results import RunResults

FORMAT = "evenhand-audit"
VERSION = 2
COPIES = ("delta", "p_drop", "p_beyond", "max_drop", "coverage", "family")
"""Parts of a comparison's evidence that stand in the comparison too."""
AB_NOT_RECOMPUTED = ("readiness", "data_quality")
"""Advice on further runs, and counts of what the records lack."""
COMPARE_STEPS = (
    "samples are paired by problem and repeat; a problem counts with the mean of its paired repeats",
    "delta: mean over problems of candidate minus base, with the interval of the method that is named",
    "test: exact McNemar for one yes-or-no answer per problem, else sign flips of whole problems or clusters",
    "p_beyond: of the hypothesis that the drop is max_drop or larger, with one more problem or cluster lost as a whole (Gaffke)",
    "coverage: missing scores set to the ends of the scale, low and high, for the worst and the best case",
    "several benchmarks: Holm on p_drop and p_rise, Hochberg on p_beyond, Bonferroni on intervals",
    "verdict: BLOCK or WARN if p_drop < 1 - confidence; PASS if p_beyond < (1 - confidence)/2 and nothing missing can matter",
)
GATE_STEPS = (
    "every metric is a number per problem and side; damage is how much worse the candidate is",
    "bounds: one-sided, each at level 1 - alpha, of scores with one more problem or cluster at the end of the scale (Gaffke), of costs, times and tokens Student's t; worst case: missing samples at the end of the scale that hurts most",
    "p: of the hypothesis that the damage is within the limit; adjusted by Holm over critical and supporting metrics",
    "PASS if the upper bound is below the limit and nothing missing can matter; BREACH if adjusted p < alpha",
    "NO-GO for a breach or a required benchmark that a side lacks; GO if every required metric passes",
)
AB_OPTIONS = ("require_significance", "seed", "n_resamples")
AB_STEPS = (
    "runs are paired by task and repeat; infrastructure failures are left out",
    "three gates: success rate, median duration, median non-cache tokens; ties hold both ways",
    "intervals of means: clustered t by task, wider for skewed deltas; of medians: sign flips by task, inverted",
    "mean_bootstrap, median_bootstrap: tasks drawn with replacement, n_resamples times from numpy's default_rng([seed, tasks])",
    f"not recomputed by the verifier: {', '.join(AB_NOT_RECOMPUTED)}",
)
CLASSIC_FIELDS = ("metric", "status", "base", "candidate")
"""What a gate of the A/B rule has of a metric's check."""
CLASSIC_STEPS = (
    "a sample is a run of the A/B rule: a score above 0.5 is a success, no score an infrastructure failure",
    "GO if the rule prefers the candidate, and each side has scored min_coverage and knows the tokens of as many, or the gates hold in the worst case",
    "worst case: every missing sample of the base succeeds at no cost, and none of the candidate ever ends",
    "NO-GO if the rule prefers the base",
)


def digests(sources: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every file of the inputs with its digest; what is no file (an address) is named alone."""
    found = []
    for role, source in sources.items():
        path = Path(source)
        files = [path] if path.is_file() else sorted(one for one in path.glob("**/*") if _is_input(one))
        listed = [
            {"path": str(one), "sha256": sha256(one.read_bytes()).hexdigest(), "bytes": one.stat().st_size}
            for one in files
        ]
        found.append({"role": role, "source": source, "files": listed})
    return found


def _is_input(path: Path) -> bool:
    return path.is_file() and (
        path.name.startswith(("results.jsonl", "scores.jsonl"))
        or (path.name.startswith("eval-") and path.suffix == ".json")
    )


def compare_audit(
    found: Sequence[Comparison],
    pairs: Sequence[tuple[RunResults, RunResults]],
    options: Options,
    *,
    verdict: str,
    left_out: Sequence[str],
    inputs: list[dict[str, Any]],
) -> dict[str, Any]:
    """The audit of `evenhand compare`; `left_out` names what one side lacks or what could not be compared."""
    return {
        **_head("compare", inputs, COMPARE_STEPS),
        "options": msgspec.to_builtins(options),
        "verdict": verdict,
        "left_out": list(left_out),
        "comparisons": [
            _comparison(one, base, candidate, options)
            for one, (base, candidate) in zip(found, pairs, strict=True)
        ],
    }


def gate_audit(
    found: GateReport,
    base: Mapping[str, RunResults],
    candidate: Mapping[str, RunResults],
    policy: Policy,
    *,
    cluster_field: str | None,
    inputs: list[dict[str, Any]],
) -> dict[str, Any]:
    """The audit of `evenhand gate`."""
    names = sorted({gate.benchmark for gate in found.gates})
    return {
        **_head("gate", inputs, GATE_STEPS),
        "alpha": policy.alpha,
        "limits": [msgspec.to_builtins(limit) for name in names for limit in limits_of(policy, name)],
        "required": [name for name in names if name in policy.benchmarks or name in base],
        "benchmarks": {
            name: {
                "base": None if name not in base else _samples(base[name], usage=True),
                "candidate": None if name not in candidate else _samples(candidate[name], usage=True),
                "planned": sorted(planned_keys(*(side[name] for side in (base, candidate) if name in side))),
                "clusters": _clusters(base.get(name), candidate.get(name), cluster_field),
            }
            for name in names
        },
        "verdict": found.verdict,
        "result": msgspec.to_builtins(found),
    }


def ab_audit(records: Path, analysis: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The audit of `evenhand ab analyze`: the records themselves are the input, named by their digest."""
    return {
        **_head("ab", digests({"records": str(records)}), AB_STEPS),
        "options": dict(options),
        "verdict": analysis["decision"],
        "result": analysis,
    }


def classic_audit(
    found: GateReport,
    analysis: dict[str, Any],
    base: RunResults,
    candidate: RunResults,
    *,
    min_coverage: float,
    inputs: list[dict[str, Any]],
) -> dict[str, Any]:
    """The audit of `evenhand gate --policy classic`: that of the A/B rule, with the samples in place of records."""
    return {
        **_head("classic", inputs, (*CLASSIC_STEPS, *AB_STEPS)),
        "options": {"min_coverage": min_coverage, **{name: analysis[name] for name in AB_OPTIONS}},
        "samples": {"candidate": _samples(candidate, usage=True), "base": _samples(base, usage=True)},
        "planned": sorted(planned_keys(base, candidate)),
        "verdict": found.verdict,
        "gates": [{name: getattr(gate, name) for name in CLASSIC_FIELDS} for gate in found.gates],
        "result": analysis,
    }


def _head(kind: str, inputs: list[dict[str, Any]], steps: Sequence[str]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "inputs": inputs,
        "steps": list(steps),
    }


def _comparison(
    found: Comparison, base: RunResults, candidate: RunResults, options: Options
) -> dict[str, Any]:
    result = msgspec.to_builtins(replace(found, items=[], flips=[]))
    for name in COPIES:
        del result["evidence"][name]
    for name in ("items", "flips"):
        del result[name]
    del result["coverage"]["missing"]  # the samples tell
    mine, theirs = ([(one.problem_idx, one.repeat) for one in run.samples] for run in (base, candidate))
    return {
        "benchmark": found.benchmark,
        "samples": {"base": _samples(base), "candidate": _samples(candidate)},
        "expected": expected_keys(mine, theirs, expected=planned_keys(base, candidate)),
        "categories": {str(one.problem_idx): one.category for one in found.items if one.category is not None},
        "clusters": _clusters(base, candidate, options.cluster_field),
        "result": result,
    }


def _samples(run: RunResults, *, usage: bool = False) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for one in sorted(run.samples, key=lambda sample: (sample.problem_idx, sample.repeat)):
        row: list[Any] = [one.problem_idx, one.repeat, one.status, one.reward]
        rows.append([*row, None if one.usage is None else msgspec.to_builtins(one.usage)] if usage else row)
    return rows


def _clusters(
    base: RunResults | None, candidate: RunResults | None, cluster_field: str | None
) -> dict[str, str] | None:
    if cluster_field is None or base is None or candidate is None:
        return None
    seen = {one.problem_idx for run in (base, candidate) for one in run.samples}
    problems = sorted(seen | {problem for problem, _ in planned_keys(base, candidate)})
    codes = cluster_codes(base, candidate, problems, Options(cluster_field=cluster_field)) or []
    return {str(problem): code for problem, code in zip(problems, codes, strict=True)}
