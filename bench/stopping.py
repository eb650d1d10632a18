"""Stopping when it is decided, replayed: `python -m bench.stopping [--orders N] [--write]` makes the table of docs/evaluate.md.

Every ordered pair of the models in ../shared/data (AlpacaEval: 8 models, 805 instructions, preferences from 0 to 1;
GSM8K: 4 models, 1,319 problems, right or wrong) is run again in random orders; the answers are the stored ones. Truth is
the difference over all the data. The replay applies the rule of `compare.stopping` at the tolerated drop alone, for all
orders at once; `check` holds it against the real code, which makes the whole interval, on a few orders of every pair.
"""

import argparse
import json
import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evenhand.compare.comparison import Options
from evenhand.compare.stopping import look
from evenhand.evaluation.stopping import FEWEST, LOOKS
from evenhand.metrics.types import FloatArray, IntArray
from evenhand.results import RunResults, SampleResult

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evaluate.md"
ALPHA = 0.05
MARGINS = (0.02, 0.05, 0.1)


class Replayed(NamedTuple):
    """One pair of models at one margin."""

    truth: float
    passes: float
    blocks: float
    used: float
    right_when_passed: bool


def alpaca(data: Path) -> dict[str, dict[str, float]]:
    """The chance that each model's answer is preferred, by instruction."""
    found = {}
    for file in sorted((data / "alpaca_eval").glob("*.json")):
        rows = json.loads(file.read_text())
        found[file.stem] = {row["instruction_sha1"]: row["preference"] - 1 for row in rows}
    return found


def gsm8k(data: Path) -> dict[str, dict[str, float]]:
    """Whether each model's solution is right, by problem."""
    found: dict[str, dict[str, float]] = {}
    with (data / "gsm8k_model_solutions.jsonl").open() as file:
        for line in file:
            row = json.loads(line)
            found.setdefault(row["model"], {})[str(row["problem_idx"])] = float(row["is_correct"])
    return found


def differences(base: dict[str, float], candidate: dict[str, float]) -> FloatArray:
    """Candidate minus base, item by item."""
    return np.array([candidate[item] - base[item] for item in base if item in candidate])


def stops(deltas: FloatArray, margin: float) -> tuple[IntArray, IntArray]:
    """For each row of differences in their order: after how many a PASS is reached, and a BLOCK; n + 1 for never.

    The capital that bets against a drop of exactly the margin, as `metrics.sequential.confidence_sequence` does.
    """
    n = deltas.shape[1]
    x, mean = (deltas + 1) / 2, (1 - margin) / 2
    t = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(x, axis=1)) / (t + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2, axis=1)) / (t + 1)
    before = np.concatenate((np.full((len(x), 1), 0.25), variances[:, :-1]), axis=1)
    bets = np.sqrt(2 * np.log(2 / ALPHA) / (before * t * np.log(t + 1)))
    up = np.cumsum(np.log1p(np.minimum(bets, 0.5 / mean) * (x - mean)), axis=1)
    down = np.cumsum(np.log1p(-np.minimum(bets, 0.5 / (1 - mean)) * (x - mean)), axis=1)
    return _looked_at(_first(up), n), _looked_at(_first(down), n)


def _first(capital: FloatArray) -> IntArray:
    crossed = capital >= np.log(2 / ALPHA)
    return np.asarray(np.where(crossed.any(axis=1), crossed.argmax(axis=1) + 1, capital.shape[1] + 1))


