"""Importing JSON lines, on both databases."""

import gzip
import http.client

from tests.service import ADMIN, ServiceUnderTest, running_service

from evenhand.server.config import RequestLimits
from evenhand.server.ingest.upload import Upload

NDJSON = {"Content-Type": "application/x-ndjson"}


def dataset(service: ServiceUnderTest) -> str:
    return str(service.post("/v1/datasets", {"project_id": "p", "name": "d"}).body["id"])


def test_good_lines_come_in_and_bad_lines_are_reported(service: ServiceUnderTest) -> None:
    made = dataset(service)
    lines = [
        b'\xef\xbb\xbf{"input": 1}\r',
        b'{"input": "two", "expected_output": [1.50], "metadata": {"k": 1}}',
        b"",
        b"{broken",
        b"42",
        b'{"expected_output": 1}',
        b'{"input": null}',
        b'{"input": 1, "input": 2}',
        b'{"input": {"a": {"b": 1, "b": 2}}}',
        b'{"input": "\xff"}',
        b'{"input": 1e400}',
        b'{"input": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"input": 1, "metadata": 3}',
        b'{"input": "", "ignored": true}',
    ]
    reply = service.raw("POST", f"/v1/datasets/{made}/items/import", b"\n".join(lines), NDJSON)
    assert (reply.status, reply.body["imported_count"], reply.body["skipped_count"]) == (200, 3, 10)
    assert [(s["line"], s["reason"]) for s in reply.body["skipped"]] == [
        (4, "invalid_json"),
        (5, "not_an_object"),
        (6, "missing_input"),
        (7, "missing_input"),
        (8, "duplicate_key"),
        (9, "duplicate_key"),
        (10, "invalid_utf8"),
        (11, "invalid_json"),
        (12, "nested_too_deeply"),
        (13, "invalid_metadata"),
    ]
    items = service.get(f"/v1/datasets/{made}/items").body["items"]
    assert [item["input"] for item in items] == [1, "two", ""]
    after = service.get(f"/v1/datasets/{made}").body
    assert (after["version"], after["item_count"]) == (2, 3)


def test_an_import_of_nothing_leaves_the_version(service: ServiceUnderTest) -> None:
    made = dataset(service)
    reply = service.raw(
        "POST", f"/v1/datasets/{made}/items/import", b"nothing\n", {"Content-Type": "application/jsonl"}
    )
    assert (reply.status, reply.body["imported_count"], reply.body["skipped_count"]) == (200, 0, 1)
    assert service.get(f"/v1/datasets/{made}").body["version"] == 1


def test_other_types_unknown_datasets_and_repeats(service: ServiceUnderTest) -> None:
    made = dataset(service)
    path = f"/v1/datasets/{made}/items/import"
    assert service.raw("POST", path, b"{}", {"Content-Type": "text/csv"}).code == "UNSUPPORTED_MEDIA_TYPE"
    assert service.raw("POST", "/v1/datasets/nobody/items/import", b"{}", NDJSON).code == "NOT_FOUND"
    keyed = NDJSON | {"Idempotency-Key": "k"}
    first = service.raw("POST", path, b'{"input": 1}', keyed)
    again = service.raw("POST", path, b'{"input": 1}', keyed)
    assert (first.body, again.headers["idempotent-replayed"]) == (again.body, "true")
    assert service.raw("POST", path, b'{"input": 2}', keyed).code == "CONFLICT"
    assert service.get(f"/v1/datasets/{made}").body["item_count"] == 1


def test_a_compressed_chunked_upload_streams_in(service: ServiceUnderTest) -> None:
    made = dataset(service)
    packed = gzip.compress(b"".join(b'{"input": %d}\n' % n for n in range(20_000)))
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=300)
    headers = NDJSON | {"Content-Encoding": "gzip", "Authorization": f"Bearer {ADMIN}"}
    parts = [packed[n : n + 5000] for n in range(0, len(packed), 5000)]
    connection.request("POST", f"/v1/datasets/{made}/items/import", iter(parts), headers, encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()
    assert service.get(f"/v1/datasets/{made}").body["item_count"] == 20_000


def test_a_line_over_the_limit_is_skipped_and_the_rest_goes_on() -> None:
    with Upload(line_limit=100, most_lines=100) as upload:
        data = b'{"input": 1}\n' + b'{"input": "' + b"x" * 1000 + b'"}\n{"input": 2}'
        for start in range(0, len(data), 7):
            upload.feed(data[start : start + 7])
        upload.finish()
        assert [(s.line, s.reason) for s in upload.skipped] == [(2, "line_too_long")]
        assert [item.input for item in upload.items()] == ["1", "2"]
        assert [item.input for item in upload.items()] == ["1", "2"]


def test_an_import_over_the_limit_changes_nothing(database_url: str) -> None:
    with running_service(database_url, limits=RequestLimits(import_bytes=1000)) as service:
        made = dataset(service)
        body = b'{"input": 1}\n' * 100
        reply = service.raw("POST", f"/v1/datasets/{made}/items/import", body, NDJSON)
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")
        packed = gzip.compress(b'{"input": 1}\n' * 100_000)
        bomb = service.raw(
            "POST", f"/v1/datasets/{made}/items/import", packed, NDJSON | {"Content-Encoding": "gzip"}
        )
        assert (bomb.status, bomb.code) == (413, "PAYLOAD_TOO_LARGE")
        assert service.get(f"/v1/datasets/{made}").body["item_count"] == 0
