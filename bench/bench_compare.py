"""`evenhand compare` on 14,000 problems × 4 repeats, whole command, beside a naive program doing the same sums."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.harness import Report, best_times

PROBLEMS, REPEATS = 14_000, 4
# What people write first: the json module, dictionaries, and a loop of resamples (a tenth of ours).
NAIVE = """
import json, random, sys
def load(path):
    rows = [json.loads(line) for line in open(path)]
    means = {}
    for row in rows:
        means.setdefault(row["problem_idx"], []).append(row["reward"])
    return {k: sum(v) / len(v) for k, v in means.items()}
base, candidate = load(sys.argv[1]), load(sys.argv[2])
deltas = [candidate[k] - base[k] for k in base if k in candidate]
means = sorted(sum(random.choices(deltas, k=len(deltas))) / len(deltas) for _ in range(1000))
print(sum(deltas) / len(deltas), means[25], means[974])
"""


def write(path: Path, rng: np.random.Generator) -> None:
    rewards = (rng.random((PROBLEMS, REPEATS)) < rng.beta(2, 1, size=PROBLEMS)[:, None]).astype(float)
    with path.open("w") as file:
        for problem in range(PROBLEMS):
            for repeat in range(REPEATS):
                file.write(
                    f'{{"problem_idx":{problem},"repeat":{repeat},"reward":{rewards[problem, repeat]},"status":"scored",'
                    f'"expected_answer":"42","model_response":"{"The answer is 42. " * 10}","metadata":{{}}}}\n'
                )


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        paths = [str(Path(folder) / name) for name in ("base.jsonl", "candidate.jsonl")]
        for path in paths:
            write(Path(path), rng)
        ours = [sys.executable, "-m", "evenhand", "compare", *paths, "--format", "json"]
        naive = [sys.executable, "-c", NAIVE, *paths]
        best = best_times(
            {
                "ours": lambda: subprocess.run(ours, check=True, capture_output=True),
                "naive": lambda: subprocess.run(naive, check=True, capture_output=True),
            },
            rounds=3,
        )
    report.add(
        "compare, 14,000 problems × 4 repeats on both sides, whole command", f"{best['ours']:.2f} s", "< 1 s"
    )
    report.add(
        "a naive program with 1,000 resamples",
        f"{best['naive']:.2f} s ({best['naive'] / best['ours']:.1f}× ours)",
    )
