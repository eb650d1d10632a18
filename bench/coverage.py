"""How often intervals cover the truth: `python -m bench.coverage [--trials N] [--write]` makes the docs' tables.

Zeros and ones are counted exactly, by summing over every possible outcome; everything else is simulated.
"""

import argparse
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import bdtr

from bench.coverage_others import OTHERS
from evenhand.metrics import bootstrap_ci, mean_interval, proportion_interval
from evenhand.metrics.types import FloatArray, IntArray, Interval

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
SIZES = (20, 100, 1000)
SHARES = (0.5, 0.9, 0.99)
METHODS = ("auto", "t", "normal", "percentile", "bca")
DATA = ("zeros and ones", "graded", "zeros and ones in groups", "graded in groups")
LOW, HIGH = 0.93, 0.97

Sample = tuple[FloatArray, IntArray | None]


def interval(sample: Sample, method: str) -> Interval:
    scores, groups = sample
    if method in ("percentile", "bca"):
        return bootstrap_ci(scores, method=method, n_bootstrap=2_000, groups=groups)
    return mean_interval(scores, groups=groups, method=method)


def exact_coverage(n: int, p: float, method: str) -> float:
    """Over all numbers of successes, each with its binomial probability."""
    total = 0.0
    for successes in range(n + 1):
        chance = float(bdtr(successes, n, p) - (bdtr(successes - 1, n, p) if successes else 0.0))
        if chance > 1e-9:
            scores = np.repeat([0.0, 1.0], [n - successes, successes])
            total += chance * interval((scores, None), method).contains(p)
    return total


def attainable(n: int, p: float) -> bool:
    """Whether any set of neighbouring outcomes has 93–97 % of the probability: if not, no interval covers so."""
    below = np.concatenate(([0.0], bdtr(np.arange(n + 1), n, p)))
    masses = below[None, :] - below[:, None]
    return bool(((masses >= LOW) & (masses <= HIGH)).any())


def shape(n: int) -> tuple[int, int]:
    """Problems and repeats of n values in groups."""
    return {20: (10, 2), 100: (20, 5), 1000: (200, 5)}[n]


def draw(data: str, n: int, p: float, rng: np.random.Generator) -> Sample:
    """Graded scores are Beta with mean p and concentration 5; groups have an intraclass correlation of 0.3."""
    if data == "graded":
        return rng.beta(5 * p, 5 * (1 - p), n), None
    problems, repeats = shape(n)
    concentration = (1 - 0.3) / 0.3
    chance = np.repeat(rng.beta(concentration * p, concentration * (1 - p), problems), repeats)
    codes = np.repeat(np.arange(problems), repeats)
    if data == "zeros and ones in groups":
        return (rng.random(n) < chance).astype(np.float64), codes
    chance = np.clip(chance, 1e-6, 1 - 1e-6)
    return rng.beta(5 * chance, 5 * (1 - chance)), codes


@cache
def coverage(data: str, n: int, p: float, method: str, trials: int) -> float:
    if data == "zeros and ones":
        return exact_coverage(n, p, method)
    trials = trials // 4 if method in ("percentile", "bca") else trials
    rng = np.random.default_rng([SIZES.index(n), SHARES.index(p), DATA.index(data)])
    covered = sum(interval(draw(data, n, p, rng), method).contains(p) for _ in range(trials))
    return covered / trials


def recommended(data: str, n: int, p: float) -> bool:
    """Where the default is claimed to cover 93–97 %; elsewhere it is claimed to cover at least 93 %.

    Zeros and ones: wherever any interval can. Otherwise: where at least 10 independent failures are expected,
    counting shortfalls of graded scores in proportion, and whole problems when there are groups.
    """
    if data == "zeros and ones":
        return attainable(n, p)
    independent = shape(n)[0] if "groups" in data else n
    return round(independent * (1 - p), 6) >= 10


def marked(value: float) -> str:
    text = f"{100 * value:.1f}"
    return text if value >= LOW else f"**{text}**"


def means_table(trials: int) -> str:
    lines = [
        "| scores | n | mean | default | claim | t | normal | percentile | BCa |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for data in DATA:
        for n in SIZES:
            for p in SHARES:
                claim = "93–97" if recommended(data, n, p) else "≥ 93"
                cells = [marked(coverage(data, n, p, method, trials)) for method in METHODS]
                lines.append(f"| {data} | {n:,} | {p} | {cells[0]} | {claim} | {' | '.join(cells[1:])} |")
    return "\n".join(lines)


def lowest(n: int, method: str) -> float:
    """The lowest coverage over true shares from 0.5 to 0.999."""
    ends = [proportion_interval(x, n, method=method) for x in range(n + 1)]
    lower, upper = (np.array([getattr(end, name) for end in ends]) for name in ("ci_lower", "ci_upper"))
    found = 1.0
    for p in np.concatenate((np.linspace(0.5, 0.95, 91), np.linspace(0.951, 0.999, 97))):
        below = np.concatenate(([0.0], bdtr(np.arange(n + 1), n, p)))
        found = min(found, float(np.diff(below)[(lower <= p) & (p <= upper)].sum()))
    return found


def proportions_table(_: int) -> str:
    names = ("auto", "wilson", "clopper_pearson", "beta_binomial")
    lines = [
        "| n | true share | default | Wilson | Clopper–Pearson | Beta-Binomial |",
        "|---|---|---|---|---|---|",
    ]
    for n in SIZES:
        for p in SHARES:
            cells = [marked(exact_coverage(n, p, name)) for name in names]
            lines.append(f"| {n:,} | {p} | {' | '.join(cells)} |")
        cells = [marked(lowest(n, name)) for name in names]
        lines.append(f"| {n:,} | lowest, 0.5 to 0.999 | {' | '.join(cells)} |")
    return "\n".join(lines)


def others_table(trials: int) -> str:
    lines = ["| interval | setting | covers |", "|---|---|---|"]
    return "\n".join(
        lines + [f"| `{case.name}` | {case.setting} | {marked(case.coverage(trials))} |" for case in OTHERS]
    )


def write(name: str, table: Callable[[int], str], trials: int, *, keep: bool) -> None:
    text = table(trials)
    print(text, flush=True)
    if not keep:
        return
    start, end = f"<!-- coverage:{name} -->", f"<!-- /coverage:{name} -->"
    page = PAGE.read_text(encoding="utf-8")
    block = f"{start}\n{text}\n{end}"
    pattern = re.escape(start) + ".*?" + re.escape(end)
    PAGE.write_text(re.sub(pattern, lambda _: block, page, flags=re.DOTALL), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.coverage")
    parser.add_argument("--trials", type=int, default=2_000, help="simulated data sets per cell")
    parser.add_argument("--only", choices=("proportions", "means", "others"), help="one table")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/metrics.md")
    options = parser.parse_args()
    tables = {"proportions": proportions_table, "means": means_table, "others": others_table}
    for name in [options.only] if options.only else tables:
        write(name, tables[name], options.trials, keep=options.write)


if __name__ == "__main__":
    main()
