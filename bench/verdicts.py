"""How often verdicts are wrong: `python -m bench.verdicts [--trials N] [--write]` makes the tables of docs/metrics.md.

Every cell runs the real code on simulated runs of known truth. The error rate promised is 5 % for a gate and for a
BLOCK, 2.5 % for a PASS of `compare`.
"""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from evenhand.metrics.multiplicity import hochberg, holm
from evenhand.metrics.paired import mcnemar, non_inferiority
from evenhand.metrics.power import mcnemar_minimum_detectable_effect, minimum_detectable_effect
from evenhand.metrics.ternary import drop_p_value
from evenhand.metrics.types import FloatArray, IntArray

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
LIMIT = 0.05
ALPHA = 0.05
MIN_COVERAGE = 0.98

Draw = Callable[[np.random.Generator], tuple[FloatArray, IntArray | None]]


def goes(differences: FloatArray, groups: IntArray | None = None) -> bool:
    """Whether the gate passes this metric: the drop is ruled out at 5 %, one-sided."""
    return non_inferiority(differences, LIMIT, groups=groups, confidence_level=1 - ALPHA).p_value <= ALPHA


def binary(rng: np.random.Generator, n: int, drop: float, changed: float) -> FloatArray:
    """Differences of passes and failures: `changed` of the problems differ, by `drop` on balance."""
    kinds = [(changed + drop) / 2, (changed - drop) / 2, 1 - changed]
    return rng.choice([-1.0, 1.0, 0.0], p=kinds, size=n)


def _complete(rng: np.random.Generator) -> bool:
    return goes(binary(rng, 200, LIMIT, 0.2))


def _sparse(rng: np.random.Generator) -> bool:
    return goes(binary(rng, 200, LIMIT, LIMIT))


def _ties(rng: np.random.Generator) -> bool:
    """Graded scores, 80 % of the problems tied, the others fall by a quarter on average."""
    values = np.where(rng.random(200) < 0.2, np.round(rng.normal(-0.25, 0.2, 200), 1), 0.0)
    return goes(np.clip(values, -1, 1))


def _repeats(rng: np.random.Generator) -> bool:
    chance = rng.beta(2, 2, 100)
    chance = np.clip(chance, LIMIT, 1)
    base, candidate = rng.binomial(4, chance) / 4, rng.binomial(4, chance - LIMIT) / 4
    return goes(candidate - base)


def _clusters(rng: np.random.Generator, *, told: bool) -> bool:
    luck = np.repeat(rng.normal(-LIMIT, 0.15, 20), 10)
    values = np.clip(luck + rng.normal(0, 0.1, 200), -1, 1)
    return goes(values, np.repeat(np.arange(20), 10) if told else None)


def _missing(rng: np.random.Generator, *, share: float, hard: bool, rule: bool) -> bool:
    """`share` of the candidate's samples are missing: at random, or those that it lost."""
    values = binary(rng, 200, LIMIT, 0.2)
    if hard:
        lost = np.flatnonzero(values < 0)
        gone = lost[: int(share * 200)]
    else:
        gone = np.flatnonzero(rng.random(200) < share)
    kept = np.delete(values, gone)
    passes = goes(kept)
    if not rule or not passes or 1 - gone.size / 200 >= MIN_COVERAGE:
        return passes
    # Each missing candidate score is 0 at worst; the base's is known, 1 where the problem was lost and 70 % elsewhere.
    worst = np.where(values[gone] < 0, -1.0, -(rng.random(gone.size) < 0.7).astype(float))
    return goes(np.concatenate((kept, worst)))


def _judge(rng: np.random.Generator) -> bool:
    """A judge that is wrong on one answer in ten, on both sides: drops look a fifth smaller than they are."""
    base = rng.random(200) < 0.7
    candidate = np.where(rng.random(200) < 0.8, base, rng.random(200) < 0.7 - LIMIT / 0.2)
    seen = [np.where(rng.random(200) < 0.1, ~side, side).astype(float) for side in (base, candidate)]
    return goes(seen[1] - seen[0])


