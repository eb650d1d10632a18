"""Every report that the commands write: readable by everybody, silent, and as wide as its window."""

import random
from pathlib import Path

import pytest
from tests.ab_rows import worked_example
from tests.browser import PATIENCE, chromium, violations
from tests.runs import run, single

from evenhand.ab import analyze
from evenhand.compare import Options, compare_runs, make_plan
from evenhand.compare.gate import run_gate
from evenhand.compare.planning import Cost, noise_from_rates
from evenhand.compare.policy import parse_policy
from evenhand.core.outcome import Failed, Scored, Tally, Unscored
from evenhand.evaluation.examples import Examples
from evenhand.evaluation.failures import ArtifactCollector
from evenhand.evaluation.report import RunReport
from evenhand.judging.calibration import Rated, calibrate
from evenhand.reports.ab import ab_page
from evenhand.reports.calibration import calibration_page
from evenhand.reports.comparison import comparison_page
from evenhand.reports.gate import gate_page
from evenhand.reports.plan import plan_page
from evenhand.reports.run import run_page
from evenhand.reports.scores import ScoredFile, score_page
from evenhand.results.bundle import BenchmarkSummary, Bundle, CategorySummary, MetricValue
from evenhand.scoring.summary import ScorerSummary
from evenhand.scoring.types import ScorerInput


def comparison(drop: float) -> str:
    draw = random.Random(1)
    sides = [
        {
            n: [float(draw.random() < level) if draw.random() > 0.02 else None for _ in range(3)]
            for n in range(40)
        }
        for level in (0.8, 0.8 - drop)
    ]
    category = {n: "even" if n % 2 else "odd" for n in range(40)}
    base, candidate = (run(side, category=category) for side in sides)
    return comparison_page(compare_runs(base, candidate, Options()))


def calibration() -> str:
    draw = random.Random(2)
    rated = []
    for n in range(200):
        good = draw.random() < 0.7
        judge = good if draw.random() < 0.9 else not good
        rated.append(Rated(judge=float(judge), human=float(good) if n % 4 == 0 else None))
    return calibration_page(calibrate(rated), source="scores.jsonl")


def scores() -> str:
    summary, examples = ScorerSummary(), Examples()
    for line in range(1, 31):
        outcome = (
            Scored(value=line / 30),
            Unscored(reason="no_expected_output"),
            Failed(error="scorer_error", message=""),
        )[line % 3]
        category = f"kind {line % 4}"
        summary.add(outcome, category=category, line=line, group=None)
        examples.add(
            outcome, ScorerInput(response=f"answer {line}", target="t"), category=category, line=line
        )
    return score_page(
        ScoredFile(
            name="answers.jsonl",
            rows=30,
            skipped=1,
            first_skips=["line 31: invalid JSON"],
            repeats_alone=True,
            scorers={"s": {"name": "s", "version": "1", "options": {"abs": 0.1}}},
            summaries={"s": summary},
            examples={"s": examples},
        )
    )


def evaluation() -> str:
    collector = ArtifactCollector()
    for sample in run(single([1.0, 0.0, None, 0.0])).samples:
        collector.add(sample)
    summary = BenchmarkSummary(
        name="bench",
        samples=4,
        scores={"mean_reward": MetricValue(value=0.33, ci_lower=0.1, ci_upper=0.7, method="wilson", n=3)},
        categories=[CategorySummary(category="a", mean_reward=None, n_samples=0, failed=1)],
        tally=Tally(scored=3, unscored=0, failed=1),
    )
    bundle = Bundle(benchmark=summary, config={"model": {"id": "m"}}, hashes={"dataset": "d"})
    parts = run_page(
        RunReport(
            bundle=bundle,
            failures=collector.analysis(),
            runtime=None,
            latencies=[0.1, 0.2, 0.4],
            output_tokens=[5.0, 7.0],
        )
    )
    return "".join(parts)


def gate() -> str:
    sides = [run(single([1.0] * right + [0.0] * (40 - right))) for right in (36, 20)]
    rules = parse_policy(
        "version: 1\nbenchmarks: {bench: {max_drop: 0.01}, absent: {}}\n", Path("policy.yaml")
    )
    return gate_page(run_gate({"bench": sides[0]}, {"bench": sides[1]}, rules))


PAGES = {
    "gate": gate,
    "comparison": lambda: comparison(0.0),
    "block": lambda: comparison(0.5),
    "ab": lambda: ab_page(analyze(worked_example())),
    "calibration": calibration,
    "plan": lambda: plan_page(make_plan(0.025, noise_from_rates(0.8, 0.1), cost=Cost(answer=0.004))),
    "scores": scores,
    "run": evaluation,
}


@pytest.mark.xdist_group("chromium")
def test_every_page_can_be_read_by_everybody(tmp_path: Path) -> None:
    said: list[str] = []
    with chromium() as browser:
        for name, make in PAGES.items():
            path = tmp_path / f"{name}.html"
            path.write_text(make(), encoding="utf-8")
            for width, dark in ((360, False), (1440, True)):
                tab = browser.new_page(
                    viewport={"width": width, "height": 800},
                    color_scheme="dark" if dark else "light",
                    bypass_csp=True,  # the checker is a script, and reports allow none
                )
                tab.on("console", lambda message: said.append(message.text))
                tab.goto(path.as_uri(), timeout=PATIENCE)
                tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
                assert tab.evaluate("document.documentElement.scrollWidth") == width, name
                assert violations(tab) == "", (name, width)
                assert said == [], name
                tab.close()
