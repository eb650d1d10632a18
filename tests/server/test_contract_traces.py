"""Section 3 of the contract: traces. One test per line, on both databases."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from tests.service_harness import Client, part, span

from evenhand.core.ids import new_id


def ids(reply: Any) -> list[str]:
    return [item["id"] for item in reply.body["items"]]


def test_ingest_answers_201_with_the_count_and_the_trace_ids(client: Client) -> None:
    one, two = span(), span()
    three = span(trace_id=one["trace_id"], parent_span_id=one["id"])
    reply = client.spans(one, two, three)
    assert reply.status == 201
    assert reply.body == {"accepted": 3, "trace_ids": [one["trace_id"], two["trace_id"]]}


def test_a_span_comes_back_as_it_went_in(client: Client) -> None:
    sent = span(
        input={"question": "Why?", "n": 36893488147419103232, "nul": "\x00"},
        output=["Because", None, 1.5],
        end_time="2026-02-21T23:00:01.250+01:00",
        duration_ms=99,
        tokens_input=12,
        tokens_output=34,
        model="small-1",
        metadata={"text": "t", "number": 1.25, "flag": True, "nothing": None},
        error={"message": "late", "type": "Timeout", "stack": "line 1"},
        some_field_nobody_knows=1,
    )
    assert client.spans(sent).status == 201
    trace = client.get(f"/v1/traces/{sent['trace_id']}").body
    assert trace["root_span_id"] == sent["id"]
    assert trace["project_id"] == client.project
    assert trace["metadata"] == sent["metadata"]
    [got] = trace["spans"]
    for field in ("id", "trace_id", "name", "input", "output", "tokens_input", "tokens_output", "model"):
        assert got[field] == sent[field], field
    assert got["metadata"] == sent["metadata"]
    assert got["error"] == sent["error"]
    assert got["start_time"] == "2026-02-21T22:00:00.000Z"
    assert got["end_time"] == "2026-02-21T22:00:01.250Z"
    # recomputed from the two times; what the client said about it is not used
    assert got["duration_ms"] == 1250
    assert got["parent_span_id"] is None


def test_a_refused_batch_does_not_make_its_project(client: Client) -> None:
    project, one = new_id(), span()
    reply = client.post("/v1/traces/ingest", {"project_id": project, "spans": [one, one]})
    assert (reply.status, reply.code) == (409, "DUPLICATE_SPAN")
    assert project not in {made["id"] for made in client.pages("/v1/projects")}
    assert client.post("/v1/traces/ingest", {"project_id": project, "spans": [one]}).status == 201
    assert project in {made["id"] for made in client.pages("/v1/projects")}


def test_batches_that_share_a_commit_are_stored_or_refused_each_on_its_own(client: Client) -> None:
    first = span()
    assert client.spans(first).status == 201
    good = [[span(), span()] for _ in range(12)]
    bad = [[span(), {**first, "name": str(n)}] for n in range(12)]
    batches = [batch for pair in zip(good, bad, strict=True) for batch in pair]

    def send(batch: list[dict[str, Any]]) -> int:
        with closing(client.again()) as own:
            return own.spans(*batch).status

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(send, batches)) == [201, 409] * 12
    for batch in good:
        assert all(client.get(f"/v1/traces/{one['trace_id']}").body["span_count"] == 1 for one in batch)
    assert all(client.get(f"/v1/traces/{batch[0]['trace_id']}").status == 404 for batch in bad)
    assert client.get(f"/v1/traces/{first['trace_id']}").body["spans"][0]["name"] == first["name"]


def test_duration_is_the_clients_own_while_an_end_is_missing(client: Client) -> None:
    trace_id, _ = client.trace(duration_ms=7.5)
    assert client.get(f"/v1/traces/{trace_id}").body["spans"][0]["duration_ms"] == 7.5


@pytest.mark.parametrize("field", ["id", "trace_id", "name", "start_time"])
def test_a_missing_field_is_INVALID_SPAN_and_named(client: Client, field: str) -> None:
    good, bad = span(), span()
    del bad[field]
    reply = client.spans(good, bad)
    assert (reply.status, reply.code) == (400, "INVALID_SPAN")
    [named] = reply.body["error"]["details"]["spans"]
    assert (named["index"], named["field"]) == (1, field)
    assert client.get(f"/v1/traces/{good['trace_id']}").status == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", ""),
        ("id", 7),
        ("id", "x" * 201),
        ("id", "nul\x00"),
        ("trace_id", None),
        ("name", "  "),
        ("name", ["n"]),
        ("start_time", "yesterday"),
        ("start_time", 1700000000),
        ("end_time", "2026-02-30T00:00:00Z"),
        ("end_time", "2026-02-21T21:59:59.999Z"),
        ("duration_ms", -1),
        ("duration_ms", "7"),
        ("tokens_input", -1),
        ("tokens_input", 1.5),
        ("tokens_output", 2**63),
        ("tokens_output", True),
        ("model", 3),
        ("metadata", {"nested": {"a": 1}}),
        ("metadata", {"list": [1]}),
        ("metadata", ["not an object"]),
        ("metadata", "text"),
        ("error", "text"),
        ("error", {"type": "no message"}),
        ("parent_span_id", ""),
    ],
)
def test_a_wrong_field_is_INVALID_SPAN_and_nothing_is_stored(client: Client, field: str, value: Any) -> None:
    good, bad = span(), span(**{field: value})
    reply = client.spans(good, bad)
    assert (reply.status, reply.code) == (400, "INVALID_SPAN"), reply.raw
    assert [named["index"] for named in reply.body["error"]["details"]["spans"]] == [1]
    assert field in reply.body["error"]["message"]
    assert client.get(f"/v1/traces/{good['trace_id']}").status == 404


def test_every_bad_span_of_a_batch_is_named(client: Client) -> None:
    batch = [span(), span(name=3), span(), span(start_time="x"), {"not": "a span"}, 5]
    reply = client.spans(*batch)  # type: ignore[arg-type]  # one of them is no object on purpose
    assert reply.code == "INVALID_SPAN"
    named = reply.body["error"]["details"]["spans"]
    assert [(row["index"], row["field"]) for row in named] == [
        (1, "name"),
        (3, "start_time"),
        (4, "id"),
        (5, "span"),
    ]


@pytest.mark.parametrize("body", [{"spans": []}, {}, {"spans": {}}, {"spans": None}, [], "x", 5, None])
def test_an_empty_or_shapeless_batch_is_400(client: Client, body: Any) -> None:
    reply = client.post_raw("/v1/traces/ingest", json.dumps(body).encode())
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


def test_a_batch_of_10000_is_taken_and_one_more_is_not(client: Client) -> None:
    trace_id = f"trace-{new_id()}"
    root = span(trace_id=trace_id)
    batch = [root] + [span(trace_id=trace_id, parent_span_id=root["id"], id=f"s{n}") for n in range(10_000)]
    assert client.spans(*batch).code == "INVALID_REQUEST"
    reply = client.spans(*batch[:-1])
    assert (reply.status, reply.body["accepted"]) == (201, 10_000)
    assert client.get(f"/v1/traces/{trace_id}").body["span_count"] == 10_000


def test_the_same_span_again_is_DUPLICATE_SPAN_and_the_stored_one_stays(client: Client) -> None:
    first = span(name="first")
    assert client.spans(first).status == 201
    fresh = span()
    reply = client.spans(fresh, {**first, "name": "second"})
    assert (reply.status, reply.code) == (409, "DUPLICATE_SPAN")
    assert [row["id"] for row in reply.body["error"]["details"]["spans"]] == [first["id"]]
    [stored] = client.get(f"/v1/traces/{first['trace_id']}").body["spans"]
    assert stored["name"] == "first"
    assert client.get(f"/v1/traces/{fresh['trace_id']}").status == 404


def test_the_same_span_twice_in_one_batch_is_DUPLICATE_SPAN(client: Client) -> None:
    twice = span(parent_span_id="p")
    assert client.spans(twice, twice).code == "DUPLICATE_SPAN"


def test_the_same_span_id_in_another_trace_is_fine(client: Client) -> None:
    first = span()
    second = span(id=first["id"])
    assert client.spans(first, second).status == 201


def test_a_parent_in_another_trace_is_INVALID_SPAN_PARENT(client: Client) -> None:
    _, parent = client.trace()
    stray = span(parent_span_id=parent)
    reply = client.spans(stray)
    assert (reply.status, reply.code) == (400, "INVALID_SPAN_PARENT")
    other = span()
    assert client.spans(other, span(parent_span_id=other["id"])).code == "INVALID_SPAN_PARENT"
    assert client.get(f"/v1/traces/{other['trace_id']}").status == 404


def test_a_parent_not_yet_seen_is_fine_and_linked_when_it_arrives(client: Client) -> None:
    root = span()
    child = span(trace_id=root["trace_id"], parent_span_id=root["id"], start_time="2026-02-21T22:00:00.500Z")
    assert client.spans(child).status == 201
    partial = client.get(f"/v1/traces/{root['trace_id']}").body
    assert partial["root_span_id"] is None
    assert [got["id"] for got in partial["spans"]] == [child["id"]]
    assert client.spans(root).status == 201
    whole = client.get(f"/v1/traces/{root['trace_id']}").body
    assert whole["root_span_id"] == root["id"]
    assert [got["id"] for got in whole["spans"]] == [root["id"], child["id"]]


def test_a_cycle_is_CIRCULAR_SPAN_REFERENCE(client: Client) -> None:
    trace_id = f"trace-{new_id()}"
    a = span(trace_id=trace_id, id="a", parent_span_id="b")
    b = span(trace_id=trace_id, id="b", parent_span_id="a")
    reply = client.spans(a, b)
    assert (reply.status, reply.code) == (400, "CIRCULAR_SPAN_REFERENCE")
    assert {row["id"] for row in reply.body["error"]["details"]["spans"]} == {"a", "b"}
    own = span(trace_id=trace_id, id="c", parent_span_id="c")
    assert client.spans(own).code == "CIRCULAR_SPAN_REFERENCE"


def test_a_cycle_over_two_batches_is_found(client: Client) -> None:
    trace_id = f"trace-{new_id()}"
    assert client.spans(span(trace_id=trace_id, id="a", parent_span_id="b")).status == 201
    assert client.spans(span(trace_id=trace_id, id="b", parent_span_id="c")).status == 201
    reply = client.spans(span(trace_id=trace_id, id="c", parent_span_id="a"))
    assert (reply.status, reply.code) == (400, "CIRCULAR_SPAN_REFERENCE")
    assert client.spans(span(trace_id=trace_id, id="c")).status == 201


def test_a_second_root_is_INVALID_SPAN(client: Client) -> None:
    trace_id, _ = client.trace()
    assert client.spans(span(trace_id=trace_id)).code == "INVALID_SPAN"
    one = span()
    assert client.spans(one, span(trace_id=one["trace_id"])).code == "INVALID_SPAN"


def test_spans_are_sorted_by_start_time(client: Client) -> None:
    trace_id, root = client.trace()
    times = ["2026-02-21T22:00:03Z", "2026-02-21T22:00:01Z", "2026-02-21T23:00:02+01:00"]
    batch = [span(trace_id=trace_id, parent_span_id=root, start_time=time) for time in times]
    assert client.spans(*batch).status == 201
    got = client.get(f"/v1/traces/{trace_id}").body["spans"]
    assert [row["id"] for row in got] == [root, batch[1]["id"], batch[2]["id"], batch[0]["id"]]


def test_an_unknown_trace_is_404(client: Client) -> None:
    for method in ("GET", "DELETE"):
        reply = client.request(method, "/v1/traces/no-such")
        assert (reply.status, reply.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "trace_id", ["with space", "with/slash", "ümläut-日本", "a%2Fb", "..", "'; DROP TABLE--"]
)
def test_ids_are_opaque(client: Client, trace_id: str) -> None:
    unique = f"{trace_id} {new_id()}"
    assert client.spans(span(trace_id=unique)).status == 201
    assert client.get(f"/v1/traces/{part(unique)}").body["id"] == unique


def test_a_trace_may_be_called_as_an_address_is(client: Client) -> None:
    more = {"project_id": client.project}
    assert client.spans(span(trace_id="ingest")).status == 201
    assert client.get("/v1/traces/ingest", **more).body["id"] == "ingest"
    assert client.request("PUT", "/v1/traces/ingest").headers["allow"] == "DELETE, GET, POST"
    assert client.delete(f"/v1/traces/ingest?project_id={client.project}").status == 200
    assert client.get("/v1/traces/ingest", **more).code == "NOT_FOUND"


def test_traces_are_listed_newest_first_without_spans(client: Client) -> None:
    made = [client.trace(name=f"n{number}")[0] for number in range(5)]
    reply = client.get("/v1/traces", project_id=client.project)
    assert ids(reply) == made[::-1]
    assert reply.body["next_cursor"] is None
    row = reply.body["items"][0]
    assert "spans" not in row
    assert (row["span_count"], row["name"]) == (1, "n4")


def test_traces_need_a_project(client: Client) -> None:
    reply = client.get("/v1/traces")
    assert (reply.status, reply.code) == (400, "PROJECT_REQUIRED")


def test_pages_of_traces_neither_skip_nor_repeat_while_others_insert(client: Client) -> None:
    made = [client.trace()[0] for _ in range(7)]
    seen: list[str] = []
    cursor = None
    while True:
        reply = client.get("/v1/traces", project_id=client.project, limit=3, cursor=cursor)
        seen += ids(reply)
        cursor = reply.body["next_cursor"]
        if cursor is None:
            break
        client.trace()
    assert seen == made[::-1]


def test_after_and_before_narrow_the_list(client: Client) -> None:
    first, _ = client.trace()
    second, _ = client.trace()
    rows = {row["id"]: row for row in client.get("/v1/traces", project_id=client.project).body["items"]}
    instant = rows[first]["created_at"]
    assert first not in ids(client.get("/v1/traces", project_id=client.project, after=instant))
    assert first not in ids(client.get("/v1/traces", project_id=client.project, before=instant))
    assert ids(client.get("/v1/traces", project_id=client.project, after="2020-01-01T00:00:00Z")) == [
        second,
        first,
    ]
    assert ids(client.get("/v1/traces", project_id=client.project, before="2020-01-01T00:00:00+02:00")) == []
    assert client.get("/v1/traces", project_id=client.project, after="never").code == "INVALID_REQUEST"


def test_traces_are_found_by_the_time_they_tell_of(client: Client) -> None:
    """An import brings old traces late: their own time decides, also their order and the pages."""
    made = {}
    for year in (2021, 2024, 2019, 2022):
        made[year], root = client.trace(start_time=f"{year}-05-05T10:00:00Z")
    # A span that began earlier moves its trace back.
    client.spans(span(trace_id=made[2022], parent_span_id=root, start_time="2018-05-05T10:00:00Z"))

    def listed(**asked: str) -> list[str]:
        found: list[str] = []
        cursor = None
        while True:
            page = client.get("/v1/traces", project_id=client.project, limit=1, cursor=cursor, **asked)
            found += ids(page)
            cursor = page.body["next_cursor"]
            if cursor is None:
                return found

    assert listed(started_after="2018-01-01T00:00:00Z") == [made[2024], made[2021], made[2019], made[2022]]
    assert listed(started_after="2019-05-05T10:00:00Z") == [made[2024], made[2021]]
    assert listed(started_before="2019-05-05T10:00:00Z") == [made[2022]]
    assert listed(started_after="2019-01-01T00:00:00Z", started_before="2022-01-01T00:00:00Z") == [
        made[2021],
        made[2019],
    ]
    assert listed(started_after="2018-01-01T00:00:00Z", before="2020-01-01T00:00:00Z") == []
    assert listed(started_after="2018-01-01T00:00:00Z", has_error="true") == []
    assert client.get(f"/v1/traces/{made[2022]}").body["started_at"] == "2018-05-05T10:00:00.000Z"
    assert client.get("/v1/traces", project_id=client.project, started_after="soon").code == "INVALID_REQUEST"


def test_has_error_in_queue_name_model_and_duration_narrow_the_list(client: Client) -> None:
    plain, _ = client.trace(end_time="2026-02-21T22:00:01Z")
    failed, _ = client.trace(error={"message": "x"}, name="failing")
    modelled, root = client.trace(end_time="2026-02-21T22:00:05Z")
    client.spans(span(trace_id=modelled, parent_span_id=root, model='odd "model"\n'))
    assert client.post(f"/v1/traces/{plain}/queue").status == 200

    def listed(**query: Any) -> set[str]:
        return set(ids(client.get("/v1/traces", project_id=client.project, **query)))

    assert listed(has_error="true") == {failed}
    assert listed(has_error="false") == {plain, modelled}
    assert listed(in_queue="true") == {plain}
    assert listed(in_queue="false") == {failed, modelled}
    assert listed(name="failing") == {failed}
    assert listed(model='odd "model"\n') == {modelled}
    assert listed(model="odd") == set()
    assert listed(min_duration_ms=1000) == {plain, modelled}
    assert listed(min_duration_ms=1000.5) == {modelled}
    assert client.get("/v1/traces", project_id=client.project, has_error="maybe").code == "INVALID_REQUEST"
    for wrong in ("nan", "inf", "-1", "x"):
        assert client.get("/v1/traces", project_id=client.project, min_duration_ms=wrong).status == 400


def test_metadata_narrows_the_list(client: Client) -> None:
    one, _ = client.trace(metadata={"customer": "a", "count": 3, "dotted.key": True, "none": None})
    two, _ = client.trace(metadata={"customer": "b\n", "count": "3"})

    def listed(**query: Any) -> list[str]:
        asked = {f"metadata.{key}": value for key, value in query.items()}
        return ids(client.get("/v1/traces", project_id=client.project, **asked))

    assert listed(customer="a") == [one]
    assert listed(customer="b\n") == [two]
    assert listed(count="3") == [two, one]
    assert listed(count="3", customer="a") == [one]
    assert listed(**{"dotted.key": "true"}) == [one]
    assert listed(none="null") == [one]
    assert listed(unknown="x") == []
    assert listed(**{"' OR 1=1 --": "x"}) == []


def test_a_deleted_trace_is_gone(client: Client) -> None:
    trace_id, span_id = client.trace()
    assert client.delete(f"/v1/traces/{trace_id}").body == {"deleted": True, "id": trace_id}
    assert client.get(f"/v1/traces/{trace_id}").status == 404
    assert client.delete(f"/v1/traces/{trace_id}").status == 404
    assert ids(client.get("/v1/traces", project_id=client.project)) == []
    # its ids are free again
    assert client.spans(span(id=span_id, trace_id=trace_id)).status == 201


def test_spans_go_to_the_named_project_the_header_the_tokens_or_default(client: Client) -> None:
    one, two, three = span(), span(), span()
    client.post("/v1/traces/ingest", {"spans": [one], "project_id": client.project})
    client.post("/v1/traces/ingest", {"spans": [two]}, X_Project_Id=client.project)
    assert client.post("/v1/traces/ingest", {"spans": [three]}).status == 201
    homes = [client.get(f"/v1/traces/{sent['trace_id']}").body["project_id"] for sent in (one, two, three)]
    assert homes == [client.project, client.project, "default"]
    token = client.made("/v1/tokens", {"name": "t", "role": "write", "project_id": client.project})["token"]
    scoped = client.again(token=token)
    four = span()
    assert scoped.post("/v1/traces/ingest", {"spans": [four]}).status == 201
    assert scoped.get(f"/v1/traces/{four['trace_id']}").body["project_id"] == client.project
    foreign = scoped.post("/v1/traces/ingest", {"spans": [span()], "project_id": "default"})
    assert (foreign.status, foreign.code) == (404, "NOT_FOUND")
    scoped.close()


def test_ingest_is_idempotent_with_a_key(client: Client) -> None:
    body = {"spans": [span()], "project_id": client.project}
    first = client.post("/v1/traces/ingest", body, Idempotency_Key="k-" + client.project)
    again = client.post("/v1/traces/ingest", body, Idempotency_Key="k-" + client.project)
    assert (first.status, again.status) == (201, 201)
    assert first.raw == again.raw
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("name", ["x" * 251, "\U0001f600" * 251])
def test_the_projects_header_has_the_limit_of_every_id(client: Client, name: str) -> None:
    sent = {"X-Project-Id": name.encode().decode("latin-1"), "Content-Type": "application/json"}
    long_ids = span(trace_id="\U0001f600" * 200, id="\U0001f600" * 200)
    body = json.dumps({"spans": [long_ids]}).encode()
    reply = client.request("POST", "/v1/traces/ingest", body, sent)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    sent["X-Project-Id"] = name[:250].encode().decode("latin-1")
    assert client.request("POST", "/v1/traces/ingest", body, sent).status == 201
