"""The verifier recomputes the numbers of an audit file, names those that it does not, and notices changes."""

import ast
import gzip
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.ab_rows import worked_example
from tests.runs import run, single, usage, write_run

from evenhand.compare import Options, compare_runs
from evenhand.compare.audit import compare_audit, gate_audit
from evenhand.compare.family import correct_together
from evenhand.compare.gate import run_gate
from evenhand.compare.policy import parse_policy
from evenhand.core import jsontext
from evenhand.core.errors import InputError
from evenhand.results import RunResults

TOOL = Path(__file__).resolve().parents[2] / "tools" / "verify_verdict.py"
ORDER = ["PASS", "WARN", "INCONCLUSIVE", "BLOCK"]


def verify(path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The verifier as its user runs it, without this package: -I hides it and everything installed by the user."""
    return subprocess.run(
        [sys.executable, "-I", "-S", TOOL, str(path), *more], capture_output=True, text=True, timeout=600
    )


def load_tool() -> ModuleType:
    """The same in this process, where thousands of files would start thousands of interpreters."""
    spec = importlib.util.spec_from_file_location("verify_verdict", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def evenhand(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evenhand", *map(str, args)], capture_output=True, text=True, timeout=300
    )


def world(rng: np.random.Generator) -> tuple[RunResults, RunResults]:
    """Two runs: yes-or-no, graded, marks up to 5 or all alike; repeats, gaps and categories now and then."""
    n, repeats = int(rng.integers(2, 70)), int(rng.choice([1, 1, 1, 2, 3]))
    kind = str(rng.choice(["binary", "graded", "marks", "constant"]))
    easy, shift, gaps = rng.beta(2, 1, n), float(rng.normal(0, 0.1)), float(rng.choice([0, 0, 0.02, 0.2]))

    def score(side: int, problem: int) -> float | None:
        if problem > 1 and rng.random() < gaps:
            return None
        chance = float(np.clip(easy[problem] + side * shift, 0, 1))
        if kind == "binary":
            return float(rng.random() < chance)
        if kind == "graded":
            return round(float(np.clip(chance + rng.normal(0, 0.1), 0, 1)), 4)
        if kind == "marks":
            return float(rng.integers(0, 6))
        return 0.5 + side * 0.25

    category = {i: "abc"[i % 3] for i in range(n)} if rng.random() < 0.3 else None
    base, candidate = (
        run({i: [score(side, i) for _ in range(repeats)] for i in range(n)}, category=category)
        for side in (0, 1)
    )
    return base, candidate


def in_passages(one: RunResults, passages: int) -> RunResults:
    return replace(
        one,
        samples=[
            replace(sample, metadata={**sample.metadata, "passage": f"p{sample.problem_idx % passages}"})
            for sample in one.samples
        ],
    )


def audits(seed: int) -> list[dict[str, Any]]:
    """The audit of one comparison (of one to three benchmarks, in clusters or not) and of one gate."""
    rng = np.random.default_rng(seed)
    pairs = [world(rng) for _ in range(int(rng.choice([1, 1, 1, 3])))]
    field = "passage" if rng.random() < 0.2 else None
    if field:
        count = int(rng.integers(2, 6))
        pairs = [(in_passages(a, count), in_passages(b, count)) for a, b in pairs]
    options = Options(max_drop=float(rng.choice([0, 0.02, 0.05, 0.2])), cluster_field=field)
    try:
        found = correct_together([compare_runs(a, b, options) for a, b in pairs], options)
    except InputError:  # too few problems to compare
        return []
    verdict = max((one.verdict.name for one in found), key=ORDER.index)
    policy = parse_policy(f"version: 1\nbenchmarks: {{a: {{max_drop: {options.max_drop}}}}}")
    base, candidate = {"a": pairs[0][0]}, {"a": pairs[0][1]}
    report = run_gate(base, candidate, policy, cluster_field=field)
    return [
        compare_audit(found, pairs, options, verdict=verdict, left_out=[], inputs=[]),
        gate_audit(report, base, candidate, policy, cluster_field=field, inputs=[]),
    ]


def check_seeds(seeds: range, folder: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """How many audits agree in every number; each of them must."""
    tool, done, file = load_tool(), 0, folder / "audit.json"
    for seed in seeds:
        for audit in audits(seed):
            file.write_bytes(jsontext.encode(audit))
            status = tool.main([str(file)])
            told = capsys.readouterr()
            assert status == 0, (seed, audit["kind"], told)
            assert "not recomputed: 0 numbers\n" in told.out, (seed, told)
            done += 1
    return done


@pytest.mark.parametrize("part", range(3))
def test_the_verifier_agrees_with_generated_comparisons(
    part: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_seeds(range(part * 8, part * 8 + 8), tmp_path, capsys) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_the_verifier_agrees_with_a_thousand_generated_comparisons(
    part: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At least 200 audits in each of five parts."""
    assert check_seeds(range(1_000 + part * 105, 1_105 + part * 105), tmp_path, capsys) >= 200


def test_a_changed_number_is_noticed(tmp_path: Path) -> None:
    audit = json.loads(jsontext.encode(audits(3)[0]))
    for name in ("p_drop", "p_beyond", "problems"):
        changed = json.loads(json.dumps(audit))
        changed["comparisons"][0]["result"][name] = changed["comparisons"][0]["result"][name] * 0.9 + 0.01
        (tmp_path / "a.json").write_text(json.dumps(changed))
        assert verify(tmp_path / "a.json").returncode == 1
    changed = json.loads(json.dumps(audit))
    row = next(row for row in changed["comparisons"][0]["samples"]["base"] if row[2] == "scored")
    row[3] = 1.0 - row[3] if row[3] in (0, 1) else row[3] / 2
    (tmp_path / "a.json").write_text(json.dumps(changed))
    assert "DIFFERS" in verify(tmp_path / "a.json").stdout


def number_places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from number_places(value, (*at, key))
    elif isinstance(tree, int | float):
        yield at


def put(tree: Any, at: tuple[Any, ...], value: Any) -> Any:
    """The value that was there before."""
    for key in at[:-1]:
        tree = tree[key]
    before, tree[at[-1]] = tree[at[-1]], value
    return before


@pytest.mark.parametrize("kind", ["compare", "gate"])
def test_every_number_is_recomputed(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One number after the other is changed, in an audit of two benchmarks (gaps, categories, repeats, grades)."""
    tool = load_tool()
    kinds = {i: "ab"[i % 2] for i in range(8)}
    plain = [single([1.0, 0, 1, 1, 0, 1, 0, 1]), single([1.0, 1, 1, 0, 0, 0, 1, None])]
    grades = [
        {i: [0.1 * i, 0.11 * i] for i in range(8)},
        {i: [0.05 * i, 0.12 * i - 0.02 * (i > 4)] for i in range(8)},
    ]
    for side, one, two in zip(("base", "candidate"), plain, grades, strict=True):
        write_run(tmp_path / side / "a", one, name="a", category=kinds)
        write_run(tmp_path / side / "b", two, name="b", category=kinds)
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nbenchmarks: {a: {max_drop: 0.05}, b: {max_drop: 0.02, tier: advisory}}\n")
    more = ["--policy", str(policy)] if kind == "gate" else []
    file = tmp_path / "audit.json"
    assert evenhand(kind, tmp_path / "base", tmp_path / "candidate", *more, "--audit", file).stderr == ""
    audit = json.loads(file.read_text())
    assert tool.main([str(file)]) == 0
    assert "not recomputed: 0 numbers\n" in capsys.readouterr().out
    changed = 0
    part = "comparisons" if kind == "compare" else "result"
    for at in number_places(audit[part], (part,)):
        names = [key for key in at if isinstance(key, str)][1:]
        if kind == "compare" and names[0] != "result":
            continue  # the samples: what everything is recomputed from
        for change in (lambda x: x * 1.3 + 0.07, lambda _: float("nan"), lambda _: float("inf")):
            before = put(audit, at, 0)
            put(audit, at, not before if isinstance(before, bool) else change(before))
            file.write_text(json.dumps(audit))
            assert tool.main([str(file)]) in (1, 65), at
            put(audit, at, before)
        changed += 1
    assert changed >= (100 if kind == "compare" else 25)


def test_a_forged_verdict_is_noticed(tmp_path: Path) -> None:
    """BLOCK to PASS by the copies in `evidence`, NO-GO to GO by the tier or by leaving the result out."""
    for side, right in (("base", 60), ("worse", 30)):
        write_run(tmp_path / side / "x", single([1.0] * right + [0.0] * (100 - right)), name="x")
        write_run(tmp_path / side / "y", single([1.0] * 400), name="y")
    policy, file = tmp_path / "policy.yaml", tmp_path / "audit.json"
    policy.write_text("version: 1\nbenchmarks: {x: {max_drop: 0.05, tier: critical}, y: {max_drop: 0.05}}\n")
    evenhand("compare", tmp_path / "base/x", tmp_path / "worse/x", "--audit", file)
    audit = json.loads(file.read_text())
    assert audit["verdict"] == "BLOCK"
    result = audit["comparisons"][0]["result"]
    result.update(p_drop=0.9, p_beyond=0.0001)
    result["verdict"]["name"] = audit["verdict"] = "PASS"
    file.write_text(json.dumps(audit))
    told = verify(file)
    assert told.returncode == 1
    assert "DIFFERS overall verdict: the file says 'PASS', recomputed 'BLOCK'" in told.stdout
    assert "x: p_drop: the file says 0.9" in told.stdout
    evenhand("gate", tmp_path / "base", tmp_path / "worse", "--policy", policy, "--audit", file)
    honest = file.read_text()
    for forged in ("tier", "left out", "missing"):
        audit = json.loads(honest)
        assert audit["verdict"] == "NO-GO"
        gates = audit["result"]["gates"]
        for gate in gates:
            gate["p_adjusted"] = gate["p_value"]
        bad = next(gate for gate in gates if gate["benchmark"] == "x")
        if forged == "tier":
            bad["tier"] = "advisory"
        elif forged == "left out":
            gates.remove(bad)
        else:
            bad["status"] = "MISSING"
        audit["verdict"] = audit["result"]["verdict"] = "GO"
        file.write_text(json.dumps(audit))
        told = verify(file)
        assert told.returncode == 1, told.stderr
        if forged != "left out":
            assert "DIFFERS verdict: the file says 'GO', recomputed 'NO-GO'" in told.stdout


def test_forged_arms_are_noticed_and_unreadable_records_are_named(tmp_path: Path) -> None:
    records, file = tmp_path / "collected.jsonl.gz", tmp_path / "audit.json"
    records.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in worked_example()).encode()))
    assert evenhand("ab", "analyze", records, "--audit", file).returncode == 0
    told = verify(file)
    assert told.returncode == 0, told.stdout + told.stderr
    left = told.stdout.partition("not recomputed: ")[2].splitlines()[0].partition(": ")[2].split(", ")
    named = {place.partition(" ")[0].partition(".")[0] for place in left}
    assert named == {"data_quality", "readiness"}
    steps = " ".join(json.loads(file.read_text())["steps"])
    assert all(name in steps for name in named)
    honest = file.read_text()
    for at, value in (
        (("verdict",), "prefer with_tool"),
        (("result", "decision"), "prefer with_tool"),
        (("result", "tests", "pass_delta", "by_task_p_value"), 1e-9),
        (("result", "tests", "pass_delta", "p_holm"), 1e-9),
        (("result", "tests", "pass_delta", "proven"), True),
        (("result", "gates", 0, "proven"), True),
        (("result", "gates", 2, "holds"), True),
        (("result", "intervals", "pass_delta", "mean", "ci_lower"), 0.2),
        (("result", "intervals", "cost_delta_usd", "mean", "ci_upper"), 0.2),
        (("result", "intervals", "pass_delta", "mean"), None),
        (("result", "intervals", "cost_delta_usd", "mean_bootstrap", "ci_upper"), 0.5),
        (("result", "intervals", "duration_delta_seconds", "median_bootstrap", "ci_lower"), -9.0),
        (("result", "diagnostics", 0, "mean"), 1.0),
        (("result", "task_count"), 99),
        (("result", "n_resamples"), 99),
        (("result", "arm_summaries", 0, "solved_per_dollar"), 9.0),
    ):
        audit = json.loads(honest)
        put(audit, at, value)
        file.write_text(json.dumps(audit))
        assert verify(file).returncode == 1, at
    file.write_text(honest)
    records.write_bytes(records.read_bytes()[:40])
    told = verify(file)
    assert (told.returncode, told.stderr.count("\n")) == (65, 1)
    assert "DIFFERS digest of" in told.stdout
    records.unlink()
    told = verify(file)
    assert (told.returncode, told.stderr.count("\n")) == (66, 1)
    assert "is not there" in told.stderr


def spending(seconds: float) -> Any:
    return usage(tokens=200, cost=0.1, seconds=seconds)


@pytest.mark.parametrize(
    ("base", "candidate", "verdict"),
    [
        ((60, 0, 3.1), (70, 2, 2.3), "GO"),
        ((70, 2, 2.3), (60, 0, 3.1), "NO-GO"),
        ((60, 0, 3.1), (70, 20, 2.3), "GO"),  # too much is missing, but the gates hold in the worst case
        ((60, 0, 3.1), (55, 43, 3.1), "INCONCLUSIVE"),  # a high rate of the few that did not fail
    ],
)
def test_the_classic_rule_is_recomputed_from_the_samples(
    base: tuple[int, int, float],
    candidate: tuple[int, int, float],
    verdict: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of each side: how many of 100 are right, how many failed, and the seconds of each."""
    for name, (right, failed, seconds) in (("base", base), ("candidate", candidate)):
        scores = [1.0] * right + [0.0] * (100 - right - failed) + [None] * failed
        write_run(tmp_path / name, single(scores), usage=spending(seconds))
    file = tmp_path / "audit.json"
    gate = ("gate", tmp_path / "base", tmp_path / "candidate", "--policy", "classic")
    assert evenhand(*gate, "--audit", file).stderr == ""
    honest = json.loads(file.read_text())
    assert honest["verdict"] == verdict
    tool = load_tool()
    assert tool.main([str(file), "--inputs"]) == 0
    assert capsys.readouterr().out.startswith(f"classic {verdict}: ")
    for at, value, place in (
        (("verdict",), "MAYBE", "verdict"),
        (("gates", 0, "candidate"), 0.9, "gates.0.candidate"),
        (("gates", 1, "status"), "?", "gates.1.status"),
        (("result", "gates", 2, "treatment"), 9.0, "gates.2.treatment"),
        (("result", "tests", "duration_delta_seconds", "p_holm"), 0.5, "tests.duration_delta_seconds.p_holm"),
        (("result", "paired", "mean_pass_delta"), 0.5, "paired.mean_pass_delta"),
        (("result", "task_count"), 99, "task_count"),
    ):
        forged = json.loads(json.dumps(honest))
        put(forged, at, value)
        file.write_text(json.dumps(forged))
        assert tool.main([str(file)]) == 1, at
        assert f"DIFFERS {place}: the file says {value!r}" in capsys.readouterr().out


def test_the_commands_write_audits_that_verify_with_their_inputs(tmp_path: Path) -> None:
    spent = usage(tokens=200, cost=0.1, seconds=3.0)
    base = write_run(tmp_path / "base", single([1.0] * 60 + [0.0] * 40), usage=spent)
    worse = write_run(tmp_path / "worse", single([1.0] * 40 + [0.0] * 55 + [None] * 5), usage=spent)
    audit = tmp_path / "audit.json"
    assert evenhand("compare", base, worse, "--audit", audit).returncode == 0
    told = verify(audit, "--inputs")
    assert told.returncode == 0, told.stdout
    assert told.stdout.startswith("compare BLOCK: ")
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nbenchmarks:\n  bench:\n    metrics:\n      mean_reward: {max_drop: 0.05}\n"
        "      pass@1: {max_drop: 0.1}\n      cost: {max_relative_drop: 0.1}\n  other: {tier: advisory}\n"
    )
    assert evenhand("gate", base, worse, "--policy", policy, "--audit", audit).returncode == 1
    told = verify(audit, "--inputs")
    assert told.returncode == 0, told.stdout
    (base / "results.jsonl").write_text((base / "results.jsonl").read_text() + "\n")
    assert "DIFFERS digest of" in verify(audit, "--inputs").stdout
    records = tmp_path / "collected.jsonl"
    records.write_text("".join(json.dumps(row) + "\n" for row in worked_example()))
    assert evenhand("ab", "analyze", records, "--audit", audit).returncode == 0
    told = verify(audit, "--inputs")
    assert told.returncode == 0, told.stdout
    assert told.stdout.startswith("ab ")


def test_what_is_no_audit_file_is_65(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert verify(tmp_path / "x.json").returncode == 65
    assert verify(tmp_path / "none.json").returncode == 66


def test_the_verifier_is_one_short_file_of_the_standard_library() -> None:
    assert [file.name for file in TOOL.parent.glob("*.py")] == ["verify_verdict.py"]
    text = TOOL.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 600
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
    }
    assert imported <= sys.stdlib_module_names
