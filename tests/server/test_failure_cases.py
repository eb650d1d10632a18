"""The failure cases of ingest, parsing and encoding (section 1), on both databases, over HTTP."""

import json
from typing import Any

import pytest
from tests.service_harness import Client, Reply, in_parallel, span

from evenhand.core.ids import new_id

DEEP = "[" * 100_000 + "]" * 100_000


def free_json_writes(client: Client, text: str) -> list[Reply]:
    """Writes that carry `text` as free JSON, one for each kind of place."""
    dataset, _ = client.dataset()
    trace, _ = client.trace()
    one = span()
    head = ", ".join(f'"{name}": {json.dumps(value)}' for name, value in one.items())
    posts = {
        f"/v1/datasets/{dataset}/items": f'{{"input": {text}}}',
        "/v1/traces/ingest": f'{{"project_id": "{client.project}", "spans": [{{{head}, "input": {text}}}]}}',
        "/v1/annotations": f'{{"trace_id": "{trace}", "annotator": "a", "correction": {text}}}',
        "/v1/experiments": (
            f'{{"project_id": "{client.project}", "name": "e", "dataset_id": "{dataset}", "metadata": {{"k": {text}}}}}'
        ),
    }
    return [client.post_raw(path, body.encode("utf-8", "surrogatepass")) for path, body in posts.items()]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DEEP, id="case 3: nested 100,000 deep"),
        pytest.param("[" * 100_000, id="case 3: and not even closed"),
        pytest.param('{"a":' * 50_000 + "1" + "}" * 50_000, id="case 3: objects"),
        pytest.param("9" * 5000, id="case 4: an integer of 5,000 digits"),
        pytest.param("NaN", id="case 6: NaN"),
        pytest.param("Infinity", id="case 6: Infinity"),
        pytest.param("-Infinity", id="case 6: -Infinity"),
        pytest.param("1e400", id="case 6: 1e400"),
        pytest.param("[1, 2,]", id="a trailing comma"),
        pytest.param("'a'", id="single quotes"),
        pytest.param('"\udcff"', id="invalid UTF-8"),
    ],
)
def test_what_is_no_strict_JSON_is_400_everywhere(client: Client, text: str) -> None:
    for reply in free_json_writes(client, text):
        assert reply.status == 400, reply.raw[:300]
        assert reply.code in ("INVALID_REQUEST", "INVALID_SPAN")
    assert client.get("/healthz").status == 200


def test_case_5_large_integers_in_free_JSON_come_back_verbatim(client: Client) -> None:
    text = "[9223372036854775808, 18446744073709551616, -9223372036854775809, 123456789012345678901234567890, 1.10, 1E2]"
    for reply in free_json_writes(client, text):
        assert reply.status == 201, reply.raw
    [row] = client.get("/v1/traces", project_id=client.project, limit=1).body["items"]
    assert text.encode() in client.get(f"/v1/traces/{row['id']}").raw
    datasets = client.get("/v1/datasets", project_id=client.project).body["items"]
    assert text.encode() in client.get(f"/v1/datasets/{datasets[0]['id']}/items").raw


def test_numbers_that_would_overflow_a_sum_or_an_average_are_400(client: Client) -> None:
    """One span must not spoil its trace's total or its project's dashboard."""
    for wrong in ({"tokens_input": 2**63 - 1}, {"tokens_output": 10**12 + 1}, {"duration_ms": 1e308}):
        reply = client.spans(span(**wrong))
        assert (reply.status, reply.code) == (400, "INVALID_SPAN"), reply.raw
        assert reply.body["error"]["details"]["field"] == next(iter(wrong))
    trace, root = client.trace(tokens_input=10**12, tokens_output=10**12, duration_ms=1e15)
    many = [
        span(trace_id=trace, parent_span_id=root, tokens_input=10**12, duration_ms=1e15) for _ in range(999)
    ]
    assert client.spans(*many).status == 201
    assert client.spans(span(duration_ms=1e15)).status == 201
    rows = client.get("/v1/traces", project_id=client.project).body["items"]
    assert max(row["tokens"] for row in rows) == 1001 * 10**12
    summary = client.get(f"/v1/projects/{client.project}/summary").body
    assert summary["traces"]["last_24h"]["avg_duration_ms"] == 1e15


