"""Every family of attributes that carries texts, one by one."""

import json
from typing import Any

import pytest
from tests.server.test_sessions_and_costs import export, read, typed
from tests.service_harness import Client

from evenhand.core.ids import new_id
from evenhand.server.ingest.otlp_texts import take_texts
from evenhand.server.ingest.otlp_wire import WireEvent
from evenhand.store import texts as stored_texts

MESSAGES = '[{"role":"user","content":"Hi"}]'
HI, HELLO = [{"role": "user", "content": "Hi"}], "Hello!"
FAMILIES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "semantic conventions": (
        {"gen_ai.input.messages": MESSAGES, "gen_ai.output.messages": '[{"role":"assistant"}]'},
        HI,
        [{"role": "assistant"}],
    ),
    "older attributes": ({"gen_ai.prompt": MESSAGES, "gen_ai.completion": HELLO}, HI, HELLO),
    "numbered": (
        {
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Hi",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": HELLO,
        },
        HI,
        [{"role": "assistant", "content": HELLO}],
    ),
    "OpenInference": (
        {"input.value": MESSAGES, "input.mime_type": "application/json", "output.value": "42"},
        HI,
        "42",
    ),
    "OpenInference's messages": (
        {
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Hi",
            "llm.output_messages.0.message.content": HELLO,
        },
        HI,
        [{"content": HELLO}],
    ),
    "Traceloop": ({"traceloop.entity.input": '{"a": 1}', "traceloop.entity.output": '"x"'}, {"a": 1}, "x"),
    "pydantic-ai": (
        {
            "pydantic_ai.all_messages": '[{"role":"user","content":"Hi"},{"role":"assistant","content":"x"}]',
            "final_result": "42",
        },
        HI,
        "42",
    ),
    "pydantic-ai without a result": (
        {"pydantic_ai.all_messages": '[{"role":"user","content":"Hi"},{"role":"assistant","content":"x"}]'},
        HI,
        [{"role": "assistant", "content": "x"}],
    ),
    "pydantic-ai with a history": (
        {
            "pydantic_ai.all_messages": json.dumps(
                [
                    {"role": "user"},
                    {"role": "assistant"},
                    {"role": "user", "n": 2},
                    {"role": "assistant", "n": 2},
                ]
            ),
            "pydantic_ai.new_message_index": 2,
        },
        [{"role": "user"}, {"role": "assistant"}, {"role": "user", "n": 2}],
        [{"role": "assistant", "n": 2}],
    ),
    "Vercel's outer span": (
        {"ai.prompt": '{"prompt":"Hi"}', "ai.response.text": "42"},
        {"prompt": "Hi"},
        "42",
    ),
    "Vercel's call with tools": (
        {
            "ai.prompt.messages": MESSAGES,
            "ai.response.text": "Let me see.",
            "ai.response.toolCalls": '[{"toolName":"t"}]',
        },
        HI,
        {"text": "Let me see.", "toolCalls": [{"toolName": "t"}]},
    ),
    "Vercel's tool calls alone": (
        {
            "ai.prompt.messages": MESSAGES,
            "ai.response.text": "",
            "ai.response.toolCalls": '[{"toolName":"t"}]',
        },
        HI,
        [{"toolName": "t"}],
    ),
    "Vercel's tool": (
        {"ai.toolCall.args": '{"city":"Paris"}', "ai.toolCall.result": "3"},
        {"city": "Paris"},
        3,
    ),
    "Vercel's object": (
        {"ai.prompt": '{"prompt":"Hi"}', "ai.response.object": '{"a":1}'},
        {"prompt": "Hi"},
        {"a": 1},
    ),
    "Langfuse": (
        {"langfuse.observation.input": '{"a": 1}', "langfuse.observation.output": "42"},
        {"a": 1},
        "42",
    ),
    "Langfuse's trace": ({"langfuse.trace.input": "Hi", "langfuse.trace.output": HELLO}, "Hi", HELLO),
    "MLflow": ({"mlflow.spanInputs": '{"q": "Hi"}', "mlflow.spanOutputs": '"Hello!"'}, {"q": "Hi"}, HELLO),
    "tools of the conventions": (
        {"gen_ai.tool.call.arguments": '{"a":1}', "gen_ai.tool.call.result": "sunny"},
        {"a": 1},
        "sunny",
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_gives_input_and_output(family: str) -> None:
    attributes, said, answered = FAMILIES[family]
    given = {**attributes, "other": 1}
    read, written = take_texts(given, [])
    assert (json.loads(read or "null"), json.loads(written or "null")) == (said, answered)
    # All that was said by an agent has more in it than the two.
    kept = {"other", *(name for name in attributes if name.startswith("pydantic_ai."))}
    assert given.keys() == kept


@pytest.mark.parametrize(
    "hostile", ["{", "[1", "null", "[]", '{"role": 1}', "[[1]]", '[{"role": "assistant"}]']
)
def test_texts_that_are_not_what_they_should_be_lose_no_span(hostile: str) -> None:
    for name in (
        "pydantic_ai.all_messages",
        "ai.response.toolCalls",
        "gen_ai.input.messages",
        "mlflow.spanInputs",
    ):
        read, written = take_texts({name: hostile, "pydantic_ai.new_message_index": 7}, [])
        for text in (read, written):
            assert text is None or json.loads(text) is not json


def test_events_of_a_span_that_are_one_message_each() -> None:
    events = [
        WireEvent(name="gen_ai.user.message", time_ns=1, attributes={"content": "Hi"}),
        WireEvent(
            name="gen_ai.choice",
            time_ns=2,
            attributes={"gen_ai.event.content": '{"message": {"content": "x"}}'},
        ),
        WireEvent(name="other", time_ns=3, attributes={}),
    ]
    read, written = take_texts({}, events)
    assert json.loads(read or "") == HI
    assert json.loads(written or "") == [{"role": "assistant", "content": "x"}]
    assert [event.name for event in events] == ["other"]


def test_links_the_scope_and_an_error_without_an_exception_are_kept(client: Client) -> None:
    trace_id, span_id = new_id().replace("-", ""), "00f067aa0ba902b7"
    span = {
        "traceId": trace_id,
        "spanId": span_id,
        "name": "chat",
        "startTimeUnixNano": "1771711200000000000",
        "links": [
            {
                "traceId": "ab" * 16,
                "spanId": "cd" * 8,
                "attributes": [{"key": "why", "value": typed("retry")}],
            }
        ],
        "attributes": [{"key": "error.type", "value": typed("429")}],
    }
    scope = {"name": "lib", "version": "1.2", "attributes": [{"key": "short", "value": typed("x")}]}
    body = {"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": [span]}]}]}
    assert client.post("/v1/traces", body, X_Project_Id=client.project).status == 200
    [got] = read(client, trace_id)["spans"]
    assert got["error"] == {"message": "429", "type": "429", "stack": None}
    assert got["metadata"] == {
        "otel.scope.name": "lib",
        "otel.scope.version": "1.2",
        "otel.scope.short": "x",
        "link.0.trace_id": "ab" * 16,
        "link.0.span_id": "cd" * 8,
        "link.0.why": "retry",
    }


