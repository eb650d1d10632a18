"""Searching spans in any script, exports that stream, and pages that are bounded in bytes. On both databases."""

import io
import json
from typing import Any

import pyarrow.parquet
import pytest
from tests.service import running_service
from tests.service_harness import Client, span

from evenhand.core.ids import new_id
from evenhand.server.api.traces import MOST_FILTERS
from evenhand.server.config import RequestLimits
from evenhand.store.pages import MOST_BYTES
from evenhand.store.searching import MOST_CHARACTERS, normal, readable
from evenhand.store.traces import MOST_SPANS

CHINESE = "请问法国的首都是哪里？"
ARABIC = "ما هي عاصمة المملكة العربية السعودية؟"


def found(client: Client, query: str) -> list[str]:
    return [
        one["trace_id"] for one in client.pages("/v1/search", project_id=client.project, q=query, limit=2)
    ]


def test_words_of_any_script_are_found_in_names_inputs_and_outputs(client: Client) -> None:
    chinese, _ = client.trace(input={"messages": [{"role": "user", "content": CHINESE}]})
    arabic, _ = client.trace(output=ARABIC)
    latin, _ = client.trace(
        name="Straße lookup", input="Ünïcode TOKEN-4711", output=["a", {"deep": "Paris\nLyon"}]
    )
    for query, expected in {
        "首都": chinese,
        "法国": chinese,
        "都": chinese,
        "عاصمة": arabic,
        "السعودية المملكة": arabic,
        "strasse": latin,
        "ÜNÏCODE": latin,
        "token-47": latin,
        "paris lyon": latin,
        "lookup paris": latin,
        # compatibility forms: full-width letters
        "\uff30\uff41\uff52\uff49\uff53": latin,
    }.items():
        assert found(client, query) == [expected], query
    assert found(client, "answer") == [arabic, chinese]  # the spans' own name
    for nothing in ("首相", "paris berlin", "عاصمتنا", "%", "_", "' OR 1=1"):
        assert found(client, nothing) == [], nothing


@pytest.mark.parametrize("ascii_only", [True, False])
def test_escapes_in_the_JSON_that_came_do_not_matter(client: Client, ascii_only: bool) -> None:
    one = span(input={"text": f'{CHINESE} "quoted"\ttab'})
    body = json.dumps({"spans": [one], "project_id": client.project}, ensure_ascii=ascii_only)
    assert client.post_raw("/v1/traces/ingest", body.encode()).status == 201
    for query in ("首都", 'quoted"', "text"):
        assert found(client, query) == [one["trace_id"]]
    [hit] = client.get("/v1/search", project_id=client.project, q="首都").body["items"]
    assert (hit["place"], hit["span_id"]) == ("input", one["id"])
    assert "法国的首都是" in hit["excerpt"]


def test_a_search_goes_on_where_it_ended(client: Client) -> None:
    """What one call may look at is bounded: an empty page can go on, and says how far it came."""
    oldest, _ = client.trace(input="needle")
    hay = "x" * (MOST_CHARACTERS // 8 + 1)
    for _ in range(8):
        client.trace(input=hay)
    first = client.get("/v1/search", project_id=client.project, q="needle").body
    assert first["items"] == []
    assert first["next_cursor"] is not None
    assert first["searched_until"] is not None
    assert found(client, "needle") == [oldest]


def test_what_cannot_be_searched_is_400(client: Client) -> None:
    for query in ("", "  ", "x" * 1_001):
        assert client.get("/v1/search", project_id=client.project, q=query).code == "INVALID_REQUEST"
    assert client.get("/v1/search", q="x").code == "PROJECT_REQUIRED"


def test_the_forms_that_are_compared() -> None:
    assert normal("Straße ＡＢ") == "strasse ab"
    assert readable('{"a": ["\\u4e2d", 1, null], "b": "x\\ny"}') == "a\n中\n1\nNone\nb\nx\ny"
    assert readable('not "json \\') == 'not "json \\'
    assert readable(None) == ""


def lines(client: Client, path: str, **query: Any) -> list[Any]:
    reply = client.get(path, **query)
    assert reply.status == 200, reply.raw
    assert reply.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in reply.raw.splitlines()]