def test_case_5_large_integers_in_typed_fields_are_400(client: Client) -> None:
    for number in (2**63, 2**64, 10**40):
        assert client.spans(span(tokens_input=number)).code == "INVALID_SPAN"
    run = {"dataset_item_id": "x", "output": 1, "repeat": 2**63}
    assert client.post("/v1/experiments/x/runs", {"runs": [run]}).status in (400, 404)


@pytest.mark.parametrize("text", ["\\ud800", "\\udc00x", "a\\ud83d", "\\ud83dx\\ude00"])
def test_case_9_a_lone_surrogate_is_400_everywhere_and_named(client: Client, text: str) -> None:
    run, (trace, _) = client.run("a"), client.trace()
    score = f'"target_id": "{run}", "target_type": "run"'
    typed = {
        "/v1/projects": f'{{"name": "{text}"}}',
        "/v1/datasets": f'{{"project_id": "{client.project}", "name": "x", "description": "{text}"}}',
        "/v1/scores": f'{{{score}, "scorer_name": "s", "value": "{text}"}}',
        "/v1/scores?wait=1": f'{{{score}, "scorer_name": "regex", "config": {{"pattern": "{text}"}}}}',
        "/v1/annotations": f'{{"trace_id": "{trace}", "annotator": "a", "notes": "{text}"}}',
        "/v1/traces/ingest": f'{{"spans": [{json.dumps(span())[:-1]}, "name": "{text}"}}]}}',
        "/v1/scores/batch": f'{{"scores": [{{{score}, "scorer_name": "s", "value": 1, "rationale": "{text}"}}]}}',
    }
    replies = [client.post_raw(path, body.encode()) for path, body in typed.items()]
    replies += free_json_writes(client, f'"{text}"') + free_json_writes(client, f'{{"{text}": 1}}')
    for reply in replies:
        assert reply.status == 400, reply.raw
        assert "lone surrogate" in reply.body["error"]["message"]
    exported = client.post_raw("/v1/traces", otlp_span(f'"{text}"', '"v"'))
    assert (exported.status, "lone surrogate" in exported.body["message"]) == (400, True)
    assert client.post_raw("/v1/traces", otlp_span('"n"', f'"{text}"')).status == 400
    assert client.get("/v1/scores", target_id=run).body["items"] == []


def otlp_span(name: str, attribute: str) -> bytes:
    ids = f'"traceId": "{"ab" * 16}", "spanId": "{new_id()[-12:]}abcd", "startTimeUnixNano": "1"'
    attributes = f'"attributes": [{{"key": "k", "value": {{"stringValue": {attribute}}}}}]'
    one = f'{{{ids}, "name": {name}, {attributes}}}'
    return f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{one}]}}]}}]}}'.encode()


@pytest.mark.parametrize("odd", ["%ED%A0%80", "%FF", "%C0%80", "%00"])
def test_cases_9_and_10_addresses_and_headers_that_no_text_can_hold_are_400(client: Client, odd: str) -> None:
    for path in (
        f"/v1/traces/{odd}",
        f"/v1/datasets/{odd}/items",
        f"/v1/traces?project_id={odd}",
        f"/v1/traces?project_id=p&name={odd}",
        f"/v1/traces?project_id=p&metadata.k={odd}",
        f"/v1/traces?project_id=p&metadata.{odd}=1",
        f"/v1/traces?project_id=p&cursor={odd}",
        f"/v1/scores?target_id=x&scorer_name={odd}",
        f"/v1/scores?{odd}=1&target_id=x",
    ):
        reply = client.request("GET", path)
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), path
    for header in ("Idempotency-Key", "X-Project-Id"):
        body = json.dumps({"spans": [span()]}).encode()
        sent = {"Content-Type": "application/json", header: "\xed\xa0\x80"}
        assert client.request("POST", "/v1/traces/ingest", body, sent).status == 400, header


