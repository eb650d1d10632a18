"""Tables of pages as files, and saved views: exactly what is on screen, safe in a spreadsheet."""

import csv
import io
import re

import pyarrow.parquet
from tests.service import ADMIN, ServiceUnderTest
from tests.service_harness import Client
from tests.visitor import Visitor

from evenhand.core.ids import new_id

FORMULAS = ("=1+1", "+1", "-1", "@sum", "\t=1", "\r=1")
LISTS = (
    "traces",
    "sessions",
    "experiments",
    "datasets",
    "jobs",
    "ab",
    "shares",
    "queue",
    "rules",
    "search?q=x",
)


def project(service: ServiceUnderTest) -> Client:
    client = Client(service.url, ADMIN, f"project-{new_id()}")
    client.made("/v1/projects", {"id": client.project, "name": "n"})
    return client


def test_the_table_on_screen_is_what_every_format_has(service: ServiceUnderTest) -> None:
    client, visitor = project(service), Visitor(service)
    dataset, items = client.dataset(["one", "two", "three"])
    # A scorer may be called like a column, or like a formula.
    for name, value in (("first", 0.25), ("second", 0.75)):
        experiment = client.experiment(dataset, name=name)
        scores = [{"scorer_name": scorer, "value": value} for scorer in ("Name", "=s")]
        client.runs(experiment, [{"dataset_item_id": items[0], "output": name, "scores": scores}])
    path = f"/projects/{client.project}/experiments"
    records = visitor.get(f"{path}?format=json").body
    assert [one["Name"] for one in records] == ["second", "first"]
    assert [one["Name (2)"] for one in records] == [0.75, 0.25]
    lines = list(csv.reader(io.StringIO(visitor.get(f"{path}?format=csv").body.decode())))
    assert lines[0] == [f"'{name}" if name.startswith("=") else name for name in records[0]]
    assert [line[0] for line in lines[1:]] == ["second", "first"]
    reply = visitor.get(f"{path}?format=parquet")
    assert reply.headers["content-type"] == "application/vnd.apache.parquet"
    assert reply.headers["content-disposition"] == 'attachment; filename="Experiments.parquet"'
    table = pyarrow.parquet.read_table(io.BytesIO(reply.body))
    assert table.to_pylist() == records
    assert str(table.schema.field("=s").type) == "double"
    # A filter of the page is one of the file.
    runs = f"/projects/{client.project}/experiments/{experiment}?scorer=Name&min=0.9"
    assert visitor.get(f"{runs}&format=json").body == []
    client.close()


def test_a_cell_that_looks_like_a_formula_is_text_in_a_spreadsheet(service: ServiceUnderTest) -> None:
    client, visitor = project(service), Visitor(service)
    for name in FORMULAS:
        client.trace(name=name)
    text = visitor.get(f"/projects/{client.project}/traces?format=csv").body.decode()
    cells = [cell for line in csv.reader(io.StringIO(text, newline="")) for cell in line]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
    names = [
        next(iter(one.values())) for one in visitor.get(f"/projects/{client.project}/traces?format=json").body
    ]
    assert sorted(names) == sorted(FORMULAS)  # programs get the text as it is
    client.close()


def test_rules_are_exported_as_the_page_shows_them(service: ServiceUnderTest) -> None:
    client, visitor = project(service), Visitor(service)
    path = f"/projects/{client.project}/rules"
    form = {"scorer_name": "regex", "config": '{"pattern": "refund"}', "only": "errors"}
    for name, percent in (("=first", "12.5"), ("second", "100")):
        assert visitor.post(path, {**form, "name": name, "percent": percent}).status == 303
    records = visitor.get(f"{path}?format=json").body
    assert [(one["Name"], one["Rate"]) for one in records] == [("second", 1.0), ("=first", 0.125)]
    assert {(one["State"], one["Scorer"], one["Scores"]) for one in records} == {
        ("on", "regex", "spans that failed")
    }
    table = pyarrow.parquet.read_table(io.BytesIO(visitor.get(f"{path}?format=parquet").body))
    assert table.to_pylist() == records
    lines = list(csv.reader(io.StringIO(visitor.get(f"{path}?format=csv").body.decode())))
    assert [line[0] for line in lines] == ["Name", "second", "'=first"]
    # The page itself offers the three files.
    page = visitor.get(path).body.decode()
    assert re.findall(r"format=(\w+)", page) == ["csv", "json", "parquet"]
    client.close()


def test_every_list_has_every_format(service: ServiceUnderTest) -> None:
    client, visitor = project(service), Visitor(service)
    for name in LISTS:
        path = f"/projects/{client.project}/{name}"
        for kind in ("csv", "json", "parquet"):
            reply = visitor.get(f"{path}{'&' if '?' in path else '?'}format={kind}")
            assert reply.status == 200
            assert f".{kind}" in reply.headers.get("content-disposition", ""), (name, kind)
    client.close()


def test_a_view_is_a_name_for_the_filters_and_stays_in_its_project(service: ServiceUnderTest) -> None:
    client, other, visitor = project(service), project(service), Visitor(service)
    base = f"/projects/{client.project}"
    form = {"page": "traces", "name": " Failed today ", "query": "h=24&errors=1"}
    saved = visitor.post(f"{base}/views", form)
    assert (saved.status, saved.headers["location"]) == (303, f"{base}/traces?h=24&errors=1")
    page = visitor.get(f"{base}/traces").body.decode()
    assert f'href="{base}/traces?h=24&amp;errors=1">Failed today</a>' in page
    assert "Failed today" not in visitor.get(f"{base}/experiments").body.decode()
    assert "Failed today" not in visitor.get(f"/projects/{other.project}/traces").body.decode()
    # The same name again is the same view with another state.
    visitor.post(f"{base}/views", {**form, "query": "h=1"})
    [view_id] = re.findall(r"/views/([\w-]+)/delete", visitor.get(f"{base}/traces").body.decode())
    assert 'traces?h=1">Failed today' in visitor.get(f"{base}/traces").body.decode()
    for bad in (
        {"name": " "},
        {"name": "x" * 81},
        {"query": "a" * 2001},
        {"query": "é"},
        {"page": ""},
        {"page": "../.."},
    ):
        assert visitor.post(f"{base}/views", {**form, **bad}).status == 400, bad
    # Nobody reaches it from another project, and who only reads uses it without changing it.
    assert visitor.post(f"/projects/{other.project}/views/{view_id}/delete").status == 404
    reader = Visitor(service, "read", client.project)
    assert "Failed today" in reader.get(f"{base}/traces").body.decode()
    assert reader.post(f"{base}/views", form).status == 403
    assert reader.post(f"{base}/views/{view_id}/delete").status == 403
    stranger = Visitor(service, "admin", other.project)
    assert stranger.post(f"{base}/views/{view_id}/delete").status == 404
    assert visitor.post(f"{base}/views/{view_id}/delete").status == 303
    assert "Failed today" not in reader.get(f"{base}/traces").body.decode()
    client.close()
    other.close()