def rows(client: Client, path: str, **query: Any) -> list[Any]:
    reply = client.get(path, format="parquet", **query)
    assert reply.status == 200, reply.raw
    table: list[Any] = pyarrow.parquet.read_table(io.BytesIO(reply.raw)).to_pylist()
    return table


def test_exports_hold_what_the_lists_hold(client: Client) -> None:
    dataset, items = client.dataset([{"input": {"n": n}, "metadata": {"k": n}} for n in range(205)])
    client.delete(f"/v1/datasets/{dataset}/items/{items[0]}")
    experiment = client.experiment(dataset, auto_complete=False)
    runs = [
        {"dataset_item_id": item, "output": [item], "scores": [{"scorer_name": "s", "value": 0.5}]}
        for item in items[1:]
    ]
    client.runs(experiment, runs)
    trace_id, span_id = client.trace(input="q")
    client.made(
        "/v1/scores", {"target_id": span_id, "target_type": "span", "scorer_name": "t", "value": "good"}
    )
    path = f"/v1/exports/datasets/{dataset}/items"
    assert lines(client, path) == list(client.pages(f"/v1/datasets/{dataset}/items", limit=200))
    assert [row["id"] for row in lines(client, path, version=206)] == items
    assert [json.loads(row["input"]) for row in rows(client, path)] == [{"n": n} for n in range(1, 205)]
    path = f"/v1/exports/experiments/{experiment}/runs"
    assert lines(client, path) == list(client.pages(f"/v1/experiments/{experiment}/runs", limit=200))
    assert {json.loads(row["scores"])[0]["value"] for row in rows(client, path)} == {0.5}
    path = "/v1/exports/scores"
    listed = list(client.pages("/v1/scores", project_id=client.project, limit=200))
    assert lines(client, path, project_id=client.project) == listed
    assert len(lines(client, path, project_id=client.project, scorer_name="t")) == 1
    exported = rows(client, path, project_id=client.project)
    assert [row["value"] for row in exported] == ["good", *["0.5"] * 204]
    [trace] = lines(client, "/v1/exports/traces", project_id=client.project)
    assert trace == client.get(f"/v1/traces/{trace_id}").body
    assert [row["id"] for row in rows(client, "/v1/exports/traces", project_id=client.project)] == [trace_id]
    nobody = f"empty-{new_id()}"
    client.made("/v1/projects", {"id": nobody, "name": "e"})
    assert lines(client, "/v1/exports/traces", project_id=nobody) == []
    assert rows(client, "/v1/exports/scores", project_id=nobody) == []


def test_an_export_of_nothing_is_an_error_not_an_empty_file(client: Client) -> None:
    dataset, _ = client.dataset()
    for path, code in (
        ("/v1/exports/datasets/no-such/items", "NOT_FOUND"),
        (f"/v1/exports/datasets/{dataset}/items?version=9", "NOT_FOUND"),
        ("/v1/exports/experiments/no-such/runs", "NOT_FOUND"),
        ("/v1/exports/scores", "PROJECT_REQUIRED"),
        ("/v1/exports/traces", "PROJECT_REQUIRED"),
        (f"/v1/exports/datasets/{dataset}/items?format=csv", "INVALID_REQUEST"),
    ):
        assert client.request("GET", path).code == code, path


def named(item: dict[str, Any]) -> str:
    """What an item of a list is: its target in a queue, else its id."""
    return str(
        item.get("target_id", item["id"]) if "queue_id" in item else item.get("id") or item["trace_id"]
    )


