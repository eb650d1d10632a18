"""Why samples have no score: equal causes are one line with a count, and the advice fits the error."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.evaluation.runs import evenhand

from evenhand.evaluation.causes import KEPT_CAUSES, MOST_CAUSES, Causes, advice_for, same_cause
from evenhand.evaluation.failures import ArtifactCollector, combined
from evenhand.results.records import SampleError, SampleResult
from evenhand.testing import MockAnswer, MockCall, MockModel, with_nonce

BENCH = """
from evenhand import ScorerInput, benchmark, exact_match, needs_judge, scorer

def rows():
    return [{"q": f"question {n}", "target": "B"} for n in range(12)]

@benchmark(name="plain", dataset=rows, prompt="{q}")
@scorer
def plain(sample: ScorerInput):
    if sample.response == "raise":
        raise KeyError("units")
    return exact_match(sample)

@benchmark(name="judged", dataset=rows, prompt="{q}", judge="default")
@scorer
def judged(sample: ScorerInput):
    return needs_judge(sample)
"""


def failed(kind: str, message: str, status: str = "failed", **details: object) -> SampleResult:
    return SampleResult(
        problem_idx=0,
        status=status,  # type: ignore[arg-type]  # one of the three
        error=SampleError(kind=kind, message=message),
        scoring_details=details,
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "the endpoint answered 429: Limit 10000, Used 9953, Requested 101. Please try again in 324ms.",
            "the endpoint answered 429: Limit 10000, Used 12, Requested 9991. Please try again in 1.2s.",
        ),
        ("no reply after 6 attempts; the last: it failed", "no reply after 2 attempts; the last: it failed"),
        ("it failed", "no reply after 2 attempts; the last: it failed"),
        ("request req_011CSHoEeqs5C35K2UUq failed", "request req_018EeWyXxfu5pfWkrYcM failed"),
        (
            "trace 4bf92f3577b34da6a3ce929d0e0e4736 was lost",
            "trace 00f067aa0ba902b7a3ce929d0e0e4736 was lost",
        ),
        (
            "job 7f3c1c1e-8a52-4a4e-9a8b-0d5c2b1f7a11 died",
            "job 0d5c2b1f-8a52-4a4e-9a8b-7f3c1c1e7a11 died",
        ),
        ("see https://a.example/x?y=1", "see https://b.example/z"),
    ],
)
def test_what_varies_from_call_to_call_is_the_same_cause(one: str, other: str) -> None:
    assert same_cause(one) == same_cause(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the endpoint answered 500: no", "the endpoint answered 503: no"),
        ("the endpoint refused the request (400): no", "the endpoint refused the request (403): no"),
        ("Unsupported parameter: 'max_tokens'", "Unsupported parameter: 'temperature'"),
        ("KeyError: 'a'", "KeyError: 'b'"),
    ],
)
def test_other_statuses_and_other_words_are_other_causes(one: str, other: str) -> None:
    assert same_cause(one) != same_cause(other)


def test_causes_are_counted_closed_and_bounded() -> None:
    causes = Causes()
    for n in range(MOST_CAUSES + 50):
        letters = "".join(chr(ord("a") + int(digit)) for digit in str(n))
        causes.add(failed("server_error", f"word {letters}"))
    for _ in range(30):
        causes.add(failed("rate_limit", "slow down"))
    found = causes.most_frequent()
    assert len(found) == KEPT_CAUSES + 1
    assert sum(one.count for one in found) == MOST_CAUSES + 80
    assert found[-1].kind == "others"


def test_failures_come_before_what_was_unscored_and_shards_add_up() -> None:
    parts = []
    for count in (2, 3):
        collector = ArtifactCollector()
        for n in range(count):
            collector.add(failed("timeout", f"no answer in {n} s"))
        for _ in range(10):
            collector.add(failed("no_expected_output", "", status="unscored"))
        parts.append(collector.analysis())
    found = combined(parts).causes
    assert [(one.status, one.kind, one.count) for one in found] == [
        ("failed", "timeout", 5),
        ("unscored", "no_expected_output", 20),
    ]


def test_a_judges_failure_is_advised_by_the_error_behind_it() -> None:
    assert "--judge-api-key" in advice_for("judge_rejected", inner="auth")
    assert "--judge-url" in advice_for("judge_unavailable", inner="connection")
    assert advice_for("some_new_kind") == ""


def asked(call: MockCall) -> int:
    return int(call.prompt.split()[-1])


CASES: dict[str, tuple[Callable[[MockCall], MockAnswer | str], str, str]] = {
    "context length": (
        lambda call: MockAnswer(
            text=f"This model's maximum context length is 10 tokens; you sent {asked(call)}1", status=400
        ),
        "context_length: the endpoint refused the request (400): This model's maximum context length",
        "lower --max-tokens",
    ),
    "rate limit": (
        lambda call: MockAnswer(text=f"slow down, retry in {asked(call)}s", status=429),
        "rate_limit: the endpoint answered 429: slow down",
        "lower --concurrency",
    ),
    "server error": (
        lambda call: MockAnswer(text="out of memory", status=500),
        "server_error: the endpoint answered 500: out of memory",
        "look at its log",
    ),
    "scorer": (lambda call: "raise", "KeyError: 'units'", "eval rescore"),
}


def bench(folder: Path, name: str) -> str:
    (folder / "bench.py").write_text(BENCH)
    return f"{folder / 'bench.py'}:{name}"


@pytest.mark.parametrize("case", CASES)
def test_the_summary_says_why_with_counts_and_what_helps(tmp_path: Path, case: str) -> None:
    answer, message, advice = CASES[case]
    out = tmp_path / "out"
    first = lambda call: "B" if asked(call) == 0 else answer(call)  # noqa: E731  one answer, so that the run goes on
    with MockModel(first) as model:
        done = evenhand(
            *("eval", "run", "--bench", bench(tmp_path, "plain"), "--tries", "1", "-c", "1"),
            *("--model-url", model.url, "--model-id", "m", "-o", out),
        )
    assert done.returncode == 1, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("    11 × "))
    assert message in line
    assert advice in done.stdout
    (cause,) = json.loads((out / "failure_analysis.json").read_text())["causes"]
    assert cause["count"] == 11
    assert advice in cause["advice"]
    page = (out / "report.html").read_text()
    assert "Why samples have no score" in page
    # The command that reads a finished run says the same.
    again = evenhand("eval", "report", out)
    assert line in again.stdout
    assert advice in again.stdout


@pytest.mark.parametrize(
    ("status", "text", "advice"),
    [
        (401, "bad key", "check --api-key"),
        (404, "The model `m` does not exist", "check --model-id"),
        (400, "The model `m` does not exist", "check --model-id"),
        (429, "insufficient_quota", "no credit left"),
    ],
)
def test_what_stops_a_run_comes_with_advice(tmp_path: Path, status: int, text: str, advice: str) -> None:
    with MockModel(lambda call: MockAnswer(text=text, status=status)) as model:
        done = evenhand(
            *("eval", "run", "--bench", bench(tmp_path, "plain"), "--tries", "1"),
            *("--model-url", model.url, "--model-id", "m", "-o", tmp_path / "out"),
        )
    assert done.returncode not in (0, 1)
    assert text in done.stderr
    assert advice in done.stderr


@pytest.mark.parametrize(
    ("status", "text", "advice"),
    [(401, "bad key", "check --judge-api-key"), (404, "no such model", "check --judge-id")],
)
def test_a_judge_that_refuses_says_that_it_is_the_judge(
    tmp_path: Path, status: int, text: str, advice: str
) -> None:
    with MockModel("B") as model, MockModel(lambda call: MockAnswer(text=text, status=status)) as judge:
        done = evenhand(
            *("eval", "run", "--bench", bench(tmp_path, "judged"), "--tries", "1"),
            *("--model-url", model.url, "--model-id", "m", "-o", tmp_path / "out"),
            *("--judge-url", judge.url, "--judge-id", "j"),
        )
    assert done.returncode not in (0, 1)
    assert f"the judge refuses: the endpoint refused the request ({status}): {text}" in done.stderr
    assert advice in done.stderr


def test_a_judge_with_too_little_room_gets_more(tmp_path: Path) -> None:
    verdict = '{"nonce": "{{nonce}}", "reasoning": "ok", "score": 5}'

    def judging(call: MockCall) -> MockAnswer:
        if call.body["max_tokens"] < 5000:
            return MockAnswer(text="<think>Well", finish_reason="length")
        return MockAnswer(text=with_nonce(verdict, call.prompt))

    with MockModel("B") as model, MockModel(judging) as judge:
        flags = (
            *("eval", "run", "--bench", bench(tmp_path, "judged"), "--model-url", model.url),
            *("--model-id", "m", "--judge-url", judge.url, "--judge-id", "j"),
        )
        done = evenhand(*flags, "-o", tmp_path / "small")
        assert done.returncode == 1
        assert "raise --judge-max-tokens" in done.stdout
        done = evenhand(*flags, "-o", tmp_path / "large", "--judge-max-tokens", "8000")
    assert done.returncode == 0, done.stdout + done.stderr
