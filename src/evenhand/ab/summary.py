"""What each arm did by itself."""

import math

import numpy as np
from msgspec import Struct

from evenhand.ab.arms import ArmRuns
from evenhand.ab.table import Floats


class ArmSummary(Struct, frozen=True, kw_only=True):
    """The runs of one arm. A figure without any known value is None."""

    arm: str
    """The name of the arm."""
    runs: int
    """Runs that count: without infrastructure failures."""
    successes: int
    """Runs that solved their task."""
    success_rate: float | None
    """successes / runs."""
    total_cost_usd: float | None
    """The sum of the known costs."""
    avg_cost_usd: float | None
    """That sum over the runs with a known cost."""
    median_cost_usd: float | None
    median_duration_seconds: float | None
    median_total_tokens: float | None
    median_non_cache_tokens: float | None
    solved_per_dollar: float | None
    """Successes per dollar among the runs with a known cost; None when the total cost is zero or unknown."""
    median_cache_read_tokens: float | None
    median_cache_write_tokens: float | None
    median_step_count: float | None
    median_tool_call_count: float | None
    median_acceptance_cmd_count: float | None


def summarize(name: str, runs: ArmRuns) -> ArmSummary:
    """The summary of one arm's runs."""
    values = runs.values
    known = ~np.isnan(values["cost_usd"])
    costs = values["cost_usd"][known]
    total = exact_sum(costs) if costs.size else None
    successes = int(runs.success.sum())
    return ArmSummary(
        arm=name,
        runs=len(runs),
        successes=successes,
        success_rate=successes / len(runs) if len(runs) else None,
        total_cost_usd=total,
        avg_cost_usd=total / costs.size if total is not None else None,
        median_cost_usd=median(costs),
        median_duration_seconds=median(values["duration_seconds"]),
        median_total_tokens=median(values["total_tokens"]),
        median_non_cache_tokens=median(values["non_cache_tokens"]),
        solved_per_dollar=int(runs.success[known].sum()) / total if total else None,
        median_cache_read_tokens=median(values["cache_read_tokens"]),
        median_cache_write_tokens=median(values["cache_write_tokens"]),
        median_step_count=median(values["step_count"]),
        median_tool_call_count=median(values["tool_call_count"]),
        median_acceptance_cmd_count=median(values["acceptance_cmd_count"]),
    )


def median(values: Floats) -> float | None:
    """The middle of the known values, or of their two middle ones; None when there are none."""
    known = values[~np.isnan(values)]
    return plain(float(np.median(known))) if known.size else None


def exact_sum(values: Floats) -> float:
    """The sum, rounded once: no order of the values changes a bit of it."""
    return math.fsum(values.tolist())


def plain(value: float) -> float:
    """The value, with −0 as 0."""
    return value + 0.0
