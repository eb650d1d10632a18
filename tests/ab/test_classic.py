"""The A/B rule on two evaluation runs: what counts as a success, what as an infrastructure failure, what is refused."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from evenhand.ab.classic import classic_gate, records_of
from evenhand.core.errors import Incomparable, InputError
from evenhand.results import RunResults, SampleResult
from evenhand.results.bundle import BenchmarkSummary, Bundle
from evenhand.results.records import Usage


def sample(problem: int, reward: float | None, *, seconds: float | None = 1.0) -> SampleResult:
    usage = Usage(duration_seconds=seconds, input_tokens=10, output_tokens=5)
    return SampleResult(
        problem_idx=problem,
        repeat=0,
        reward=reward,
        status="failed" if reward is None else "scored",
        usage=usage,
    )


def run(rewards: list[float | None], *, seconds: float = 1.0, dataset: str = "d") -> RunResults:
    bundle = Bundle(benchmark=BenchmarkSummary(name="bench"), hashes={"dataset": dataset})
    samples = [sample(n, reward, seconds=seconds) for n, reward in enumerate(rewards)]
    return RunResults(path=Path("bench"), name="bench", samples=samples, bundle=bundle)


def test_half_the_points_is_no_success_and_no_score_is_an_infrastructure_failure() -> None:
    found = records_of(run([1.0, 0.5, 0.0, None]), "arm")
    assert [(r.task_id, r.repeat, r.success, r.infra_failure) for r in found] == [
        ("0", 1, True, False),
        ("1", 1, False, False),
        ("2", 1, False, False),
        ("3", 1, False, True),
    ]


def test_the_candidate_must_win_or_hold_all_three_gates() -> None:
    """Equal success and tokens; only the duration differs, so the quicker side is preferred."""
    quick, slow = run([1.0] * 6, seconds=1.0), run([1.0] * 6, seconds=2.0)
    assert classic_gate(slow, quick)[0].verdict == "GO"
    assert classic_gate(quick, slow)[0].verdict == "NO-GO"
    report, analysis = classic_gate(slow, quick)
    assert [gate.status for gate in report.gates] == ["PASS", "PASS", "PASS"]
    assert analysis.decision == "prefer candidate"
    assert report.sentence == "prefer candidate (not proven)."  # six problems: 3 · 2/2⁶ > 0.05


def test_runs_that_differ_are_refused_unless_forced() -> None:
    base, other = run([1.0] * 4), run([1.0] * 4, dataset="e")
    with pytest.raises(Incomparable):
        classic_gate(base, other)
    report, _ = classic_gate(base, other, force=True)
    assert any(note.startswith("compared by force although this differs: ") for note in report.notes)


def test_a_run_without_durations_is_refused() -> None:
    bare = RunResults(path=Path("bench"), name="bench", samples=[sample(0, 1.0, seconds=None)], bundle=None)
    with pytest.raises(InputError, match="problem 0 has none"):
        records_of(bare, "arm")


@pytest.mark.parametrize(
    ("seconds", "tokens", "verdict"), [(1.0, 4, "GO"), (1.02, 4, "INCONCLUSIVE"), (1.0, 8, "INCONCLUSIVE")]
)
def test_missing_base_samples_count_as_solved_at_no_cost(seconds: float, tokens: int, verdict: str) -> None:
    """Three of six base samples are missing: as 0 s and 0 tokens the medians are (0 + 2)/2 and (0 + 15)/2 = 7.5."""
    base = run([1.0, 1.0, 1.0, None, None, None], seconds=2.0)
    quick = run([1.0] * 6, seconds=seconds)
    candidate = replace(
        quick,
        samples=[
            replace(one, usage=Usage(duration_seconds=seconds, input_tokens=tokens, output_tokens=0))
            for one in quick.samples
        ],
    )
    report, analysis = classic_gate(base, candidate)
    assert analysis.decision == "prefer candidate"
    assert report.verdict == verdict


def test_unknown_tokens_are_missing_and_no_go() -> None:
    """Thirty of forty candidate samples without tokens: at worst their median has no limit."""
    base, quick = run([1.0] * 40, seconds=2.0), run([1.0] * 40, seconds=1.0)
    assert classic_gate(base, quick)[0].verdict == "GO"
    unknown = Usage(duration_seconds=1.0)
    samples = [replace(one, usage=unknown) if n >= 10 else one for n, one in enumerate(quick.samples)]
    report, _ = classic_gate(base, replace(quick, samples=samples))
    assert report.verdict == "INCONCLUSIVE"
    assert "tokens are known for 10 of the 40 samples that the candidate has scored" in report.notes