def _many(rng: np.random.Generator, *, count: int) -> bool:
    """One benchmark at the limit, the others better by five points: GO needs all of them."""
    return goes(binary(rng, 200, LIMIT, 0.2)) and all(
        goes(binary(rng, 200, -0.05, 0.2)) for _ in range(count - 1)
    )


WORLDS: list[tuple[str, Callable[[np.random.Generator], bool]]] = [
    ("complete, a fifth of the problems differ", _complete),
    ("few changes: only the lost problems differ", _sparse),
    ("graded, 80 % ties, few large drops", _ties),
    ("100 problems × 4 repeats", _repeats),
    ("20 passages × 10 questions, `--cluster-field`", lambda rng: _clusters(rng, told=True)),
    ("the same without `--cluster-field`", lambda rng: _clusters(rng, told=False)),
    ("10 % missing at random", lambda rng: _missing(rng, share=0.1, hard=False, rule=True)),
    ("2 % missing, those that were lost", lambda rng: _missing(rng, share=0.02, hard=True, rule=True)),
    ("10 % missing, those that were lost", lambda rng: _missing(rng, share=0.1, hard=True, rule=True)),
    (
        "the same with `min_coverage: 0`, as before",
        lambda rng: _missing(rng, share=0.1, hard=True, rule=False),
    ),
    ("a judge that errs on one answer in ten", _judge),
    ("5 benchmarks, one at the limit", lambda rng: _many(rng, count=5)),
    ("20 benchmarks, one at the limit", lambda rng: _many(rng, count=20)),
]


def worlds_table(trials: int) -> str:
    lines = ["| world, true drop exactly the limit of 5 points, 200 problems | false GO (%) |", "|---|---|"]
    for name, world in WORLDS:
        rng = np.random.default_rng(15)
        lines.append(f"| {name} | {100 * np.mean([world(rng) for _ in range(trials)]):.1f} |")
    return "\n".join(lines)


def family_rates(benchmarks: int, trials: int) -> tuple[float, float, float, float]:
    """Some BLOCK among unchanged benchmarks, alone and corrected; some PASS among benchmarks at the limit, likewise."""
    rng = np.random.default_rng(benchmarks)
    block, passed = np.zeros(2), np.zeros(2)
    for _ in range(trials):
        equal = [binary(rng, 200, 0.0, 0.2) for _ in range(benchmarks)]
        p = [mcnemar(int((one < 0).sum()), int((one > 0).sum()), alternative="less").p_value for one in equal]
        block += [min(p) < ALPHA, float(holm(p).min()) < ALPHA]
        limit = [binary(rng, 200, LIMIT, 0.2) for _ in range(benchmarks)]
        at = [
            drop_p_value(float((one < 0).sum()), float((one > 0).sum()), 200, LIMIT) for one in limit
        ]  # the p-value of `non_inferiority`, without its bound
        passed += [min(at) < ALPHA / 2, float(hochberg(at).min()) < ALPHA / 2]
    return (*(block / trials).tolist(), *(passed / trials).tolist())


def family_table(trials: int) -> str:
    lines = [
        "| benchmarks | some false BLOCK, each alone (%) | together | some false PASS, each alone (%) | together |",
        "|---|---|---|---|---|",
    ]
    for count in (1, 5, 10, 20):
        cells = " | ".join(f"{100 * rate:.1f}" for rate in family_rates(count, trials))
        lines.append(f"| {count} | {cells} |")
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verdicts")
    parser.add_argument("--trials", type=int, default=1_000, help="simulated data sets per cell")
    parser.add_argument("--only", choices=("worlds", "families", "power"), help="one table")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/metrics.md")
    options = parser.parse_args()
    tables = {"worlds": worlds_table, "families": family_table, "power": power_table}
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