def _looked_at(reached: IntArray, n: int) -> IntArray:
    """The first look at or after it: looks are not taken after every item."""
    step = max(1, n // LOOKS)
    looks = np.maximum(reached, FEWEST)
    looks = np.minimum(-(-looks // step) * step, n)
    return np.asarray(np.where(reached > n, n + 1, looks))


def replay(
    base: dict[str, float], candidate: dict[str, float], margin: float, orders: int, seed: int
) -> Replayed:
    """A pair in so many random orders."""
    deltas = differences(base, candidate)
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.permutation(deltas) for _ in range(orders)])
    passes, blocks = stops(rows, margin)
    n = deltas.size
    return Replayed(
        truth=float(deltas.mean()),
        passes=float(np.mean((passes <= n) & (passes < blocks))),
        blocks=float(np.mean((blocks <= n) & (blocks < passes))),
        used=float(np.mean(np.minimum(np.minimum(passes, blocks), n)) / n),
        right_when_passed=bool(deltas.mean() >= -margin),
    )


def check(base: dict[str, float], candidate: dict[str, float], margin: float, orders: int) -> Iterator[bool]:
    """Whether the real code decides as the replay says, at the replay's stop and one look before it."""
    items = [item for item in base if item in candidate]
    deltas = differences(base, candidate)
    left, right = _run(base, items), _run(candidate, items)
    options = Options(max_drop=margin)
    step = max(1, len(items) // LOOKS)
    rng = np.random.default_rng(1)
    for _ in range(orders):
        order = rng.permutation(len(items))
        passed, blocked = (int(found[0]) for found in stops(deltas[None, order], margin))
        at = min(passed, blocked, len(items))
        said = look(left, right, order[:at].tolist(), options).verdict
        wanted = {"INCONCLUSIVE"} if min(passed, blocked) > len(items) else {"BLOCK"}
        if passed < blocked:
            wanted = {
                "PASS",
                "WARN",
            }  # a larger drop is ruled out; whether a smaller one is shown is another question
        before = max(at - 2 * step, FEWEST)
        earlier = (
            look(left, right, order[:before].tolist(), options).verdict if before < at else "INCONCLUSIVE"
        )
        # The whole interval moves its ends out by a step of its grid, so it may need one look more.
        later = look(left, right, order[: min(at + 4 * step, len(items))].tolist(), options).verdict
        yield earlier == "INCONCLUSIVE" and bool(wanted & {said, later})


def _run(scores: dict[str, float], items: list[str]) -> RunResults:
    samples = [
        SampleResult(problem_idx=number, reward=scores[item], status="scored")
        for number, item in enumerate(items)
    ]
    return RunResults(path=Path("replay"), name="replay", bundle=None, samples=samples)


def table(data: Path, orders: int, checked: int) -> str:
    """The rows of the page."""
    columns = (
        "data",
        "margin",
        "calls used",
        "passed, rightly",
        "passed, wrongly: worst pair",
        "blocked, rightly",
    )
    lines = [f"| {' | '.join([*columns, 'blocked, wrongly: worst pair'])} |", "|---|---|---|---|---|---|---|"]
    agreed: list[bool] = []
    for name, models in (("AlpacaEval", alpaca(data)), ("GSM8K", gsm8k(data))):
        pairs = list(permutations(models.values(), 2))
        for margin in MARGINS:
            found = [replay(*pair, margin, orders, seed) for seed, pair in enumerate(pairs)]
            for pair in pairs:
                agreed += check(*pair, margin, checked)
            good = [one for one in found if one.right_when_passed]
            bad = [one for one in found if not one.right_when_passed]
            lines.append(
                f"| {name}, {len(pairs)} pairs | {margin:.2f} | {np.mean([one.used for one in found]):.1%} | "
                f"{np.mean([one.passes for one in good]):.1%} of {len(good)} pairs | "
                f"{max(one.passes for one in bad):.1%} of {len(bad)} | {np.mean([one.blocks for one in bad]):.1%} | "
                f"{max(one.blocks for one in good):.1%} |"
            )
    lines.append("")
    lines.append(
        f"{orders:,} random orders of every pair; the real code agreed on {np.mean(agreed):.1%} of {len(agreed):,} orders "
        "that were also put to it."
    )
    return "\n".join(lines)


def main() -> None:
    """Print the table; with `--write`, put it into the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--orders", type=int, default=1000)
    parser.add_argument("--checked", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    text = table(asked.data, asked.orders, asked.checked)
    print(text)
    if asked.write:
        marks = r"(<!-- stopping -->\n).*(<!-- /stopping -->)"
        page = re.sub(marks, lambda found: f"{found[1]}{text}\n{found[2]}", PAGE.read_text(), flags=re.DOTALL)
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