def test_a_page_ends_by_bytes_too(client: Client) -> None:
    """No page holds much more than its bytes, and following the cursors gives every row once."""
    large = "x" * (2 * MOST_BYTES // 5)
    dataset, items = client.dataset([large] * 3)
    experiment = client.experiment(dataset, auto_complete=False)
    runs = client.runs(experiment, [{"dataset_item_id": item, "output": large} for item in items])
    scored = client.experiment(dataset, auto_complete=False)
    said = {"scorer_name": "said", "value": 0.5, "metadata": {"k": large}}
    judged = client.runs(scored, [{"dataset_item_id": item, "output": 1, "scores": [said]} for item in items])
    repeats = [{"dataset_item_id": items[0], "output": 1, "repeat": n, "scores": [said]} for n in (1, 2)]
    history = [*client.runs(scored, repeats)[::-1], judged[0], runs[0]]
    target = client.run("answer")
    body = {
        "target_id": target,
        "target_type": "run",
        "scorer_name": "s",
        "value": 1,
        "metadata": {"k": large},
    }
    scores = [client.made("/v1/scores", body)["id"] for _ in range(3)]
    traces = [client.trace(input=large, metadata={"k": large[:-50]})[0] for _ in range(3)]
    for trace_id in traces:
        client.post(f"/v1/traces/{trace_id}/queue")
    note = {"trace_id": traces[0], "annotator": "a", "correction": large}
    notes = [client.made("/v1/annotations", note)["id"] for _ in range(3)]
    project = {"project_id": client.project}
    queue = client.made("/v1/queues", {**project, "name": "q"})["id"]
    client.post(f"/v1/queues/{queue}/items", {"trace_ids": traces})
    of_large = {**project, "dataset_id": dataset, "name": "e", "metadata": {"k": large}}
    planned = [client.made("/v1/experiments", of_large)["id"] for _ in range(3)]
    rule = {
        **project,
        "scorer_name": "regex",
        "config": {"pattern": "a", "flags": "", "expected_output": large},
    }
    rules = [client.made("/v1/rules", {**rule, "name": str(n)})["id"] for n in range(3)]
    for path, query, made in (
        (f"/v1/datasets/{dataset}/items", {}, items),
        (f"/v1/experiments/{experiment}/runs", {}, runs),
        (f"/v1/experiments/{experiment}/runs", {}, runs),
        (f"/v1/experiments/{scored}/runs", {}, [*judged, *history[1::-1]]),
        (f"/v1/experiments/{scored}/runs", {"scorer_name": "said"}, [*judged, *history[1::-1]]),
        (f"/v1/datasets/{dataset}/items/{items[0]}/runs", {}, history),
        ("/v1/annotations", {"trace_id": traces[0]}, notes),
        ("/v1/traces", project, traces[::-1]),
        ("/v1/traces", {**project, "name": "answer"}, traces[::-1]),
        (f"/v1/queues/{queue}/items", {}, traces),
        ("/v1/experiments", project, planned[::-1]),
        ("/v1/rules", project, rules[::-1]),
        ("/v1/scores", {"target_id": target}, scores),
        ("/v1/scores", {"project_id": client.project, "scorer_name": "s", "min_value": 1}, scores[::-1]),
        ("/v1/queue", {"project_id": client.project}, traces),
    ):
        page = client.get(path, **query).body
        assert (len(page["items"]), page["limit"]) == (2, 50), path
        seen = [named(item) for item in client.pages(path, **query)]
        assert seen[: len(made)] == made, path
        assert len(set(seen)) == len(seen), path


def test_a_long_trace_is_sent_in_pieces_and_whole(client: Client) -> None:
    """More spans and longer texts than are held in memory at once: the answer, and both exports, have every span once."""
    trace_id = f"trace-{new_id()}"
    large = "x" * (2 * MOST_BYTES // 5)
    root = span(trace_id=trace_id, start_time="2026-02-21T22:00:01.000Z")
    call = span(trace_id=trace_id, parent_span_id=root["id"], model="m", input="q", output=large)
    texts = [span(trace_id=trace_id, parent_span_id=root["id"], output=large) for _ in range(3)]
    for one in (root, call, *texts):
        assert client.spans(one).status == 201
    many = [span(trace_id=trace_id, parent_span_id=root["id"], name=str(n)) for n in range(MOST_SPANS)]
    assert client.spans(*many).status == 201
    reply = client.get(f"/v1/traces/{trace_id}")
    assert "content-length" not in reply.headers
    assert reply.headers["content-type"] == "application/json"
    sent = {one["id"]: one for one in (root, call, *texts, *many)}
    spans = reply.body["spans"]
    assert [one["id"] for one in spans] == sorted(sent, key=lambda key: (sent[key]["start_time"], key))
    assert all(one["output"] == sent[one["id"]].get("output") for one in spans[:-1])
    # The root comes last here, in another piece than the call whose texts it shows.
    assert (spans[-1]["id"], spans[-1]["input"], spans[-1]["input_from_span_id"]) == (
        root["id"],
        "q",
        call["id"],
    )
    assert reply.body["span_count"] == len(spans)
    [line] = client.get("/v1/exports/traces", project_id=client.project).raw.splitlines()
    assert json.loads(line) == reply.body
    file = client.get("/v1/exports/traces", project_id=client.project, format="parquet").raw
    rows = pyarrow.parquet.read_table(io.BytesIO(file)).to_pylist()
    assert {row["id"] for row in rows} == {trace_id}
    assert [one for row in rows for one in json.loads(row["spans"])] == spans
    assert len(rows) > 2


def test_scores_that_are_too_many_for_one_answer_are_counted(client: Client) -> None:
    dataset, [item] = client.dataset(["q"])
    experiment = client.experiment(dataset, auto_complete=False)
    said = {"scorer_name": "s", "value": 0.5, "metadata": {"k": "x" * (2 * MOST_BYTES // 5)}}
    [run] = client.runs(experiment, [{"dataset_item_id": item, "output": 1, "scores": [said, said]}])
    [shown] = client.get(f"/v1/experiments/{experiment}/runs").body["items"]
    assert (len(shown["scores"]), "scores_left_out" in shown) == (2, False)
    trace_id, span_id = client.trace(scores=[said, said])
    for target_id, kind in ((run, "run"), (span_id, "span")):
        client.made("/v1/scores", {"target_id": target_id, "target_type": kind, **said})
        assert len(list(client.pages("/v1/scores", target_id=target_id, target_type=kind))) == 3
    [shown] = client.get(f"/v1/experiments/{experiment}/runs").body["items"]
    assert (len(shown["scores"]), shown["scores_left_out"]) == (2, 1)
    [shown] = client.get(f"/v1/traces/{trace_id}").body["spans"]
    assert (len(shown["scores"]), shown["scores_left_out"]) == (2, 1)


def test_a_row_that_is_larger_than_a_page_comes_alone(client: Client) -> None:
    dataset, items = client.dataset(["x" * (MOST_BYTES + 1), "y"])
    path = f"/v1/datasets/{dataset}/items"
    assert len(client.get(path).body["items"]) == 1
    assert [item["id"] for item in client.pages(path)] == items


def test_filters_parameters_and_keys_are_bounded(client: Client) -> None:
    many = {f"metadata.k{n}": "v" for n in range(MOST_FILTERS + 1)}
    assert client.get("/v1/traces", project_id=client.project, **many).code == "INVALID_REQUEST"
    fewer = dict(list(many.items())[:MOST_FILTERS])
    assert client.get("/v1/traces", project_id=client.project, **fewer).status == 200
    crowd = "&".join(f"metadata.k{n}=v" for n in range(1_500))
    assert client.request("GET", f"/v1/traces?project_id={client.project}&{crowd}").code == "INVALID_REQUEST"
    dataset, _ = client.dataset()
    keys = ",".join(f'"k{n}":1' for n in range(500_001))
    reply = client.post_raw(f"/v1/datasets/{dataset}/items", b'{"input":{' + keys.encode() + b"}}")
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert "500,000 keys" in reply.body["error"]["message"]
    lines = b'{"input":{' + keys.encode() + b'}}\n{"input": 1}\n'
    imported = client.post_raw(f"/v1/datasets/{dataset}/items/import", lines, "application/x-ndjson").body
    assert (imported["imported_count"], imported["skipped"]) == (1, [{"line": 1, "reason": "too_many_keys"}])


def test_the_lines_of_an_import_are_bounded(database_url: str) -> None:
    with running_service(database_url, limits=RequestLimits(import_lines=10)) as service:
        dataset = service.post("/v1/datasets", {"project_id": "default", "name": "d"}).body["id"]
        path, kind = f"/v1/datasets/{dataset}/items/import", {"Content-Type": "application/x-ndjson"}
        reply = service.raw("POST", path, b'{"input": 1}\n' * 11, kind)
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")
        assert service.get(f"/v1/datasets/{dataset}").body["item_count"] == 0
        assert service.raw("POST", path, b'{"input": 1}\n' * 10, kind).body["imported_count"] == 10