def test_case_10_NUL_in_OTLP_is_kept_where_JSON_can_hold_it(client: Client) -> None:
    """Names lose the character: a span must not be lost over it. Both databases answer alike."""
    reply = client.post_raw(
        "/v1/traces", otlp_span('"a\\u0000b"', '"c\\u0000d"'), X_Project_Id=client.project
    )
    assert (reply.status, reply.body) == (200, {})
    [row] = client.get("/v1/traces", project_id=client.project).body["items"]
    [got] = client.get(f"/v1/traces/{row['id']}").body["spans"]
    assert got["metadata"]["k"] == "c\x00d"
    assert "\x00" not in got["name"]


def test_case_10_NUL_round_trips_in_free_JSON_and_is_400_in_names(client: Client) -> None:
    for reply in free_json_writes(client, '{"k\\u0000": "a\\u0000b"}'):
        assert reply.status == 201, reply.raw
    [row] = client.get("/v1/traces", project_id=client.project, limit=1).body["items"]
    [got] = client.get(f"/v1/traces/{row['id']}").body["spans"]
    assert got["input"] == {"k\x00": "a\x00b"}
    for path, body in (
        ("/v1/datasets", {"project_id": client.project, "name": "a\x00b"}),
        ("/v1/projects", {"name": "a\x00"}),
        ("/v1/traces/ingest", {"spans": [span(name="a\x00")]}),
        ("/v1/scores", {"target_id": "a\x00", "target_type": "run", "scorer_name": "s", "value": 1}),
        ("/v1/scores", {"target_id": "a", "target_type": "run", "scorer_name": "s", "value": "l\x00"}),
    ):
        assert client.post(path, body).status == 400, path
    assert client.get("/v1/traces/a%00b").status == 400
    assert client.get("/v1/traces?project_id=%00").status == 400


def test_case_9_and_10_odd_text_in_metadata_is_found_again(client: Client) -> None:
    odd = ["\x00", "\u2028", "\ufffe", "😀", "a\nb", '"', "\\", "\x1f", "\x7f", "é", "e\u0301"]
    traces = [client.trace(metadata={"k": text})[0] for text in odd]
    for text, trace in zip(odd, traces, strict=True):
        if "\x00" in text:
            continue  # a query cannot carry NUL
        rows = client.get("/v1/traces", project_id=client.project, **{"metadata.k": text}).body["items"]
        assert [row["id"] for row in rows] == [trace], ascii(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"k": 1, "k": 1}',
        '{"k": 1, "\\u006b": 2}',
        '[[{"a:b": ":", "k": [], "k": {}}]]',
        '{"k": 123456789012345678901234567890, "k": 1}',
        '{"k": "\\u003a\\u003A", "k": ""}',
    ],
)
def test_duplicate_keys_are_400_naming_the_key_and_change_nothing(client: Client, text: str) -> None:
    before = client.get("/v1/traces", project_id=client.project).body["items"]
    replies = free_json_writes(client, text)
    for reply in replies:
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), reply.raw
        assert reply.body["error"]["details"] == {"key": "k"}
    after = client.get("/v1/traces", project_id=client.project).body["items"]
    assert len(after) == len(before) + 1  # the one that `free_json_writes` needs itself


