"""How often verdicts are wrong: `python -m bench.verdicts [--trials N] [--write]` makes the tables of docs/metrics.md.

Every cell makes runs of known truth and puts them to `run_gate`, or to `compare_runs` and `correct_together`, as the
commands do. The error rate promised is 5 % for a gate and for a BLOCK, 2.5 % for a PASS of `compare`.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenhand.compare import Options, compare_runs
from evenhand.compare.family import correct_together
from evenhand.compare.gate import run_gate
from evenhand.compare.policy import parse_policy
from evenhand.metrics.paired import mcnemar, permutation_test
from evenhand.metrics.power import (
    flip_minimum_detectable_effect,
    mcnemar_minimum_detectable_effect,
    minimum_detectable_effect,
)
from evenhand.metrics.types import FloatArray
from evenhand.results import RunResults, SampleResult

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
LIMIT = 0.05
ALPHA = 0.05


@dataclass(frozen=True)
class Data:
    """Scores of one benchmark, problems × repeats; NaN is a failed sample."""

    base: FloatArray
    candidate: FloatArray
    clusters: Sequence[int] | None = None

    def runs(self) -> tuple[RunResults, RunResults]:
        return _run(self.base, self.clusters), _run(self.candidate, self.clusters)


def _run(scores: FloatArray, clusters: Sequence[int] | None) -> RunResults:
    table = scores.reshape(len(scores), -1).tolist()
    samples = [
        SampleResult(
            problem_idx=problem,
            repeat=repeat,
            reward=None if score != score else score,
            status="failed" if score != score else "scored",
            metadata={} if clusters is None else {"passage": str(clusters[problem])},
        )
        for problem, row in enumerate(table)
        for repeat, score in enumerate(row)
    ]
    return RunResults(path=Path("run"), name="bench", bundle=None, samples=samples)


def goes(*benchmarks: Data, clustered: bool = False, min_coverage: float = 0.98) -> bool:
    """Whether the gate says GO over these benchmarks, each with a limit of five points."""
    pairs = {f"b{place}": data.runs() for place, data in enumerate(benchmarks)}
    policy = parse_policy(
        f"version: 1\nalpha: {ALPHA}\ndefaults: {{max_drop: {LIMIT}, min_coverage: {min_coverage}}}\n"
    )
    found = run_gate(
        {name: pair[0] for name, pair in pairs.items()},
        {name: pair[1] for name, pair in pairs.items()},
        policy,
        cluster_field="passage" if clustered else None,
    )
    return found.verdict == "GO"


def binary(rng: np.random.Generator, n: int, drop: float, changed: float) -> Data:
    """Passes and failures: `changed` of the problems differ, by `drop` on balance; of the others 70 % pass."""
    kinds = [(changed + drop) / 2, (changed - drop) / 2, 1 - changed]
    moved = rng.choice([-1.0, 1.0, 0.0], p=kinds, size=n)
    same = (rng.random(n) < 0.7).astype(float)
    base = np.where(moved < 0, 1.0, np.where(moved > 0, 0.0, same))
    return Data(base, base + moved)


def rare_drops(rng: np.random.Generator, n: int, drop: float = LIMIT) -> Data:
    """Graded answers near 1; a few of the candidate's fall to 0, the others differ by noise."""
    base, candidate = (1 - rng.uniform(0, 0.02, n) for _ in range(2))
    fallen: FloatArray = np.where(rng.random(n) < drop / 0.99, 0.0, candidate)
    return Data(base, fallen)


def _halved(rng: np.random.Generator) -> Data:
    """A tenth of the graded answers lose half of their points."""
    base, candidate = (1 - rng.uniform(0, 0.02, 200) for _ in range(2))
    halved: FloatArray = candidate - 0.5 * (rng.random(200) < LIMIT / 0.5)
    return Data(base, halved)


def _ties(rng: np.random.Generator) -> Data:
    """80 % of the graded problems are tied, the others fall by a quarter on average."""
    fall = np.where(rng.random(200) < 0.2, np.round(rng.uniform(0, 0.5, 200), 2), 0.0)
    return Data(np.ones(200), (1 - fall).astype(np.float64))


def _repeats(rng: np.random.Generator) -> Data:
    chance = np.clip(rng.beta(2, 2, 100), LIMIT, 1)[:, None]
    sides = [(rng.random((100, 4)) < rate).astype(float) for rate in (chance, chance - LIMIT)]
    return Data(sides[0], sides[1])


def passages(rng: np.random.Generator, count: int, size: int, *, spread: float = 0.1) -> Data:
    """Passages of `size` questions that are lost at the passage's own rate, Beta with a long tail."""
    rates = rng.beta(spread, spread * (1 - LIMIT) / LIMIT, count)
    codes = np.repeat(np.arange(count), size)
    lost = rng.random(count * size) < rates[codes]
    return Data(np.ones(count * size), np.where(lost, 0.0, 1.0), codes.tolist())


