"""What each arm did by itself."""

from fractions import Fraction

from msgspec import Struct

from evenhand.ab.arms import ArmRuns


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
    """The summary of one arm's runs; sums, means and medians of decimals are exact and rounded once."""
    costs = runs.exact["cost_usd"]
    total = costs.sum() if costs.known.any() else None
    successes = int(runs.success.sum())
    solved = int(runs.success[costs.known].sum())
    medians = {metric: as_float(column.median()) for metric, column in runs.exact.items()}
    return ArmSummary(
        arm=name,
        runs=len(runs),
        successes=successes,
        success_rate=successes / len(runs) if len(runs) else None,
        total_cost_usd=as_float(total),
        avg_cost_usd=as_float(costs.mean()),
        median_cost_usd=medians["cost_usd"],
        median_duration_seconds=medians["duration_seconds"],
        median_total_tokens=medians["total_tokens"],
        median_non_cache_tokens=medians["non_cache_tokens"],
        solved_per_dollar=as_float(solved / total) if total else None,
        median_cache_read_tokens=medians["cache_read_tokens"],
        median_cache_write_tokens=medians["cache_write_tokens"],
        median_step_count=medians["step_count"],
        median_tool_call_count=medians["tool_call_count"],
        median_acceptance_cmd_count=medians["acceptance_cmd_count"],
    )


def as_float(value: Fraction | None) -> float | None:
    """The nearest float; None for None, and for what is beyond every float (one success for 10⁻³²⁰ dollars)."""
    try:
        return None if value is None else float(value)
    except OverflowError:
        return None
