"""A/B reports on pages: two experiments as arms, and uploaded files, hostile ones included."""

import json
import random
import re
from typing import Any

import pytest
from tests.ab_rows import row
from tests.service import ADMIN, Reply, ServiceUnderTest
from tests.service_harness import Client
from tests.visitor import Visitor

from evenhand.ab import RunTable, analyze
from evenhand.ab.report import read_analysis
from evenhand.client.service import ServiceClient
from evenhand.core.errors import InputError
from evenhand.core.ids import new_id
from evenhand.core.secret import Secret
from evenhand.evaluation.trials.recording import record_arms

MARK = "<script>alert(1)</script>"


def rows(treatment: str = "with_tool", control: str = "without_tool") -> list[dict[str, Any]]:
    """Twelve tasks, five repeats: the treatment solves more, and faster."""
    return [
        row(
            f"task {task}",
            arm,
            repeat,
            success=(task + repeat) % 4 != 0 if arm == treatment else (task + repeat) % 3 == 0,
            duration_seconds=float(task + repeat + (0 if arm == treatment else 9)),
        )
        for task in range(12)
        for arm in (treatment, control)
        for repeat in range(1, 6)
    ]


@pytest.fixture(scope="module")
def analysis() -> dict[str, Any]:
    return analyze(rows(), n_resamples=200).to_dict()


def project(service: ServiceUnderTest) -> str:
    found = f"project-{new_id()}"
    assert service.post("/v1/projects", {"id": found, "name": "n"}).status == 201
    return found


def upload(visitor: Visitor, project_id: str, content: bytes) -> Reply:
    boundary = "----boundary-of-a-form"
    secret = visitor.service.sessions.form_secret(visitor.cookie.encode())
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="_secret"\r\n\r\n{secret}\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="analysis.json"\r\n'
        "Content-Type: application/json\r\n\r\n"
    ).encode()
    body += content + f"\r\n--{boundary}--\r\n".encode()
    headers = {
        "Cookie": visitor.cookie,
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": f"multipart/form-data; boundary={boundary}",
    }
    return visitor.service.raw("POST", f"/projects/{project_id}/ab", body, headers, token=None)


def test_a_report_survives_being_written_and_read(analysis: dict[str, Any]) -> None:
    report = analyze(rows(), n_resamples=200)
    again = read_analysis(report.to_json().encode())
    assert {**again.to_dict(), "generated_at_utc": ""} == {**report.to_dict(), "generated_at_utc": ""}
    assert again.verdict == report.verdict == "treatment"


def test_an_uploaded_analysis_is_the_report(service: ServiceUnderTest, analysis: dict[str, Any]) -> None:
    visitor, project_id = Visitor(service), project(service)
    reply = upload(visitor, project_id, json.dumps(analysis, indent=2).encode())
    assert reply.status == 303
    page = visitor.get(reply.headers["location"]).body.decode()
    assert "prefer with_tool" in page
    assert "with_tool against without_tool" in page
    rate = analysis["arm_summaries"][0]["success_rate"]
    assert f"{rate:.0%}" in page or f"{rate:.1%}" in page
    listed = visitor.get(f"/projects/{project_id}/ab?format=json").body
    assert [(one["Arms"], one["Decision"], one["Runs"]) for one in listed] == [
        ("with_tool against without_tool", "prefer with_tool", 120)
    ]
    # Nobody else's, and gone when it is deleted.
    other = project(service)
    path = reply.headers["location"]
    assert Visitor(service, "read", other).get(path).status == 404
    assert visitor.get(path.replace(project_id, other)).status == 404
    assert visitor.post(path.replace(project_id, other) + "/delete").status == 404
    assert visitor.post(f"{path}/delete").status == 303
    assert visitor.get(path).status == 404
    [entry] = service.get("/v1/audit", project_id=project_id).body["items"]
    assert (entry["action"], entry["object_type"]) == ("delete", "ab_report")


