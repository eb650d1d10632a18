"""Every failed sample gets one category; the table of the specification, and ours."""

import pytest

from evenhand.evaluation.failures import ArtifactCollector, classify, combined
from evenhand.results.records import SampleError, SampleResult


def sample(response: str | None = "some text", **fields: object) -> SampleResult:
    given = {"problem_idx": 0, "reward": 0.0, "status": "scored", "model_response": response, **fields}
    return SampleResult(**given)  # type: ignore[arg-type]  # the tests pass what they mean


def failed(kind: str, message: str = "") -> SampleResult:
    return sample(None, reward=None, status="failed", error=SampleError(kind=kind, message=message))


@pytest.mark.parametrize(
    ("given", "category"),
    [
        (failed("timeout"), "timeout"),
        (failed("model_error", "request timeout after 30 s"), "timeout"),
        (failed("rate_limit"), "rate_limit"),
        (failed("model_error", "HTTP 429"), "rate_limit"),
        (failed("model_error", "rate limit reached, then a timeout"), "rate_limit"),
        (failed("model_error", "request rate exceeded"), "rate_limit"),
        (failed("model_error", "could not generate or iterate"), "model_error"),
        (failed("server_error"), "server_error"),
        (failed("connection"), "server_error"),
        (failed("context_length", "maximum context is 4096"), "context_length"),
        (failed("content_filter"), "content_filter"),
        (failed("judge_unavailable", "timeout"), "judge_error"),
        (failed("grade_parse_failure"), "judge_error"),
        (failed("sandbox_unavailable"), "sandbox_error"),
        (failed("sandbox_error"), "sandbox_error"),
        (failed("scorer_error"), "scorer_error"),
        (failed("scorer_timeout"), "scorer_error"),
        (failed("some_new_kind"), "some_new_kind"),
        (sample("I cannot help with that.", extracted_answer=None), "refusal"),
        (sample("I'm sorry, but no."), "refusal"),
        (sample("I\u2019m sorry, but no."), "refusal"),
        (sample("I am sorry, but no."), "refusal"),
        (sample("I can\u2019t do that."), "refusal"),
        (sample(""), "empty"),
        (sample(" \n\t "), "empty"),
        (sample(None), "empty"),
        (sample("It is 5, I think."), "format_error"),
        (sample("It is 5.", extracted_answer="5"), "wrong_answer"),
        (sample("right", reward=1.0), None),
        (sample("partly", reward=0.3), None),
        (sample("x", reward=None, status="unscored"), None),
    ],
)
def test_categories(given: SampleResult, category: str | None) -> None:
    assert classify(given) == category


def test_without_extraction_there_is_no_format_to_miss() -> None:
    assert classify(sample("It is 5."), extracts=False) == "wrong_answer"


def test_an_apology_deep_inside_an_answer_is_no_refusal() -> None:
    assert (
        classify(sample("word " * 100 + "I'm sorry, said the queen.", extracted_answer="x")) == "wrong_answer"
    )


def test_a_refusal_after_long_thought_is_one_where_no_answer_was_found() -> None:
    assert classify(sample("word " * 100 + "I'm sorry, I cannot help.", extracted_answer=None)) == "refusal"


def test_the_analysis_counts_rates_and_keeps_examples() -> None:
    collector = ArtifactCollector()
    for index in range(20):
        reply = "I'm sorry, I cannot..." if index < 7 else "fine"
        collector.add(sample(reply, problem_idx=index, reward=0.0 if index < 7 else 1.0))
    analysis = collector.analysis()
    assert (analysis.total_failures, analysis.failure_rate) == (7, 0.35)
    assert analysis.categories["refusal"].count == 7
    assert analysis.categories["refusal"].rate == 0.35
    first = analysis.exemplars[0]
    assert (first.category, first.problem_idx, first.response_preview) == (
        "refusal",
        0,
        "I'm sorry, I cannot...",
    )
    assert len(analysis.exemplars) == 5


def test_parts_of_a_run_add_up() -> None:
    whole, parts = ArtifactCollector(), [ArtifactCollector(), ArtifactCollector()]
    for index in range(30):
        one = sample("" if index % 3 else "I cannot", problem_idx=index)
        whole.add(one)
        parts[index % 2].add(one)
    assert combined(part.analysis() for part in parts) == whole.analysis()
