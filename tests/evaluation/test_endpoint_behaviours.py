"""Endpoints as they are: what each behaviour becomes in a run, for the model and for the judge.

docs/models.md has the table; it is held against these rows.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.evaluation.runs import Done, evenhand

from evenhand.models.providers import PROVIDERS
from evenhand.testing import FaultPlan, MockAnswer, MockCall, MockModel, with_nonce

BENCH = """
from evenhand import ScorerInput, benchmark, multichoice_regex, needs_judge, scorer

def rows():
    return [{"q": "one", "target": "B"}]

@benchmark(name="letters", dataset=rows, prompt="{q}")
@scorer
def letters(sample: ScorerInput):
    return multichoice_regex(sample)

@benchmark(name="judged", dataset=rows, prompt="{q}", judge="default")
@scorer
def judged(sample: ScorerInput):
    return needs_judge(sample)
"""
GOOD = "Answer: B"


class Case(NamedTuple):
    """One behaviour of an endpoint, and what a run of one sample comes to."""

    model: Callable[[], MockModel]
    status: str
    reward: float | None = None
    error: str | None = None
    category: str | None = None
    said: str = ""


def once_then_good(first: MockAnswer) -> Callable[[MockCall], MockAnswer]:
    return lambda call: first if call.seen == 0 else MockAnswer(text=GOOD)


CASES: dict[str, Case] = {
    "rejects max_tokens": Case(
        lambda: MockModel(GOOD, rejects=("max_tokens",)),
        "scored",
        1.0,
        said="max_tokens sent as max_completion_tokens",
    ),
    "rejects temperature": Case(
        lambda: MockModel(GOOD, rejects=("temperature",)), "scored", 1.0, said="temperature left out"
    ),
    "sends <think>": Case(lambda: MockModel("<think>Answer: A? No.</think>Answer: B"), "scored", 1.0),
    "unclosed <think>": Case(
        lambda: MockModel("<think>Answer: B"), "scored", 0.0, None, "truncated", "raise the limit"
    ),
    "content parts": Case(
        lambda: MockModel(MockAnswer(content=[{"type": "text", "text": GOOD}])), "scored", 1.0
    ),
    "tool calls": Case(
        lambda: MockModel(MockAnswer(tool_calls=({"name": "f", "arguments": {}},))),
        "scored",
        0.0,
        None,
        "format_error",
    ),
    "finish_reason: length": Case(
        lambda: MockModel(MockAnswer(text="So, first,", finish_reason="length")),
        "scored",
        0.0,
        None,
        "truncated",
        "raise the limit",
    ),
    "empty choices": Case(
        lambda: MockModel(MockAnswer(fault="empty_choices")),
        "failed",
        None,
        "bad_reply",
        "server_error",
        "check that --model-url is the base of the API",
    ),
    "429 with Retry-After": Case(
        lambda: MockModel(
            once_then_good(MockAnswer(text="slow down", status=429, headers={"Retry-After": "0"}))
        ),
        "scored",
        1.0,
    ),
    "429 without Retry-After": Case(
        lambda: MockModel(once_then_good(MockAnswer(fault="rate_limit")), faults=FaultPlan(retry_after=None)),
        "scored",
        1.0,
    ),
    "429 every time": Case(
        lambda: MockModel(MockAnswer(fault="rate_limit")),
        "failed",
        None,
        "rate_limit",
        "rate_limit",
        "lower --concurrency",
    ),
    "500 every time": Case(
        lambda: MockModel(MockAnswer(fault="server_error")),
        "failed",
        None,
        "server_error",
        "server_error",
        "look at its log",
    ),
    "400 for context length": Case(
        lambda: MockModel(MockAnswer(text="maximum context length is 10 tokens", status=400)),
        "failed",
        None,
        "context_length",
        "context_length",
        "lower --max-tokens",
    ),
    "HTML": Case(
        lambda: MockModel(MockAnswer(fault="html")),
        "failed",
        None,
        "bad_reply",
        "server_error",
        "check that --model-url",
    ),
    "slow": Case(
        lambda: MockModel(MockAnswer(text=GOOD, latency=600)),
        "failed",
        None,
        "timeout",
        "timeout",
        "--timeout allows",
    ),
    "half an answer": Case(
        lambda: MockModel(MockAnswer(text=GOOD, fault="cut_body")),
        "failed",
        None,
        "bad_reply",
        "server_error",
        "check that --model-url is the base of the API",
    ),
    "half a JSON text": Case(
        lambda: MockModel(MockAnswer(text=GOOD, fault="half_json")),
        "failed",
        None,
        "bad_reply",
        "server_error",
        "check that --model-url is the base of the API",
    ),
}
FLAGS = ("--temperature", "0", "--max-tokens", "50", "--tries", "2", "--timeout", "3")


def bench_file(folder: Path, name: str) -> str:
    (folder / "bench.py").write_text(BENCH)
    return f"{folder / 'bench.py'}:{name}"


def only_row(folder: Path) -> dict[str, Any]:
    (line,) = (folder / "results.jsonl").read_text().splitlines()
    row: dict[str, Any] = json.loads(line)
    return row


@pytest.mark.parametrize("behaviour", CASES)
def test_the_model(tmp_path: Path, behaviour: str) -> None:
    case, out = CASES[behaviour], tmp_path / "out"
    with case.model() as model:
        done = evenhand(
            *("eval", "run", "--bench", bench_file(tmp_path, "letters"), *FLAGS),
            *("--model-url", model.url, "--model-id", "m", "-o", out),
        )
    assert done.returncode == (1 if case.status == "failed" else 0), done.stderr
    row = only_row(out)
    assert (row["status"], row["reward"]) == (case.status, case.reward)
    assert (row["error"] or {}).get("kind") == case.error
    categories = json.loads((out / "failure_analysis.json").read_text())["categories"]
    assert list(categories) == ([case.category] if case.category else [])
    assert case.said in done.stdout
    if case.said and "sent as" in case.said:
        (bundle,) = out.glob("eval-*.json")
        assert json.loads(bundle.read_text())["config"]["adjusted_parameters"] == {case.said: 1}


def test_the_documents_list_these_behaviours_and_providers() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    rows = text.split("<!-- behaviours -->")[1].split("<!-- /behaviours -->")[0].splitlines()[3:]
    assert [row.split("|")[1].strip().replace("`", "") for row in rows if row] == list(CASES)
    rows = text.split("<!-- providers -->")[1].split("<!-- /providers -->")[0].splitlines()[3:]
    listed = {}
    for row in filter(None, rows):
        name, address, key = (cell.strip() for cell in row.split("|")[1:4])
        listed[name.strip("`")] = (address.split("`")[1], None if key == "none" else key.strip("`"))
    assert listed == {name: (one.url, one.key_variable) for name, one in PROVIDERS.items()}


def test_a_wrong_key_stops_the_run(tmp_path: Path) -> None:
    with MockModel(GOOD, api_key="right") as model:
        done = evenhand(
            *("eval", "run", "--bench", bench_file(tmp_path, "letters"), "--api-key", "wrong"),
            *("--model-url", model.url, "--model-id", "m", "-o", tmp_path / "out"),
        )
    assert done.returncode not in (0, 1)
    assert "the key is wrong" in done.stderr


@contextmanager
def raw_server(answer: bytes) -> Iterator[str]:
    """A bare socket that answers every connection with these bytes and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        stopping = threading.Event()

        def serve() -> None:
            while not stopping.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(5)
                    try:
                        if connection.recv(65536):
                            connection.sendall(answer)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            stopping.set()
            thread.join()