def without(given: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


def test_another_file_is_refused_with_the_reason(service: ServiceUnderTest, analysis: dict[str, Any]) -> None:
    visitor, project_id = Visitor(service), project(service)
    wrong: list[tuple[bytes, int, str]] = [
        (b"", 400, "Choose the analysis.json"),
        (b"{", 400, "invalid JSON"),
        (b"\xff\xfe", 400, "JSON"),
        (b"[]", 400, "no analysis.json"),
        (b'{"results": []}', 400, "evenhand ab analyze"),
        (b'{"gates": 1, "gates": 2}', 400, "gates"),
        (b"[" * 100_000, 400, "nested"),
        (json.dumps(without(analysis, "arm_summaries")).encode(), 400, "arm_summaries"),
        (json.dumps(without(analysis, "decision")).encode(), 400, "decision"),
        (json.dumps(without(analysis, "paired")).encode(), 400, "paired"),
        (json.dumps({**analysis, "run_count": "many"}).encode(), 400, "run_count"),
        (json.dumps({**analysis, "gates": analysis["gates"][:2]}).encode(), 400, "gates"),
        (json.dumps({**analysis, "decision": "prefer neither"}).encode(), 400, "decision"),
        (json.dumps({**analysis, "intervals": {}}).encode(), 400, "intervals"),
        (json.dumps({**analysis, "seed": "\x00"}).encode(), 400, "NUL"),
        (b'{"gates": "' + b"a" * (2 * 1024 * 1024) + b'"}', 413, "2,097,1"),
    ]
    for content, status, words in wrong:
        reply = upload(visitor, project_id, content)
        assert (content[:60], reply.status) == (content[:60], status)
        assert words in reply.body.decode(), (content[:60], words)
    assert "None yet" in visitor.get(f"/projects/{project_id}/ab").body.decode()


def changed(value: Any, chance: random.Random) -> Any:
    """The value with one place in it replaced by something else."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return without(value, key)
        return {**value, key: changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        return [*value[:place], changed(value[place], chance), *value[place + 1 :]]
    return chance.choice([None, -1, 1e300, 5e-324, "", MARK, [], {}, True, 10**30, -0.0, "=1+1", "\u202e"])


def test_a_file_that_somebody_changed_is_shown_or_refused(analysis: dict[str, Any]) -> None:
    """Never an error that nobody foresaw: what is read can be drawn."""
    from evenhand.reports.ab import ab_page

    chance, read = random.Random(7), 0
    for _ in range(600):
        data = json.dumps(changed(analysis, chance)).encode()
        try:
            report = read_analysis(data)
        except InputError:
            continue
        page = ab_page(report)
        read += 1
        assert MARK not in page
    assert read > 50


def test_texts_of_an_upload_are_texts(service: ServiceUnderTest) -> None:
    visitor, project_id = Visitor(service), project(service)
    hostile = analyze(rows(MARK, "'\"&<img src=x onerror=alert(1)>"), MARK, n_resamples=50).to_json()
    reply = upload(visitor, project_id, hostile.encode())
    for path in (reply.headers["location"], f"/projects/{project_id}/ab"):
        page = visitor.get(path).body.decode()
        assert MARK not in page
        assert "<img" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_two_recorded_experiments_give_the_librarys_report(service: ServiceUnderTest) -> None:
    project_id, given = project(service), rows()
    with ServiceClient(service.url, Secret(ADMIN)) as client:
        found = record_arms(RunTable.from_records(given), client, project_id, "tools")
    visitor = Visitor(service)
    path = f"/projects/{project_id}/ab/{found['without_tool']}/{found['with_tool']}"
    page = visitor.get(path).body.decode()
    report = analyze(given, "with_tool", "without_tool")
    assert "prefer tools · with_tool" in page
    for summary in report.arm_summaries:
        assert re.search(rf">{summary.successes}<", page)
    swapped = f"/projects/{project_id}/ab/{found['with_tool']}/{found['without_tool']}"
    assert "prefer tools · with_tool" in visitor.get(swapped).body.decode()
    chosen = visitor.get(
        f"/projects/{project_id}/ab/of?control={found['without_tool']}&treatment={found['with_tool']}"
    )
    assert chosen.headers["location"] == path
    other = project(service)
    assert visitor.get(path.replace(project_id, other)).status == 404


def test_runs_without_times_get_an_explanation_instead_of_a_report(service: ServiceUnderTest) -> None:
    client = Client(service.url, ADMIN, project(service))
    dataset, items = client.dataset(["q"])
    ids = [client.experiment(dataset, name=name) for name in ("a", "b")]
    path = f"/projects/{client.project}/ab/{ids[0]}/{ids[1]}"
    assert "nothing says which ones succeeded" in Visitor(service).get(path).body.decode()
    for one in ids:
        score = {"scorer_name": "s", "value": 1}
        client.runs(one, [{"dataset_item_id": items[0], "output": "x", "scores": [score]}])
    page = Visitor(service).get(path).body.decode()
    assert "No run of these experiments has a known duration" in page
    assert "2 runs without a known duration left out" in page
    client.close()
