"""A second implementation of the contract's metrics, with the standard library only, on random logs.

It reads the text of the file with `json` and `decimal`, works in fractions throughout and shares no line with the
package. Every number of the arms, the paired deltas, the gates and the decision must be the same float.
"""

import json
import random
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from evenhand.ab import analyze, load_records

DELTAS = {
    "pass_delta": "pass",
    "cost_delta_usd": "cost",
    "duration_delta_seconds": "seconds",
    "token_delta": "total",
    "non_cache_token_delta": "non_cache",
    "cache_read_token_delta": "cache_read_tokens",
    "cache_write_token_delta": "cache_write_tokens",
    "step_count_delta": "step_count",
    "tool_call_count_delta": "tool_call_count",
    "acceptance_cmd_count_delta": "acceptance_cmd_count",
}
MEDIANS = {
    "median_cost_usd": "cost",
    "median_duration_seconds": "seconds",
    "median_total_tokens": "total",
    "median_non_cache_tokens": "non_cache",
    "median_cache_read_tokens": "cache_read_tokens",
    "median_cache_write_tokens": "cache_write_tokens",
    "median_step_count": "step_count",
    "median_tool_call_count": "tool_call_count",
    "median_acceptance_cmd_count": "acceptance_cmd_count",
}


def _run(record: dict[str, Any]) -> dict[str, Any]:
    def amount(name: str) -> Fraction | None:
        value = record.get(name)
        return None if value is None else Fraction(value)

    def total(*names: str) -> Fraction | None:
        parts = [amount(name) for name in names]
        return None if None in parts else sum((part for part in parts if part is not None), Fraction(0))

    others = (
        "cache_read_tokens",
        "cache_write_tokens",
        "step_count",
        "tool_call_count",
        "acceptance_cmd_count",
    )
    return {
        "pass": Fraction(1 if record["success"] else 0),
        "cost": amount("total_cost_usd"),
        "seconds": amount("duration_seconds"),
        "non_cache": total("input_tokens", "output_tokens"),
        "total": total("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
        **{name: amount(name) for name in others},
    }


def _excluded(record: dict[str, Any]) -> bool:
    codes = [record.get("agent_exit_code"), record.get("opencode_exit_code")]
    failed = any(code not in (None, 0) for code in codes)
    return bool(
        record.get("infra_failure") or 86 in codes or (failed and record.get("acceptance_exit_code") == 99)
    )


def _known(values: list[Fraction | None]) -> list[Fraction]:
    return [value for value in values if value is not None]


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _middle(values: list[Fraction]) -> Fraction | None:
    return median(values) if values else None


def _mean(values: list[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


def _arm(runs: list[dict[str, Any]]) -> tuple[dict[str, float | None], list[Fraction | None]]:
    costs = [run for run in runs if run["cost"] is not None]
    spent = sum((run["cost"] for run in costs), Fraction(0)) if costs else None
    rate = _mean([run["pass"] for run in runs])
    medians = {name: _middle(_known([run[key] for run in runs])) for name, key in MEDIANS.items()}
    return {
        "runs": len(runs),
        "successes": int(sum(run["pass"] for run in runs)),
        "success_rate": _number(rate),
        "total_cost_usd": _number(spent),
        "avg_cost_usd": _number(spent / len(costs)) if spent is not None else None,
        "solved_per_dollar": _number(sum(run["pass"] for run in costs) / spent) if spent else None,
        **{name: _number(value) for name, value in medians.items()},
    }, [rate, medians["median_duration_seconds"], medians["median_non_cache_tokens"]]


def _by_task_p(sums: list[Fraction]) -> float:
    hits = [
        abs(sum((sign * part for sign, part in zip(signs, sums, strict=True)), Fraction(0)))
        >= abs(sum(sums, Fraction(0)))
        for signs in product((1, -1), repeat=len(sums))
    ]
    return sum(hits) / len(hits)


def independent(text: str) -> dict[str, Any]:
    """The contract, read again."""
    runs: dict[str, dict[tuple[str, int], dict[str, Any]]] = {"with_x": {}, "without_x": {}}
    excluded = 0
    for line in text.splitlines():
        record = json.loads(line, parse_float=Decimal)
        if _excluded(record):
            excluded += 1
        else:
            runs[record["arm"]][record["task_id"], record["repeat"]] = _run(record)
    treatment, control = runs["with_x"], runs["without_x"]
    shared = sorted(treatment.keys() & control.keys())
    paired: dict[str, float | None] = {}
    by_task = {}
    for name, key in DELTAS.items():
        sums: dict[str, Fraction] = defaultdict(Fraction)
        deltas = []
        for place in shared:
            mine, theirs = treatment[place][key], control[place][key]
            if mine is not None and theirs is not None:
                deltas.append(mine - theirs)
                sums[place[0]] += mine - theirs
        paired[f"mean_{name}"], paired[f"median_{name}"] = _number(_mean(deltas)), _number(_middle(deltas))
        by_task[name] = _by_task_p(list(sums.values())) if deltas else None
    first, mine_ = _arm(list(treatment.values()))
    second, theirs_ = _arm(list(control.values()))
    if not treatment or not control:
        decision = "insufficient data"
    else:
        leads = [
            None if a is None or b is None else sign * (a - b)
            for sign, a, b in zip((1, -1, -1), mine_, theirs_, strict=True)
        ]
        if all(lead is not None and lead >= 0 for lead in leads):
            decision = "prefer with_x"
        elif all(lead is not None and lead <= 0 for lead in leads):
            decision = "prefer without_x"
        else:
            decision = "mixed results - inspect paired deltas"
    return {
        "arms": [first, second],
        "paired_runs": len(shared),
        "paired": paired,
        "by_task": by_task,
        "excluded": excluded,
        "decision": decision,
    }


def _log(rng: random.Random) -> str:
    """A random log: few decimals and many ties in some, long decimals and nulls in others."""
    places = rng.choice([0, 1, 2, 3, 16])
    largest = rng.choice([3, 30, 3_000])

    def amount(*, nulls: bool) -> str:
        if nulls and rng.random() < 0.1:
            return "null"
        return f"{rng.randrange(largest * 10**places) / Decimal(10) ** places:f}"

    tasks, repeats, keep = rng.randrange(1, 8), rng.randrange(1, 6), rng.choice([1.0, 0.9])
    lines = []
    for task, repeat, arm in product(range(tasks), range(1, repeats + 1), ("with_x", "without_x")):
        if rng.random() > keep:
            continue
        fields = {
            "task_id": f'"t{task}"',
            "arm": f'"{arm}"',
            "repeat": str(repeat),
            "success": rng.choice(["true", "false"]),
            "duration_seconds": amount(nulls=False),
            **{
                name: amount(nulls=True)
                for name in (
                    "total_cost_usd",
                    "input_tokens",
                    "output_tokens",
                    "cache_read_tokens",
                    "cache_write_tokens",
                    "step_count",
                    "tool_call_count",
                    "acceptance_cmd_count",
                )
                if name.endswith(("usd", "tokens")) or rng.random() < 0.8
            },
            "agent_exit_code": rng.choice(["0", "0", "0", "0", "1", "86", "null"]),
            "acceptance_exit_code": rng.choice(["0", "1", "99", "null"]),
            "infra_failure": rng.choice(["false", "false", "false", "false", "true", "null"]),
        }
        lines.append("{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}")
    rng.shuffle(lines)
    return "\n".join(lines)


def _compare(folder: Path, seed: int) -> None:
    text = _log(random.Random(seed))
    path = folder / "collected.jsonl"
    path.write_text(text)
    expected = independent(text)
    report = analyze(load_records(path), "with_x", "without_x", n_resamples=1)
    found = report.to_dict()
    for arm, wanted in zip(found["arm_summaries"], expected["arms"], strict=True):
        assert {name: arm[name] for name in wanted} == wanted, seed
    assert found["paired"]["paired_runs"] == expected["paired_runs"], seed
    assert {name: found["paired"][name] for name in expected["paired"]} == expected["paired"], seed
    for name, p_value in expected["by_task"].items():
        test = found["tests"].get(name)
        assert (test["by_task_p_value"] if test else None) == (
            None if p_value is None else pytest.approx(p_value)
        ), seed
    assert found["excluded_infra_failures"] == expected["excluded"], seed
    assert found["decision"] == expected["decision"], seed


def test_another_implementation_agrees(tmp_path: Path) -> None:
    for seed in range(100):
        _compare(tmp_path, seed)


@pytest.mark.slow
def test_another_implementation_agrees_on_two_thousand_logs(tmp_path: Path) -> None:
    for seed in range(100, 2_100):
        _compare(tmp_path, seed)