RAW = {
    "hangs up": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "half a body": b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{"c',
    "endless head": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000,
    "HTML": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
}


@pytest.mark.parametrize("answer", RAW.values(), ids=RAW)
def test_what_is_no_chat_endpoint_at_all(tmp_path: Path, answer: bytes) -> None:
    with raw_server(answer) as url:
        done = evenhand(
            *("eval", "run", "--bench", bench_file(tmp_path, "letters"), *FLAGS),
            *("--model-url", url, "--model-id", "m", "-o", tmp_path / "out"),
        )
    assert done.returncode == 1, done.stderr
    row = only_row(tmp_path / "out")
    assert row["status"] == "failed"
    assert row["error"]["kind"] in ("connection", "bad_reply")
    assert "check" in done.stdout
    assert "--model-url" in done.stdout


VERDICT = '{"nonce": "{{nonce}}", "reasoning": "ok", "score": 5}'


def verdict(call: MockCall, before: str = "") -> MockAnswer:
    return MockAnswer(text=with_nonce(before + VERDICT, call.prompt))


class JudgeCase(NamedTuple):
    """One behaviour of the judge's endpoint, and what a run of one sample comes to."""

    judge: Callable[[], MockModel]
    reward: float | None = None
    error: str | None = None
    said: str = ""


def verdict_after(first: MockAnswer) -> Callable[[MockCall], MockAnswer]:
    return lambda call: first if call.seen == 0 else verdict(call)


JUDGES: dict[str, JudgeCase] = {
    "rejects max_tokens": JudgeCase(lambda: MockModel(verdict, rejects=("max_tokens",)), 1.0),
    "rejects temperature": JudgeCase(lambda: MockModel(verdict, rejects=("temperature",)), 1.0),
    "sends <think>": JudgeCase(
        lambda: MockModel(lambda call: verdict(call, '<think>{"score": 0}?</think>\n')), 1.0
    ),
    "unclosed <think>": JudgeCase(
        lambda: MockModel("<think>Well"), None, "judge_truncated", "raise --judge-max-tokens"
    ),
    "content parts": JudgeCase(
        lambda: MockModel(
            lambda call: MockAnswer(content=[{"type": "text", "text": with_nonce(VERDICT, call.prompt)}])
        ),
        1.0,
    ),
    "tool calls": JudgeCase(
        lambda: MockModel(MockAnswer(tool_calls=({"name": "f", "arguments": {}},))),
        None,
        "grade_parse_failure",
        "hold no judgement",
    ),
    "no judgement": JudgeCase(lambda: MockModel("no idea"), None, "grade_parse_failure", "hold no judgement"),
    "finish_reason: length": JudgeCase(
        lambda: MockModel(MockAnswer(text="So, first,", finish_reason="length")),
        None,
        "judge_truncated",
        "raise --judge-max-tokens",
    ),
    "empty choices": JudgeCase(
        lambda: MockModel(MockAnswer(fault="empty_choices")),
        None,
        "judge_unavailable",
        "check that --judge-url is the base of the API",
    ),
    "429 with Retry-After": JudgeCase(
        lambda: MockModel(
            verdict_after(MockAnswer(text="slow down", status=429, headers={"Retry-After": "0"}))
        ),
        1.0,
    ),
    "429 without Retry-After": JudgeCase(
        lambda: MockModel(verdict_after(MockAnswer(fault="rate_limit")), faults=FaultPlan(retry_after=None)),
        1.0,
    ),
    "429 every time": JudgeCase(
        lambda: MockModel(MockAnswer(fault="rate_limit")), None, "judge_unavailable", "lower --concurrency"
    ),
    "500 every time": JudgeCase(
        lambda: MockModel(MockAnswer(fault="server_error")), None, "judge_unavailable", "look at its log"
    ),
    "400 for context length": JudgeCase(
        lambda: MockModel(MockAnswer(text="maximum context length is 10 tokens", status=400)),
        None,
        "judge_refused",
        "longer than the model's context",
    ),
    "HTML": JudgeCase(
        lambda: MockModel(MockAnswer(fault="html")),
        None,
        "judge_unavailable",
        "check that --judge-url is the base of the API",
    ),
    "slow": JudgeCase(
        lambda: MockModel(MockAnswer(text="late", latency=600)), None, "judge_unavailable", "--timeout allows"
    ),
    "half an answer": JudgeCase(
        lambda: MockModel(MockAnswer(text="late", fault="cut_body")),
        None,
        "judge_unavailable",
        "check that --judge-url is the base of the API",
    ),
    "half a JSON text": JudgeCase(
        lambda: MockModel(MockAnswer(text="late", fault="half_json")),
        None,
        "judge_unavailable",
        "check that --judge-url is the base of the API",
    ),
}


def judged_run(tmp_path: Path, judge_url: str, *more: str) -> Done:
    with MockModel(GOOD) as model:
        return evenhand(
            *("eval", "run", "--bench", bench_file(tmp_path, "judged"), *FLAGS),
            *("--model-url", model.url, "--model-id", "m"),
            *("--judge-url", judge_url, "--judge-id", "j", "-o", tmp_path / "out"),
            *more,
        )


@pytest.mark.parametrize("behaviour", JUDGES)
def test_the_judge(tmp_path: Path, behaviour: str) -> None:
    case = JUDGES[behaviour]
    with case.judge() as judge:
        done = judged_run(tmp_path, judge.url)
    assert done.returncode == (0 if case.error is None else 1), done.stderr
    row = only_row(tmp_path / "out")
    assert (row["reward"], (row["error"] or {}).get("kind")) == (case.reward, case.error)
    assert case.said in done.stdout
    if "rejects" in behaviour:
        (bundle,) = (tmp_path / "out").glob("eval-*.json")
        adjusted = json.loads(bundle.read_text())["config"]["judge"]["adjusted_parameters"]
        assert any(behaviour.removeprefix("rejects ") in words for words in adjusted)


def test_a_wrong_key_of_the_judge_stops_the_run_and_says_whose_it_is(tmp_path: Path) -> None:
    with MockModel(verdict, api_key="right") as judge:
        done = judged_run(tmp_path, judge.url, "--judge-api-key", "wrong")
    assert done.returncode not in (0, 1)
    assert "the judge refuses: the endpoint refused the request (401)" in done.stderr
    assert "check --judge-api-key" in done.stderr


@pytest.mark.parametrize("answer", RAW.values(), ids=RAW)
def test_a_judge_that_is_no_chat_endpoint_at_all(tmp_path: Path, answer: bytes) -> None:
    with raw_server(answer) as url:
        done = judged_run(tmp_path, url)
    assert done.returncode == 1, done.stderr
    assert only_row(tmp_path / "out")["error"]["kind"] == "judge_unavailable"
    assert "--judge-url" in done.stdout


def test_the_judges_page_lists_these_behaviours() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "judge.md").read_text(encoding="utf-8")
    rows = text.split("<!-- behaviours -->")[1].split("<!-- /behaviours -->")[0].splitlines()[3:]
    assert [row.split("|")[1].strip().replace("`", "") for row in rows if row] == list(JUDGES)