def test_totals_of_an_agent_are_shown_and_not_counted_again(client: Client) -> None:
    tokens = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.cost": 1.0, **tokens}
    call = {"gen_ai.request.model": "m", "gen_ai.usage.cost": 0.5, **tokens}
    trace = read(client, export(client, agent, call))
    assert (trace["tokens"], trace["cost_usd"], trace["cost_known_calls"]) == (15, 0.5, 1)
    root = trace["spans"][0]
    assert (root["is_total"], root["tokens_input"], root["cost_usd"]) == (True, 10, 1.0)


def test_a_root_without_texts_shows_those_of_its_first_call(client: Client) -> None:
    call = {"gen_ai.request.model": "m", "input.value": "Hi", "output.value": HELLO}
    later = {"gen_ai.request.model": "m", "input.value": "And?"}
    trace_id = export(client, {}, {"input.value": "no call"}, call, later)
    trace = read(client, trace_id)
    root, _, first, _ = trace["spans"]
    assert (root["input"], root["output"]) == ("Hi", HELLO)
    assert root["input_from_span_id"] == root["output_from_span_id"] == first["id"]
    assert first["input_from_span_id"] is None
    assert client.post(f"/v1/traces/{trace_id}/queue?project_id={client.project}").status == 200
    [queued] = client.get("/v1/queue", project_id=client.project).body["items"]
    assert (queued["root_span"]["input"], queued["root_span"]["input_from_span_id"]) == ("Hi", first["id"])
    annotation = client.made("/v1/annotations", {"trace_id": trace_id, "annotator": "a", "label": "good"})
    dataset, _ = client.dataset()
    item = client.made(f"/v1/annotations/{annotation['id']}/to-dataset-item", {"dataset_id": dataset})
    assert item["input"] == "Hi"


