"""Datasets over HTTP, on both databases."""

from concurrent.futures import ThreadPoolExecutor

from tests.service import ServiceUnderTest


def make(service: ServiceUnderTest, name: str = "capitals", project_id: str = "p1") -> str:
    reply = service.post("/v1/datasets", {"project_id": project_id, "name": name})
    assert reply.status == 201, reply
    return str(reply.body["id"])


def test_a_dataset_is_made_read_listed_and_deleted(service: ServiceUnderTest) -> None:
    first = make(service, "  capitals ")
    second = make(service, "rivers")
    made = service.get(f"/v1/datasets/{first}").body
    assert (made["name"], made["version"], made["item_count"]) == ("capitals", 1, 0)
    listed = service.get("/v1/datasets", project_id="p1").body
    assert [d["id"] for d in listed["items"]] == [second, first]
    assert listed["next_cursor"] is None
    assert listed["limit"] == 50
    assert service.delete(f"/v1/datasets/{first}").body == {"deleted": True, "id": first}
    assert service.get(f"/v1/datasets/{first}").status == 404


def test_a_name_is_unique_in_its_project(service: ServiceUnderTest) -> None:
    make(service)
    again = service.post("/v1/datasets", {"project_id": "p1", "name": " capitals"})
    assert (again.status, again.code) == (409, "CONFLICT")
    make(service, project_id="p2")


def test_free_json_comes_back_as_it_went_in(service: ServiceUnderTest) -> None:
    dataset = make(service)
    text = b'{"input": {"n": 36893488147419103232, "z": "\\u0000", "e": 1.50}, "expected_output": "", "metadata": {"a": 1}}'
    reply = service.raw("POST", f"/v1/datasets/{dataset}/items", text)
    assert reply.status == 201, reply
    listed = service.get(f"/v1/datasets/{dataset}/items").body["items"]
    assert listed[0]["input"] == {"n": 36893488147419103232, "z": "\x00", "e": 1.5}
    assert listed[0]["expected_output"] == ""
    assert service.get(f"/v1/datasets/{dataset}").body["version"] == 2


def test_pages_neither_skip_nor_repeat_while_others_insert(service: ServiceUnderTest) -> None:
    dataset = make(service)
    for n in range(5):
        service.post(f"/v1/datasets/{dataset}/items", {"input": n})
    seen: list[int] = []
    cursor: str | None = None
    while True:
        after = f"&cursor={cursor}" if cursor else ""
        page = service.get(f"/v1/datasets/{dataset}/items?limit=2{after}").body
        seen += [item["input"] for item in page["items"]]
        if len(seen) == 2:
            service.post(f"/v1/datasets/{dataset}/items", {"input": 5})
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [0, 1, 2, 3, 4, 5]


def test_the_same_idempotent_request_fifty_times_makes_one_item(service: ServiceUnderTest) -> None:
    dataset = make(service)
    headers = {"Idempotency-Key": "once"}

    def send(_: int) -> str:
        reply = service.post(f"/v1/datasets/{dataset}/items", {"input": 1}, headers=headers)
        assert reply.status == 201, reply
        return str(reply.body["id"])

    with ThreadPoolExecutor(16) as pool:
        ids = set(pool.map(send, range(50)))
    assert len(ids) == 1
    assert service.get(f"/v1/datasets/{dataset}").body["item_count"] == 1
    other = service.post(f"/v1/datasets/{dataset}/items", {"input": 2}, headers=headers)
    assert (other.status, other.code) == (409, "CONFLICT")


def test_no_token_is_401_a_foreign_project_404_and_a_reader_writing_403(service: ServiceUnderTest) -> None:
    dataset = make(service)
    assert service.get(f"/v1/datasets/{dataset}", token=None).code == "UNAUTHORIZED"
    make(service, project_id="p2")
    foreign, reader = service.token("p2"), service.token("p1", "read")
    assert service.get(f"/v1/datasets/{dataset}", token=foreign).code == "NOT_FOUND"
    assert service.get(f"/v1/datasets/{dataset}", token=reader).status == 200
    assert service.delete(f"/v1/datasets/{dataset}", token=reader).code == "FORBIDDEN"