def _uneven_passages(rng: np.random.Generator, count: int) -> Data:
    codes = np.repeat(np.arange(count), rng.integers(1, 12, count))
    rates = rng.beta(0.5, 9.5, count)
    kept = np.where(rng.random(codes.size) < rates[codes], 0.0, 1.0)
    return Data(np.ones(codes.size), kept, codes.tolist())


def _lucky_passages(rng: np.random.Generator) -> Data:
    """Graded: each passage has its own luck, the questions some more."""
    codes = np.repeat(np.arange(20), 10)
    luck = rng.normal(-LIMIT, 0.15, 20)[codes]
    return Data(np.full(200, 0.5), np.clip(0.5 + luck + rng.normal(0, 0.1, 200), 0, 1), codes.tolist())


def _missing(rng: np.random.Generator, share: float, *, hard: bool) -> Data:
    """`share` of the candidate's samples failed: at random, or those that it lost."""
    data = binary(rng, 200, LIMIT, 0.2)
    gone = rng.random(200) < share
    if hard:
        lost = np.flatnonzero(data.candidate < data.base)[: int(share * 200)]
        gone = np.isin(np.arange(200), lost)
    return Data(data.base, np.where(gone, np.nan, data.candidate))


def _judge(rng: np.random.Generator) -> Data:
    """A judge that is wrong on one answer in ten, on both sides: drops look a fifth smaller than they are."""
    base = rng.random(200) < 0.7
    candidate = np.where(rng.random(200) < 0.8, base, rng.random(200) < 0.7 - LIMIT / 0.2)
    seen = [np.where(rng.random(200) < 0.1, ~side, side).astype(float) for side in (base, candidate)]
    return Data(seen[0], seen[1])


def _many(rng: np.random.Generator, count: int) -> bool:
    """One benchmark at the limit, the others better by five points: GO needs all of them."""
    better = [binary(rng, 200, -0.05, 0.2) for _ in range(count - 1)]
    return goes(binary(rng, 200, LIMIT, 0.2), *better)


World = Callable[[np.random.Generator], bool]
WORLDS: list[tuple[str, World]] = [
    ("complete, a fifth of the problems differ", lambda rng: goes(binary(rng, 200, LIMIT, 0.2))),
    ("few changes: only the lost problems differ", lambda rng: goes(binary(rng, 200, LIMIT, LIMIT))),
    ("graded, 80 % ties, few large drops", lambda rng: goes(_ties(rng))),
    ("graded, one problem in 20 falls to 0, 50 problems", lambda rng: goes(rare_drops(rng, 50))),
    ("the same, 100 problems", lambda rng: goes(rare_drops(rng, 100))),
    ("the same, 200 problems", lambda rng: goes(rare_drops(rng, 200))),
    ("graded, one problem in 10 loses half", lambda rng: goes(_halved(rng))),
    ("100 problems × 4 repeats", lambda rng: goes(_repeats(rng))),
    *(
        (
            f"{count} passages × {size} questions with skewed rates, `--cluster-field`",
            lambda rng, count=count, size=size: goes(passages(rng, count, size), clustered=True),
        )
        for count, size in ((10, 20), (20, 10), (40, 5), (100, 5))
    ),
    (
        "100 passages that fall whole or not at all, `--cluster-field`",
        lambda rng: goes(passages(rng, 100, 4, spread=0.001), clustered=True),
    ),
    (
        "100 passages of 1 to 11 questions, `--cluster-field`",
        lambda rng: goes(_uneven_passages(rng, 100), clustered=True),
    ),
    (
        "20 passages × 10 questions with normal luck, `--cluster-field`",
        lambda rng: goes(_lucky_passages(rng), clustered=True),
    ),
    ("the same without `--cluster-field`", lambda rng: goes(_lucky_passages(rng))),
    ("10 % missing at random", lambda rng: goes(_missing(rng, 0.1, hard=False))),
    ("2 % missing, those that were lost", lambda rng: goes(_missing(rng, 0.02, hard=True))),
    (
        "the same with `min_coverage: 1`",
        lambda rng: goes(_missing(rng, 0.02, hard=True), min_coverage=1.0),
    ),
    ("10 % missing, those that were lost", lambda rng: goes(_missing(rng, 0.1, hard=True))),
    (
        "the same with `min_coverage: 0`, as before",
        lambda rng: goes(_missing(rng, 0.1, hard=True), min_coverage=0.0),
    ),
    ("a judge that errs on one answer in ten", lambda rng: goes(_judge(rng))),
    ("5 benchmarks, one at the limit", lambda rng: _many(rng, 5)),
    ("20 benchmarks, one at the limit", lambda rng: _many(rng, 20)),
]