def test_duplicate_keys_of_typed_fields_are_400(client: Client) -> None:
    run = client.run("a")
    score = f'{{"target_id": "{run}", "target_type": "run", "scorer_name": "s", "value": 0.1, "value": 0.9}}'
    span_head = '"id": "a", "trace_id": "t", "name": "n", "start_time": "2026-02-21T22:00:00Z"'
    otlp = '{"traceId": "%s", "spanId": "%s", "startTimeUnixNano": "1", "name": "a", "name": "b"}'
    for path, body in (
        ("/v1/scores", score),
        ("/v1/scores/batch", f'{{"scores": [{score}]}}'),
        ("/v1/datasets", f'{{"project_id": "{client.project}", "name": "x", "name": "y"}}'),
        ("/v1/traces/ingest", f'{{"spans": [{{{span_head}, "name": "m"}}]}}'),
        ("/v1/traces/ingest", f'{{"spans": [{{{span_head}}}], "unknown": {{"a": 1, "a": 2}}}}'),
    ):
        reply = client.post_raw(path, body.encode())
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), (path, reply.raw)
        assert "twice" in reply.body["error"]["message"]
    spans = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{otlp % ("ab" * 16, "cd" * 8)}]}}]}}]}}'
    refused = client.post_raw("/v1/traces", spans.encode())
    assert refused.status == 400
    assert "'name' is given twice" in refused.body["message"]
    assert client.get("/v1/scores", target_id=run, target_type="run").body["items"] == []


def test_case_16_concurrent_writers_lose_nothing(client: Client) -> None:
    dataset, items = client.dataset(range(40))
    experiment = client.experiment(dataset, auto_complete=False)

    def write(index: int) -> list[int]:
        own = client.again()
        statuses = []
        for offset in range(5):
            run = {
                "dataset_item_id": items[index * 5 + offset],
                "output": index,
                "scores": [{"scorer_name": "s", "value": 0.5}],
            }
            statuses.append(own.post(f"/v1/experiments/{experiment}/runs", {"runs": [run]}).status)
            statuses.append(own.post(f"/v1/datasets/{dataset}/items", {"input": new_id()}).status)
        own.close()
        return statuses

    results = in_parallel(8, write)
    assert {status for statuses in results for status in statuses} == {201}
    summary = client.get(f"/v1/experiments/{experiment}/summary").body
    assert (summary["run_count"], summary["scores_by_scorer"]["s"]["scored_run_count"]) == (40, 40)
    got = client.get(f"/v1/datasets/{dataset}").body
    assert (got["item_count"], got["version"]) == (80, 81)


def test_case_20_multipart_and_ranges(client: Client) -> None:
    body = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n"
    for path in ("/v1/datasets", "/v1/traces", "/v1/scores", "/v1/datasets/x/items/import"):
        assert client.post_raw(path, body, "multipart/form-data; boundary=x").status == 415, path
    ranges = ",".join(f"{n}-{n + 1}" for n in range(0, 4000, 2))
    reply = client.request("GET", "/docs", headers={"Range": f"bytes={ranges}"})
    assert reply.status == 200


def test_ids_with_slashes_and_spaces_reach_their_object_or_404(client: Client) -> None:
    for odd in ("a%2Fb", "%20", "%2e%2e", "%2E%2E%2F", "%252F", "a%0Ab", "%F0%9F%98%80", "~", "(x)"):
        for path in ("datasets", "experiments", "traces", "annotations", "jobs", "rules"):
            assert client.get(f"/v1/{path}/{odd}").status == 404, (path, odd)
    assert client.get("/v1/traces/%ff").status == 400


def test_wrong_types_everywhere_are_400(client: Client) -> None:
    wrong: list[Any] = [5, True, [], {}, 1.5]
    for value in wrong:
        for path, body in (
            ("/v1/datasets", {"project_id": value, "name": "x"}),
            ("/v1/datasets", {"project_id": client.project, "name": value}),
            ("/v1/experiments", {"project_id": client.project, "name": "x", "dataset_id": value}),
            ("/v1/experiments/x/runs", {"runs": value}),
            ("/v1/scores", {"target_id": value, "target_type": "run", "scorer_name": "s", "value": 1}),
            ("/v1/scores", {"target_id": "x", "target_type": "run", "scorer_name": value, "value": 1}),
            ("/v1/annotations", {"trace_id": value, "annotator": "a", "label": "x"}),
            ("/v1/rules", {"project_id": client.project, "name": value, "scorer_name": "regex"}),
            ("/v1/tokens", {"name": "x", "role": value}),
            ("/v1/scores/batch", {"scores": value}),
        ):
            reply = client.post(path, body)
            assert reply.status == 400, (path, body, reply.raw)