def test_models_and_judges_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MockModel(GOOD, api_key="work-key-1") as model, MockModel(verdict) as judge:
        (tmp_path / "providers.toml").write_text(
            f'[work]\nurl = "{model.url}"\nkey_variable = "WORK_KEY"\n[local]\nurl = "{judge.url}"\n'
        )
        monkeypatch.setenv("EVENHAND_PROVIDERS", str(tmp_path / "providers.toml"))
        monkeypatch.setenv("WORK_KEY", "work-key-1")
        bench = bench_file(tmp_path, "judged")
        done = evenhand(
            *("eval", "run", "--bench", bench, "--model", "work/big/one", "--judge", "local/grader"),
            *("--max-completion-tokens", "99", "--reasoning-effort", "low"),
            *("--extra-body", "service_tier=flex", "--extra-body", "top_k=5", "-o", tmp_path / "out"),
        )
        assert done.returncode == 0, done.stderr
        assert only_row(tmp_path / "out")["reward"] == 1.0
        body = model.calls[0].body
        assert body["model"] == "big/one"
        assert judge.calls[0].body["model"] == "grader"
        assert (body["max_completion_tokens"], body["reasoning_effort"]) == (99, "low")
        assert (body["service_tier"], body["top_k"]) == ("flex", 5)
        (tmp_path / "suite.yaml").write_text(
            f"services:\n  model: {{model: work/big}}\n  judge: {{model: local/grader}}\n"
            f"benchmarks: ['{bench}']\ndefaults: {{reasoning_effort: high, extra_body: {{top_k: 3}}}}\n"
            "output: from-suite\n"
        )
        done = evenhand("eval", "run", tmp_path / "suite.yaml")
        assert done.returncode == 0, done.stderr
        assert (model.calls[-1].body["reasoning_effort"], model.calls[-1].body["top_k"]) == ("high", 3)
        file = tmp_path / "answers.jsonl"
        file.write_text('{"response": "Paris", "target": "Paris"}\n')
        done = evenhand("judge", "score", file, "--judge", "local/grader", "--no-cache")
        assert done.returncode == 0, done.stderr
        unknown = evenhand("eval", "run", "--bench", bench, "--model", "wrok/x", "-o", tmp_path / "no")
        assert "did you mean work" in unknown.stderr
        both = evenhand(
            *("eval", "run", "--bench", bench, "--model", "work/x", "--model-url", model.url),
            *("-o", tmp_path / "no"),
        )
        assert "not both" in both.stderr


def test_a_password_in_the_address_is_neither_written_nor_echoed(tmp_path: Path) -> None:
    with MockModel(GOOD) as model:
        url = model.url.replace("http://", "http://me:hunter2@")
        done = evenhand(
            *("eval", "run", "--bench", bench_file(tmp_path, "letters")),
            *("--model-url", url, "--model-id", "m", "-o", tmp_path / "out"),
        )
    assert done.returncode not in (0, 1)
    assert "carries a user name or password" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()
