"""`report.html` of 10,000 samples in a real Chromium: size, first paint, when it can be filtered, how long a filter takes."""

import json
import random
import tempfile
import time
from pathlib import Path

from tests.browser import PATIENCE, chromium

from bench.harness import Report
from evenhand.evaluation.viewing import read_report
from evenhand.reports.run import run_page

SAMPLES = 10_000
ROUNDS = 5
WORDS = [
    "the",
    "order",
    "was",
    "late",
    "and",
    "we",
    "refund",
    "express",
    "fee",
    "in",
    "full",
    "when",
    "parcel",
    "arrives",
    "after",
    "promised",
    "day",
    "policy",
    "customer",
    "answer",
    "reason",
    "because",
    "of",
    "carrier",
]
TIMED = """
([name, value]) => {
  const control = document.querySelector(`.picker [name=${name}]`);
  control.value = value;
  const start = performance.now();
  control.dispatchEvent(new Event('change'));
  document.body.offsetHeight;  // with the layout of the new rows
  return performance.now() - start;
}
"""
SEARCHED = """
async ([text, wanted]) => {
  const control = document.querySelector('.picker [name=text]');
  control.value = text;
  const start = performance.now();
  control.dispatchEvent(new Event('input'));
  while (document.querySelector('.picked').textContent !== wanted) await new Promise((done) => setTimeout(done, 1));
  return performance.now() - start;
}
"""


def make_run(folder: Path) -> None:
    """Answers of about 60 words, half of them with thinking, each with a judge's reason and reply."""
    draw = random.Random(7)

    def text(count: int) -> str:
        return " ".join(draw.choice(WORDS) for _ in range(count))

    with (folder / "results.jsonl").open("w") as results, (folder / "trajectories.jsonl").open("w") as said:
        for number in range(SAMPLES):
            thinks = draw.random() < 0.5
            row = {
                "problem_idx": number,
                "status": "scored",
                "reward": draw.choice([0.0, 0.25, 0.5, 1.0, 1.0]),
                "expected_answer": text(3),
                "model_response": text(60),
                "extracted_answer": text(2),
                "metadata": {"category": draw.choice(["refunds", "delivery", "accounts"])},
                "scoring_details": {"reasoning": text(20), "judge": "j", "raw_reply": text(25)},
                "reasoning": text(80) if thinks else None,
            }
            if number % 40 == 0:
                error = {"kind": "rate_limit", "message": "slow down"}
                row.update(status="failed", reward=None, model_response=None, error=error)
            results.write(json.dumps(row) + "\n")
            question = text(30) + (" needle" if number == SAMPLES - 1 else "")
            messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
            said.write(json.dumps({"problem_idx": number, "repeat": 0, "messages": messages}) + "\n")


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        make_run(folder)
        start = time.process_time()
        page = "".join(run_page(read_report(folder)))
        report.add(
            f"report of {SAMPLES:,} samples: processor time to write it",
            f"{time.process_time() - start:.2f} s",
        )
        path = folder / "report.html"
        path.write_text(page, encoding="utf-8")
        report.add(f"report of {SAMPLES:,} samples: size", f"{path.stat().st_size / 1e6:.1f} MB")
        best: dict[str, float] = {}

        def keep(what: str, milliseconds: float) -> None:
            best[what] = min(best.get(what, float("inf")), milliseconds)

        for _ in range(ROUNDS):
            tab = browser.new_page(viewport={"width": 1440, "height": 900})
            tab.goto(path.as_uri(), timeout=PATIENCE)
            tab.wait_for_selector("#samples[data-ready]", timeout=PATIENCE)
            keep("ready to filter", tab.evaluate("performance.now()"))
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            keep("first contentful paint", tab.evaluate(paint))
            keep("filter by status", tab.evaluate(TIMED, ["status", "failed"]))
            tab.evaluate(TIMED, ["status", ""])
            keep("filter by category", tab.evaluate(TIMED, ["category", "refunds"]))
            tab.evaluate(TIMED, ["category", ""])
            keep("order by score", tab.evaluate(TIMED, ["order", "lowest"]))
            wanted = [f"1 of {SAMPLES:,} samples", f"None of {SAMPLES:,} samples"]
            keep("first search, through all texts", tab.evaluate(SEARCHED, ["needle", wanted[0]]))
            keep("second search", tab.evaluate(SEARCHED, ["nothing of that", wanted[1]]))
            tab.close()
        for what, milliseconds in best.items():
            waits = "; 120 ms of it wait for the next key" if "search" in what else ""
            report.add(f"report of {SAMPLES:,} samples: {what}", f"{milliseconds:.0f} ms{waits}")