def worlds_table(trials: int) -> str:
    lines = [
        "| world, true drop exactly the limit of 5 points, 200 problems unless said | false GO (%) |",
        "|---|---|",
    ]
    for name, world in WORLDS:
        rng = np.random.default_rng(15)
        lines.append(f"| {name} | {100 * np.mean([world(rng) for _ in range(trials)]):.1f} |")
    return "\n".join(lines)


def family_rates(
    benchmarks: int, trials: int, at_limit: Callable[[np.random.Generator], Data] | None = None
) -> tuple[float, float, float, float]:
    """Some BLOCK among unchanged benchmarks, alone and corrected; some PASS among benchmarks at the limit, likewise."""
    rng = np.random.default_rng(benchmarks)
    options = Options(max_drop=LIMIT)
    block, passed = np.zeros(2), np.zeros(2)
    for _ in range(trials):
        equal = [
            compare_runs(*binary(rng, 200, 0.0, 0.2).runs(), Options(max_drop=0)) for _ in range(benchmarks)
        ]
        together = correct_together(equal, Options(max_drop=0))
        block += [any(one.verdict.name == "BLOCK" for one in side) for side in (equal, together)]
        drawn = [at_limit(rng) if at_limit else binary(rng, 200, LIMIT, 0.2) for _ in range(benchmarks)]
        limit = [compare_runs(*one.runs(), options) for one in drawn]
        together = correct_together(limit, options)
        passed += [any(one.verdict.name == "PASS" for one in side) for side in (limit, together)]
    return (*(block / trials).tolist(), *(passed / trials).tolist())


def family_table(trials: int) -> str:
    lines = [
        "| benchmarks | some false BLOCK, each alone (%) | together | some false PASS, each alone (%) | together | the same, rare drops to 0 |",
        "|---|---|---|---|---|---|",
    ]
    for count in (1, 5, 10, 20):
        rates = [
            *family_rates(count, trials),
            family_rates(count, trials, lambda rng: rare_drops(rng, 100))[3],
        ]
        lines.append(f"| {count} | {' | '.join(f'{100 * rate:.1f}' for rate in rates)} |")
    return "\n".join(lines)


def power_table(trials: int) -> str:
    lines = [
        "| problems | that differ | minimum detectable effect (points) | power there (%) | a t-test's figure | power there |",
        "|---|---|---|---|---|---|",
    ]
    rng = np.random.default_rng(6)
    for n in (50, 200, 1000):
        for changed in (0.1, 0.3):
            exact = mcnemar_minimum_detectable_effect(changed, n)
            assert exact is not None
            usual = minimum_detectable_effect(changed**0.5, n, alternative="greater")
            cells = []
            for effect in (exact, usual):
                share = max(changed, effect)
                counts = rng.multinomial(
                    n, [(share + effect) / 2, (share - effect) / 2, 1 - share], size=10 * trials
                )
                tables, times = np.unique(counts[:, :2], axis=0, return_counts=True)
                seen = sum(
                    t
                    for (lost, won), t in zip(tables.tolist(), times.tolist(), strict=True)
                    if mcnemar(lost, won, alternative="less").p_value < ALPHA
                )
                cells += [f"{100 * effect:.1f}", f"{100 * seen / (10 * trials):.1f}"]
            lines.append(f"| {n:,} | {changed:.0%} | {' | '.join(cells)} |")
    return "\n".join(lines)


def flips_table(trials: int) -> str:
    """Graded differences, normal with standard deviation 0.2, decided by sign flips at the printed effect."""
    lines = ["| problems | minimum detectable effect (points) | power there (%) |", "|---|---|---|"]
    rng = np.random.default_rng(9)
    for n in (4, 5, 6, 8, 10, 20, 50):
        effect = flip_minimum_detectable_effect(0.2, n, n)
        if effect is None:
            lines.append(f"| {n} | none | – |")
            continue
        seen = [
            permutation_test(rng.normal(-effect, 0.2, n), alternative="less").p_value < ALPHA
            for _ in range(2 * trials)
        ]
        lines.append(f"| {n} | {100 * effect:.1f} | {100 * np.mean(seen):.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verdicts")
    parser.add_argument("--trials", type=int, default=1_000, help="simulated data sets per cell")
    parser.add_argument("--only", choices=("worlds", "families", "power", "flips"), help="one table")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/metrics.md")
    options = parser.parse_args()
    tables = {
        "worlds": worlds_table,
        "families": family_table,
        "power": power_table,
        "flips": flips_table,
    }
    for name in [options.only] if options.only else tables:
        text = tables[name](options.trials)
        print(text, flush=True)
        if options.write:
            start, end = f"<!-- verdicts:{name} -->", f"<!-- /verdicts:{name} -->"
            page = PAGE.read_text(encoding="utf-8")
            pattern = re.escape(start) + ".*?" + re.escape(end)
            block = f"{start}\n{text}\n{end}"
            PAGE.write_text(re.sub(pattern, lambda _: block, page, flags=re.DOTALL), encoding="utf-8")  # noqa: B023


if __name__ == "__main__":
    main()
