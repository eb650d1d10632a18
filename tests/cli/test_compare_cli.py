"""`evenhand compare`, `gate` and `plan` as a person meets them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.browser import PATIENCE, chromium
from tests.runs import single, usage, write_run


def evenhand(*args: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evenhand", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)


def scores(right: int, total: int) -> dict[int, list[float | None]]:
    return single([1.0] * right + [0.0] * (total - right))


def test_the_same_score_on_20_and_on_1000_problems_prints_different_certainty(tmp_path: Path) -> None:
    """Wilson for 17/20: 0.64 to 0.95; for 850/1,000: 0.83 to 0.87."""
    printed = {}
    for right, total in ((17, 20), (850, 1000)):
        base = write_run(tmp_path / f"a{total}", scores(right, total))
        done = evenhand(
            "compare", base, write_run(tmp_path / f"b{total}", scores(right, total)), "--format", "json"
        )
        mean = json.loads(done.stdout)["comparisons"][0]["candidate"]["mean"]
        assert mean["value"] == 0.85
        printed[total] = mean["ci_upper"] - mean["ci_lower"]
    assert printed[20] > 5 * printed[1000]


def test_verdicts_are_the_exit_status_only_when_strict(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base", scores(180, 200))
    worse = write_run(tmp_path / "worse", scores(120, 200))
    assert evenhand("compare", base, worse).returncode == 0
    strict = evenhand("compare", base, worse, "--strict", "--show-flips")
    assert strict.returncode == 1
    assert strict.stdout.startswith("BLOCK bench: The candidate is really worse: by 30.0 points")
    assert "Flipped problems (20 of 60)" in strict.stdout
    assert evenhand("compare", base, base, "--strict").returncode == 0
    small = write_run(tmp_path / "small", scores(9, 10)), write_run(tmp_path / "small2", scores(8, 10))
    assert evenhand("compare", *small, "--strict", "--max-drop", "0.01").returncode == 2


def test_refusals_say_what_differs_and_what_to_do(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base", scores(9, 10), hashes={"judge": "a" * 64})
    other = write_run(tmp_path / "other", scores(9, 10), hashes={"judge": "b" * 64})
    done = evenhand("compare", base, other)
    assert done.returncode == 65
    assert "not comparable: the judge (aaaaaaaaaaaa against bbbbbbbbbbbb)" in done.stderr
    assert "evenhand eval rescore" in done.stderr
    assert evenhand("compare", base, other, "--force").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "nowhere"], "nowhere: no such file or folder"),
        (["{base}"], "at least two runs"),
        (["{base}", "{base}", "--report", "out.pdf"], "--report writes .md or .html"),
        (["{base}", "{base}", "--max-drop", "-1"], "max_drop must be a finite number of at least 0"),
    ],
)
def test_bad_input_is_a_sentence(tmp_path: Path, arguments: list[str], message: str) -> None:
    base = write_run(tmp_path / "base", scores(9, 10))
    done = evenhand("compare", *(argument.format(base=base) for argument in arguments))
    assert done.returncode in (64, 66)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_nemo_folders_load_and_compare(tmp_path: Path) -> None:
    """Made by hand from the documented layout: no status, no digests, the category in the scoring details."""
    for side, rewards in (("base", [1.0, 1.0, 0.0]), ("candidate", [1.0, 0.0, 1.0])):
        folder = tmp_path / side / "gsm8k"
        folder.mkdir(parents=True)
        rows = [
            {"problem_idx": i, "reward": r, "repeat": 0, "scoring_details": {"category": "x"}}
            for i, r in enumerate(rewards)
        ]
        (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "eval-gsm8k.json").write_text(
            json.dumps(
                {
                    "run_id": side,
                    "config": {},
                    "benchmark": {
                        "name": "gsm8k",
                        "samples": 3,
                        "scores": {"mean_reward": {"value": sum(rewards) / 3}},
                    },
                }
            )
        )
    done = evenhand("compare", tmp_path / "base", tmp_path / "candidate", "--format", "json")
    found = json.loads(done.stdout)["comparisons"][0]
    assert (found["improved"], found["regressed"], found["problems"]) == (1, 1, 3)
    assert any("cannot be checked" in words for words in found["caveats"])


def test_real_annotations_agree_with_the_published_difference(shared_data: Path, tmp_path: Path) -> None:
    """Win rate is the mean of preference − 1; both models answered the same 805 instructions."""
    folder = shared_data / "alpaca_eval"
    published = {}
    for line in (folder / "leaderboard.csv").read_text().splitlines()[1:]:
        model, win_rate, *_ = line.split(",")
        published[model] = float(win_rate) / 100
    rewards = {}
    for model in ("vicuna-7b", "vicuna-13b"):
        rows = json.loads((folder / f"{model}.json").read_text())
        rewards[model] = {
            row["instruction_sha1"]: float(row["preference"]) - 1 for row in rows if row["preference"]
        }
    shared = sorted(rewards["vicuna-7b"].keys() & rewards["vicuna-13b"].keys())
    assert len(shared) == 805
    runs = [
        write_run(tmp_path / model, {i: [rewards[model][key]] for i, key in enumerate(shared)})
        for model in rewards
    ]
    found = json.loads(evenhand("compare", *runs, "--format", "json").stdout)["comparisons"][0]
    delta, unpaired = found["delta"], found["unpaired_delta"]
    assert delta["value"] == pytest.approx(published["vicuna-13b"] - published["vicuna-7b"], abs=1e-9)
    assert delta["ci_upper"] - delta["ci_lower"] < unpaired["ci_upper"] - unpaired["ci_lower"]


def test_several_runs_are_a_table(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / name, scores(right, 300)) for name, right in (("a", 250), ("b", 248), ("c", 100))
    ]
    done = evenhand("compare", *runs)
    assert done.returncode == 0
    assert "3 runs on 300 shared problems" in done.stdout
    assert "cannot be told apart" in done.stdout


def test_a_growing_pair_may_be_looked_at(tmp_path: Path) -> None:
    """120 of 400 lost: proven early. A gap stops the count: problem 50 is missing, so 50 problems count."""
    base, worse = (
        write_run(tmp_path / "base", scores(400, 400)),
        write_run(tmp_path / "worse", scores(280, 400)),
    )
    reversed_ = write_run(tmp_path / "reversed", {i: [float(i % 10 >= 3)] for i in range(400)})
    done = json.loads(evenhand("compare", base, reversed_, "--sequential", "--format", "json").stdout)
    assert done["verdict"] == "BLOCK"
    assert done["comparisons"][0]["decided_at"] < 400
    partial = write_run(tmp_path / "partial", {i: [1.0] for i in range(100) if i != 50})
    looked = json.loads(evenhand("compare", base, partial, "--sequential", "--format", "json").stdout)[
        "comparisons"
    ][0]
    assert (looked["problems"], looked["waiting"]) == (50, 49)
    assert evenhand("compare", base, worse, "--sequential", "--strict").returncode in (1, 2)


@pytest.mark.xdist_group("chromium")
def test_the_html_report_shows_answers_side_by_side_and_runs_nothing(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base", scores(9, 10))
    hostile = write_run(tmp_path / "hostile", scores(5, 10))
    text = (hostile / "results.jsonl").read_text().replace("answer 0.0", "<img src=x onerror=alert(1)>")
    (hostile / "results.jsonl").write_text(text)
    page, markdown = tmp_path / "out.html", tmp_path / "out.md"
    assert evenhand("compare", base, hostile, "--report", page).returncode == 0
    assert evenhand("compare", base, hostile, "--report", markdown).returncode == 0
    assert "<img" not in markdown.read_text().replace("\\<img", "")
    with chromium() as browser:
        tab = browser.new_page()
        dialogs: list[str] = []
        tab.on("dialog", lambda dialog: dialogs.append(dialog.message))
        tab.goto(page.as_uri(), timeout=PATIENCE)
        tab.locator(".folds details summary").first.click()
        assert "<img src=x onerror=alert(1)>" in tab.locator(".folds details").first.inner_text()
        assert dialogs == []
        for width, beside in ((1200, True), (390, False)):
            tab.set_viewport_size({"width": width, "height": 800})
            left, right = (
                tab.locator(".folds details").first.locator(".columns > div").nth(n).bounding_box()
                for n in (0, 1)
            )
            assert left is not None
            assert right is not None
            assert (left["y"] == right["y"]) is beside
            assert tab.evaluate("document.documentElement.scrollWidth") == width


POLICY = "version: 1\ndefaults: {max_drop: 0.05}\nbenchmarks: {bench: {tier: critical}}\n"


def test_gate_verdicts_are_the_exit_status_and_every_format_agrees(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    base, worse = (
        write_run(tmp_path / "base", scores(900, 1000)),
        write_run(tmp_path / "worse", scores(700, 1000)),
    )
    assert evenhand("gate", base, base, "--policy", policy).returncode == 0
    summary = tmp_path / "summary.md"
    done = evenhand(
        "gate", base, worse, "--policy", policy, "--junit", tmp_path / "g.xml", "--report", tmp_path / "g.md", "--github-summary",
        env={"GITHUB_STEP_SUMMARY": str(summary), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("NO-GO Do not ship: bench dropped by more than is tolerated.")
    assert ElementTree.parse(tmp_path / "g.xml").find(".//failure") is not None
    assert "NO-GO" in (tmp_path / "g.md").read_text()
    assert summary.read_text() == (tmp_path / "g.md").read_text()
    assert (
        json.loads(evenhand("gate", base, worse, "--policy", policy, "--format", "json").stdout)["verdict"]
        == "NO-GO"
    )
    policy.write_text(POLICY.replace("bench:", "other:"))
    missing = evenhand("gate", base, worse, "--policy", policy)
    assert missing.returncode == 1
    assert "'bench' was run but is not in the policy" in missing.stdout


def test_a_bad_policy_is_named_with_file_and_line(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefaults:\n  max_dorp: 1\n")
    base = write_run(tmp_path / "base", scores(9, 10))
    done = evenhand("gate", base, base, "--policy", policy)
    assert done.returncode == 65
    assert f"{policy}:3: unknown key 'max_dorp'" in done.stderr


def test_the_classic_rule_is_a_policy(tmp_path: Path) -> None:
    """The candidate is as good, quicker and shorter: prefer it. The other way round: keep the base."""
    slow = write_run(tmp_path / "slow", scores(9, 10), usage=usage(tokens=200, cost=0.1, seconds=3.0))
    quick = write_run(tmp_path / "quick", scores(9, 10), usage=usage(tokens=100, cost=0.1, seconds=1.0))
    assert evenhand("gate", slow, quick, "--policy", "classic").returncode == 0
    assert evenhand("gate", quick, slow, "--policy", "classic").returncode == 1
    bare = write_run(tmp_path / "bare", scores(9, 10))
    refused = evenhand("gate", bare, quick, "--policy", "classic")
    assert refused.returncode == 65
    assert "needs durations and tokens" in refused.stderr


def test_the_classic_rule_is_told_in_every_format_and_refuses_what_differs(tmp_path: Path) -> None:
    spent = usage(tokens=200, cost=0.1, seconds=3.0)
    base = write_run(tmp_path / "base", scores(9, 10), usage=spent, hashes={"dataset": "a"})
    other = write_run(tmp_path / "other", scores(8, 10), usage=spent, hashes={"dataset": "b"})
    gate = ("gate", base, other, "--policy", "classic")
    assert "the dataset (a against b)" in evenhand(*gate).stderr
    xml, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    done = evenhand(*gate, "--force", "--junit", xml, "--report", markdown, "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (1, "NO-GO")
    assert 'tests="3" failures="1" errors="0"' in xml.read_text()
    assert "compared by force although this differs: the dataset" in markdown.read_text()


def test_options_that_would_do_nothing_are_refused(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, scores(9, 10)) for name in "abc"]
    for option in ("--strict", "--show-flips", "--sequential"):
        assert "are for two runs" in evenhand("compare", *runs, option).stderr
    done = evenhand("compare", *runs[:2], "--sequential", "--report", tmp_path / "out.md")
    assert done.returncode == 64
    assert "it has no flips and no report" in done.stderr


def test_plans_from_assumptions_and_from_a_pilot(tmp_path: Path) -> None:
    done = evenhand("plan", "--effect", "0.025", "--discordant", "0.10")
    assert "problems × 1 repeat on each side show a difference of 2.5 points with 80% power" in done.stdout
    rng = np.random.default_rng(3)
    pilots = [
        write_run(tmp_path / name, {i: list(map(float, rng.random(4) < 0.7)) for i in range(50)})
        for name in ("p", "q")
    ]
    page = tmp_path / "plan.html"
    planned = json.loads(
        evenhand(
            "plan", *pilots, "--effect", "0.05", "--answer-cost", "0.01", "--report", page, "--format", "json"
        ).stdout
    )
    assert planned["plans"][0]["power"] >= 0.8
    assert "Power to see 5.0 points" in page.read_text()
    assert [one["lever"] for one in planned["reductions"]] == ["items", "repeats", "judgements"]
    done = evenhand("plan", *pilots, "--effect", "0.05", "--rejudged", pilots[0])
    assert done.returncode == 0, done.stderr
    assert "A standard error smaller by 10% would take one of:" in done.stdout
    assert "answers judged twice" in done.stdout
    assert (
        "needs the pilot run"
        in evenhand("plan", "--effect", "0.1", "--base-score", "0.8", "--rejudged", pilots[0]).stderr
    )
    assert "USD" not in done.stdout


def test_a_plan_from_nothing_states_its_spread_and_has_no_cost(tmp_path: Path) -> None:
    """Yes-or-no scores at 0.5, independent: variance 0.5 per difference; n = 0.5 (1.645 + 0.842)²/0.02² = 7,728."""
    page = tmp_path / "plan.html"
    done = evenhand("plan", "--effect", "0.02", "--report", page)
    assert done.returncode == 0, done.stderr
    assert re.match(r"7,7[23]\d problems × 1 repeat on each side", done.stdout)
    assert "yes-or-no scores around 0.5" in done.stdout
    assert "USD" not in done.stdout
    assert "cost" not in page.read_text().split("</style>")[1]
    planned = json.loads(evenhand("plan", "--effect", "0.02", "--format", "json").stdout)
    assert planned["plans"][0]["cost_usd"] is None
    assert "cost (USD)" in evenhand("plan", "--effect", "0.02", "--answer-cost", "0.01").stdout


def test_every_problem_and_every_absence_is_in_the_reports(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base", single([1.0, 0.0, 1.0, None]))
    candidate = write_run(tmp_path / "candidate", single([1.0, 1.0, None, 1.0]))
    page, markdown = tmp_path / "out.html", tmp_path / "out.md"
    done = evenhand("compare", base, candidate, "--report", page)
    evenhand("compare", base, candidate, "--report", markdown)
    assert "Not compared (2 of 2)" in done.stdout
    assert re.search(r"^3 +0 +failed +scored", done.stdout, re.MULTILINE)
    assert "### Not compared (2 of 2)" in markdown.read_text()
    assert "| 3 | 0 | failed | scored |" in markdown.read_text()
    assert "<summary>2 problems</summary>" in page.read_text()
    assert "+1.000" in page.read_text()


def test_a_benchmark_that_the_candidate_lacks_is_named_with_the_overall_verdict(tmp_path: Path) -> None:
    """What was not run may have fallen: one PASS of two benchmarks is INCONCLUSIVE, wherever one reads it."""
    for side, names in (("base", ("kept", "lost")), ("candidate", ("kept",))):
        for name in names:
            write_run(tmp_path / side / name, scores(300, 400), name=name)
    sides = tmp_path / "base", tmp_path / "candidate"
    report = tmp_path / "out.md"
    done = evenhand("compare", *sides, "--strict", "--report", report)
    assert done.returncode == 2
    for text in (done.stdout, report.read_text()):
        assert "Overall: INCONCLUSIVE" in text
        assert "could not be compared: lost." in text
    found = json.loads(evenhand("compare", *sides, "--format", "json").stdout)
    assert (found["verdict"], found["left_out"]) == ("INCONCLUSIVE", ["lost"])
    assert [one["verdict"]["name"] for one in found["comparisons"]] == ["PASS"]
    page = evenhand("compare", *sides, "--report", tmp_path / "out.html")
    assert page.returncode == 64  # an HTML page holds one benchmark and would hide the other


def test_looking_at_folders_does_not_forget_a_benchmark_that_one_side_lacks(tmp_path: Path) -> None:
    for side, names in (("base", "ab"), ("candidate", "a")):
        for name in names:
            write_run(tmp_path / side / name, single([1.0, 0.0] * 200), name=name)
    looked = evenhand("compare", tmp_path / "base", tmp_path / "candidate", "--sequential", "--strict")
    assert looked.returncode == 2
    assert "Only on one side, not compared: b" in looked.stderr
    assert "Overall: INCONCLUSIVE" in looked.stdout
    done = evenhand("compare", tmp_path / "base", tmp_path / "candidate", "--sequential", "--format", "json")
    assert json.loads(done.stdout)["verdict"] == "INCONCLUSIVE"
    assert json.loads(done.stdout)["left_out"] == ["b"]


def test_a_gates_report_is_what_its_name_says(tmp_path: Path) -> None:
    base, worse = (
        write_run(tmp_path / "base", scores(180, 200)),
        write_run(tmp_path / "worse", scores(120, 200)),
    )
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nbenchmarks: {bench: {tier: critical, max_drop: 0.01}}\n")
    page, markdown = tmp_path / "gate.html", tmp_path / "gate.md"
    for report in (page, markdown):
        assert evenhand("gate", base, worse, "--policy", policy, "--report", report).returncode == 1
    assert page.read_text().startswith("<!doctype html>")
    assert "<h2>NO-GO</h2>" in page.read_text()
    assert "✕ BREACH" in page.read_text()
    assert markdown.read_text().startswith("## ")
    done = evenhand("gate", base, worse, "--policy", policy, "--report", tmp_path / "gate.pdf")
    assert done.returncode == 64
    assert ".md or .html" in done.stderr


def _judgements(path: Path, judge: str, scores: list[float]) -> Path:
    rows = [
        {
            "problem_idx": number,
            "reward": score,
            "status": "scored",
            "scoring_details": {"judge": {"identity": judge, "model": "m"}},
        }
        for number, score in enumerate(scores)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_files_of_judgements_compare_when_the_judge_is_the_same(tmp_path: Path) -> None:
    base = _judgements(tmp_path / "a.jsonl", "judge-1", [1.0] * 40)
    same = _judgements(tmp_path / "b.jsonl", "judge-1", [1.0, 0.0] * 20)
    other = _judgements(tmp_path / "c.jsonl", "judge-2", [1.0] * 40)
    done = evenhand("compare", base, same, "--format", "json")
    assert json.loads(done.stdout)["verdict"] == "BLOCK"
    assert "its judge can be checked, its data cannot" in done.stdout
    refused = evenhand("compare", base, other)
    assert refused.returncode == 65
    assert "the judge" in refused.stderr
