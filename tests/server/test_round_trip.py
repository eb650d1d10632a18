"""Free JSON comes back byte for byte, and pages hold everything once, whatever is generated. On both databases."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.service import ADMIN, ServiceUnderTest
from tests.service_harness import Client, span

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.server.http.paging import make_cursor, read_cursor

NUMBERS = st.one_of(
    st.sampled_from(["0", "-0", "-0.0", "1.10", "1e5", "1E+05", "1.0e-7", "12345678901234567890", "0.1000"]),
    st.from_regex(r"\A-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?\Z"),
)
CHARACTERS = st.one_of(
    st.sampled_from([r"\u0000", r"\ud83d\ude00", r"\u00e9", r"\n", r"\/", r"\\", r"\"", r"\u005c"]),
    st.characters(min_codepoint=0x20, exclude_characters='"\\', exclude_categories=["Cs"]),
)
STRINGS = st.lists(CHARACTERS, max_size=8).map(lambda parts: '"' + "".join(parts) + '"')
SPACES = st.sampled_from(["", " ", "\n", "\t "])
SCALARS = st.one_of(NUMBERS, STRINGS, st.sampled_from(["true", "false", "null"]))


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Keys that differ as text may be one key once decoded: `json.loads` says which differ."""
    entries = st.lists(
        st.tuples(STRINGS, SPACES, values), max_size=4, unique_by=lambda entry: json.loads(entry[0])
    )
    return entries.map(lambda found: "{" + ",".join(f"{key}:{gap}{value}" for key, gap, value in found) + "}")


def arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(SPACES, st.lists(values, max_size=4)).map(
        lambda found: "[" + ",".join(found[0] + value for value in found[1]) + "]"
    )


TEXTS = st.recursive(SCALARS, lambda inner: arrays(inner) | objects(inner), max_leaves=12)
WORTH = TEXTS.filter(lambda text: text != "null")


@pytest.fixture(scope="module")
def client(shared_service: ServiceUnderTest) -> Iterator[Client]:
    """One project for all examples; each makes what it needs."""
    one = Client(shared_service.url, ADMIN, f"project-{new_id()}")
    one.made("/v1/projects", {"id": one.project, "name": "test"})
    yield one
    one.close()


def post(client: Client, path: str, text: str) -> bytes:
    reply = client.post_raw(path, text.encode())
    assert reply.status == 201, reply.raw
    return reply.raw


def shown(field: str, text: str) -> bytes:
    return f'"{field}":{text}'.encode()


@settings(max_examples=30)
@given(free=WORTH, expected=WORTH, metadata=objects(TEXTS), flat=objects(SCALARS))
def test_free_JSON_comes_back_byte_for_byte(
    client: Client, free: str, expected: str, metadata: str, flat: str
) -> None:
    dataset, _ = client.dataset()
    item_text = f'{{"input":{free},"expected_output":{expected},"metadata":{metadata}}}'
    answers = [post(client, f"/v1/datasets/{dataset}/items", item_text)]
    items = client.get(f"/v1/datasets/{dataset}/items")
    answers.append(items.raw)
    for answer in answers:
        assert shown("input", free) in answer
        assert shown("expected_output", expected) in answer
        assert shown("metadata", metadata) in answer
    head = json.dumps({"project_id": client.project, "name": "e", "dataset_id": dataset})[:-1]
    experiment = json.loads(post(client, "/v1/experiments", f'{head},"metadata":{metadata}}}'))["id"]
    assert shown("metadata", metadata) in client.get(f"/v1/experiments/{experiment}").raw
    scores = f'[{{"scorer_name":"s","value":1,"config":{metadata},"metadata":{metadata}}}]'
    run_text = f'{{"dataset_item_id":"{items.body["items"][0]["id"]}","output":{free},"scores":{scores}}}'
    post(client, f"/v1/experiments/{experiment}/runs", f'{{"runs":[{run_text}]}}')
    runs = client.get(f"/v1/experiments/{experiment}/runs").raw
    assert shown("output", free) in runs
    assert shown("config", metadata) in runs
    assert shown("metadata", metadata) in runs
    trace_spans(client, free, expected, flat)


def trace_spans(client: Client, given_text: str, made_text: str, flat: str) -> None:
    one = span()
    head = json.dumps(one)[:-1]
    text = f'{head},"input":{given_text},"output":{made_text},"metadata":{flat}}}'
    post(client, "/v1/traces/ingest", f'{{"project_id":"{client.project}","spans":[{text}]}}')
    trace = client.get(f"/v1/traces/{one['trace_id']}").raw
    assert shown("input", given_text) in trace
    assert shown("output", made_text) in trace
    assert shown("metadata", flat) in trace
    said = json.dumps({"trace_id": one["trace_id"], "annotator": "a"})[:-1]
    assert shown("correction", given_text) in post(
        client, "/v1/annotations", f'{said},"correction":{given_text}}}'
    )
    assert shown("correction", given_text) in client.get("/v1/annotations", trace_id=one["trace_id"]).raw


@settings(max_examples=25)
@given(count=st.integers(0, 12), limits=st.lists(st.integers(1, 5), min_size=1, max_size=12), data=st.data())
def test_pages_hold_everything_once_in_order_whatever_is_added_meanwhile(
    client: Client, count: int, limits: list[int], data: Any
) -> None:
    dataset, made = client.dataset(range(count))
    seen: list[str] = []
    cursor, turn = None, 0
    while True:
        query = {"limit": limits[turn % len(limits)], "cursor": cursor}
        page = client.get(f"/v1/datasets/{dataset}/items", **query).body
        seen += [item["id"] for item in page["items"]]
        assert len(page["items"]) <= page["limit"] == query["limit"]
        cursor, turn = page["next_cursor"], turn + 1
        if cursor is None:
            break
        if len(made) < count + 5 and data.draw(st.booleans()):
            made.append(client.made(f"/v1/datasets/{dataset}/items", {"input": new_id()})["id"])
    assert seen == made[: len(seen)]
    assert set(made[:count]) <= set(seen)


@given(cursor=st.text(max_size=60) | st.binary(max_size=40).map(lambda data: data.hex()))
@settings(max_examples=50)
def test_a_cursor_of_nobodys_making_is_400(client: Client, cursor: str) -> None:
    for path in ("/v1/datasets", "/v1/experiments", "/v1/traces", "/v1/queue", "/v1/rules", "/v1/jobs"):
        reply = client.get(path, project_id=client.project, cursor=cursor)
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


KEYS = st.lists(
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20), max_size=3
)


@given(key=KEYS, listing=st.text("abc:", max_size=5))
def test_a_cursor_holds_its_key(key: list[str], listing: str) -> None:
    assert read_cursor(make_cursor(listing, key), listing, len(key)) == tuple(key)


@given(key=st.lists(st.text("xyz", max_size=8), min_size=1, max_size=2), flipped=st.data())
def test_a_changed_cursor_is_refused(key: list[str], flipped: Any) -> None:
    cursor = make_cursor("list", key)
    place = flipped.draw(st.integers(0, len(cursor) - 2))
    other = flipped.draw(st.sampled_from("ABCxyz059-_").filter(lambda letter: letter != cursor[place]))
    changed = cursor[:place] + other + cursor[place + 1 :]
    with pytest.raises(Refusal):
        read_cursor(changed, "list", len(key))