def log_body(*records: dict[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}


def message(trace_id: str, text: str, time_ns: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "traceId": trace_id,
        "spanId": "00f067aa0ba902b7",
        "eventName": "gen_ai.user.message",
        "timeUnixNano": str(time_ns),
        "body": {"kvlistValue": {"values": [{"key": "content", "value": typed(text)}]}},
        **more,
    }


def test_other_records_are_answered_with_a_success_that_says_so(client: Client) -> None:
    line = {"body": typed("listening on port 80"), "severityText": "INFO"}
    reply = client.post("/v1/logs", log_body(line, line), X_Project_Id=client.project)
    assert reply.status == 200
    assert reply.body["partialSuccess"]["rejectedLogRecords"] == "2"
    assert "only gen_ai events" in reply.body["partialSuccess"]["errorMessage"]
    assert client.post("/v1/logs", {"resourceLogs": []}).body == {}
    broken = client.post("/v1/logs", {"resourceLogs": 1})
    assert broken.status == 400
    assert client.post_raw("/v1/logs", b"\xff", "application/x-protobuf").status == 400
    with_null = message("0" * 32, "x")
    assert "partialSuccess" in client.post("/v1/logs", log_body(with_null)).body


def test_a_text_of_the_spans_own_is_never_replaced(client: Client) -> None:
    trace_id = new_id().replace("-", "")
    logs = log_body(message(trace_id, "from the log"))
    assert client.post("/v1/logs", logs, X_Project_Id=client.project).body == {}
    spans = [
        {
            "traceId": trace_id,
            "spanId": "00f067aa0ba902b7",
            "name": "chat",
            "startTimeUnixNano": "1771711200000000000",
            "attributes": [{"key": "input.value", "value": typed("its own")}],
        }
    ]
    body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    assert client.post("/v1/traces", body, X_Project_Id=client.project).status == 200
    assert read(client, trace_id)["spans"][0]["input"] == "its own"
    assert client.post("/v1/logs", logs, X_Project_Id=client.project).body == {}
    assert read(client, trace_id)["spans"][0]["input"] == "its own"


def test_the_log_of_one_project_says_nothing_in_another(client: Client) -> None:
    trace_id = new_id().replace("-", "")
    logs = log_body(message(trace_id, "foreign"))
    assert client.post("/v1/logs", logs, X_Project_Id=f"{client.project}-other").body == {}
    body = {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": trace_id,
                                "spanId": "00f067aa0ba902b7",
                                "name": "chat",
                                "startTimeUnixNano": "1771711200000000000",
                            }
                        ]
                    }
                ]
            }
        ]
    }
    assert client.post("/v1/traces", body, X_Project_Id=client.project).status == 200
    assert read(client, trace_id)["spans"][0]["input"] is None


def test_the_records_of_one_span_are_bounded_and_go_with_its_trace(client: Client) -> None:
    trace_id = export(client, {})
    span_id = read(client, trace_id)["root_span_id"]
    many = [
        message(trace_id, f"message {number}", number, spanId=span_id)
        for number in range(stored_texts.MAX_TEXTS + 3)
    ]
    reply = client.post("/v1/logs", log_body(*many), X_Project_Id=client.project)
    assert "more than 1000 messages" in reply.body["partialSuccess"]["errorMessage"]
    [got] = read(client, trace_id)["spans"]
    assert [one["content"] for one in got["input"]] == [f"message {n}" for n in range(stored_texts.MAX_TEXTS)]
    assert client.request("DELETE", f"/v1/traces/{trace_id}?project_id={client.project}").status == 200
    export(client, {}, trace_id=trace_id)
    assert read(client, trace_id)["spans"][0]["input"] is None


@pytest.mark.parametrize("header", ["Basic !!!", "Basic", "Basic cGs=", "Basic cGs6d3Jvbmc="])
def test_a_wrong_password_of_langfuse_is_401(client: Client, header: str) -> None:
    reply = client.request(
        "POST",
        "/api/public/otel/v1/traces",
        b"{}",
        {"Content-Type": "application/json", "Authorization": header},
    )
    assert reply.status == 401
    # A password is a token nowhere else.
    assert client.request("GET", "/v1/projects", headers={"Authorization": header}).status == 401
