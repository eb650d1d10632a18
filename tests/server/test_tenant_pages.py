"""Somebody who was invited to one project never reaches another project's objects over its pages and forms.

Every row of the route table below a project is walked. Each reference in its path, its query or its form is replaced by
a foreign one while all the others stay the visitor's own. With references of the visitor's own alone the same call is
accepted, so it is the foreign one that was refused.
"""

import re
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.ab_rows import worked_example
from tests.server.test_security_walk import belongings, label
from tests.server.test_tenant_walk import PATH_PARAMETER, Values, everything
from tests.service_harness import Client, Reply, span

from evenhand.ab import analyze
from evenhand.core.ids import new_id
from evenhand.server.http.routes import Route
from evenhand.server.table import all_routes

ROUTES = [route for route in all_routes() if route.path.startswith("/projects/{project_id}")]
MARK = "seen-by-nobody-else"
ANOTHER = {
    "base_id": "experiment_id",
    "other_id": "experiment_id",
    "control_id": "experiment_id",
    "treatment_id": "experiment_id",
}
"""Parameters that name an object of a kind that another parameter is called after."""
NO_OBJECT = {"which": "input", "scorer_name": "regex"}
"""Parameters that name nothing of a project, with a value."""
Fields = dict[str, list[str]]
FORMS: dict[str, list[dict[str, str]]] = {
    "POST /projects/{project_id}/datasets": [{"name": "n"}],
    "POST /projects/{project_id}/datasets/{dataset_id}/items": [{"input": "1"}],
    "POST /projects/{project_id}/traces/{trace_id}/annotations": [{"label": "x"}],
    "POST /projects/{project_id}/traces/{trace_id}/annotations/{annotation_id}/item": [
        {"dataset_id": "{dataset_id}"}
    ],
    "POST /projects/{project_id}/queue/{trace_id}/annotations/{annotation_id}/item": [
        {"dataset_id": "{dataset_id}"}
    ],
    "POST /projects/{project_id}/queue/{trace_id}": [{"label": "correct"}],
    "POST /projects/{project_id}/rules": [{"name": "n", "scorer_name": "levenshtein"}],
    "POST /projects/{project_id}/rules/{rule_id}": [{"paused": "true"}],
    "POST /projects/{project_id}/queues": [
        {
            "name": "n",
            "title": "Label",
            "kind": "label",
            "labels": "a, b",
            "good": "a",
        }
    ],
    "POST /projects/{project_id}/queues/{queue_id}/add": [
        {
            "source": "experiment",
            "experiment_id": "{experiment_id}",
        }
    ],
    "POST /projects/{project_id}/queues/{queue_id}/items/{review_item_id}/review": [{"f0": "correct"}],
    "POST /projects/{project_id}/queues/{queue_id}/items/{review_item_id}/adjudicate": [
        {
            "f0": "correct",
            "reason": "r",
        }
    ],
    "POST /projects/{project_id}/queues/{queue_id}/items/{review_item_id}/flag": [{"reason": "r"}],
    "POST /projects/{project_id}/settings/people": [{"name": "n"}],
    "POST /projects/{project_id}/settings/project": [{"name": "n"}],
    "POST /projects/{project_id}/shares": [
        {"kind": "trace", "object_id": "{trace_id}"},
        {"kind": "experiment", "object_id": "{experiment_id}"},
        {"kind": "ab", "object_id": "{report_id}"},
        {"kind": "comparison", "object_id": "{experiment_id} {own_experiment_id}"},
        {"kind": "comparison", "object_id": "{own_experiment_id} {experiment_id}"},
    ],
    "POST /projects/{project_id}/settings/tokens": [{"name": "n"}],
    "POST /projects/{project_id}/views": [{"page": "traces", "name": "n"}],
}
"""The forms to send; `{parameter}` stands for an object of that kind, a space for a field that is given twice."""
QUERIES: dict[str, list[dict[str, str]]] = {
    "GET /projects/{project_id}/compare": [{"pick": "{experiment_id}"}],
    "GET /projects/{project_id}/experiments/{experiment_id}": [{"open": "{run_id}"}, {"of": "{run_id}"}],
    "GET /projects/{project_id}/compare/{base_id}/{other_id}": [{"open": "{item_id}"}],
    "GET /projects/{project_id}/traces/{trace_id}": [{"span": "{span_id}"}, {"focus": "{span_id}"}],
    "GET /projects/{project_id}/queue/{trace_id}": [{"done": "{trace_id}"}],
    "GET /projects/{project_id}/queues/{queue_id}": [
        {"item": "{review_item_id}"},
        {"last": "{review_item_id}"},
    ],
    "GET /projects/{project_id}/ab/of": [{"control": "{experiment_id}", "treatment": "{run_id}"}],
    "GET /projects/{project_id}/agreement": [{"queue": "{queue_id}"}],
    "GET /projects/{project_id}/search": [{"q": MARK}],
}
"""Queries with references. What they name in another project may be passed over, and is never shown."""


FILES = {"import": b'{"input": 1}\n', "ab": analyze(worked_example(), n_resamples=200).to_json().encode()}
"""The file that a form sends, by the end of its address."""


def kind(parameter: str) -> str:
    return ANOTHER.get(parameter, parameter)


def objects(client: Client) -> dict[str, str]:
    """One object of each kind with texts that give it away."""
    found = belongings(client)
    trace_id, session = new_id(), f"session-{new_id()}"
    client.spans(span(trace_id=trace_id, input=MARK, output=MARK, session_id=session))
    client.made("/v1/annotations", {"trace_id": trace_id, "annotator": MARK, "label": "x"})
    assert client.post(f"/v1/traces/{found['trace_id']}/queue").status == 200
    visitor = Visitor(client)
    path = f"/projects/{client.project}/shares"
    visitor.send("POST", path, {"kind": ["trace"], "object_id": [found["trace_id"]]})
    [share] = re.findall(r"/shares/([^/\"]+)/revoke", visitor.send("GET", path).raw.decode())
    base = f"/projects/{client.project}"
    visitor.send("POST", f"{base}/views", {"page": ["traces"], "name": [MARK]})
    [view] = re.findall(r"/views/([^/\"]+)/delete", visitor.send("GET", f"{base}/traces").raw.decode())
    uploaded = visitor.send("POST", f"{base}/ab")
    report = uploaded.headers["location"].rpartition("/")[2]
    visitor.close()
    return {
        **found,
        "session_id": session,
        "share_id": share,
        "view_id": view,
        "report_id": report,
        "own_experiment_id": found["experiment_id"],
    }


class Visitor:
    """A browser of somebody who administers one project."""

    def __init__(self, client: Client) -> None:
        self._client = client.again(token=None)
        body = {"name": f"Ada {new_id()}", "project_id": client.project, "role": "admin"}
        login = self._client.request("GET", client.made("/v1/people", body)["login_path"])
        self._cookie = login.headers["set-cookie"].partition(";")[0]
        page = self.send("GET", f"/projects/{client.project}/settings")
        [self._secret, *_] = re.findall(r'name="_secret" value="([^"]+)"', page.raw.decode())

    def send(self, method: str, path: str, fields: Fields | None = None) -> Reply:
        headers = {"Cookie": self._cookie, "Sec-Fetch-Site": "same-origin"}
        if method == "GET":
            return self._client.request(
                "GET", f"{path}?{urlencode(fields or {}, doseq=True)}", headers=headers
            )
        if path.endswith(tuple(FILES)):
            kind_, form = multipart({"_secret": self._secret}, FILES[path.rpartition("/")[2]])
        else:
            kind_ = "application/x-www-form-urlencoded"
            form = urlencode({"_secret": [self._secret], **(fields or {})}, doseq=True).encode()
        return self._client.request(method, path, form, {**headers, "Content-Type": kind_})

    def close(self) -> None:
        self._client.close()


def multipart(fields: dict[str, str], file: bytes) -> tuple[str, bytes]:
    parts = [f'name="{name}"\r\n\r\n{value}'.encode() for name, value in fields.items()]
    parts.append(b'name="file"; filename="items.jsonl"\r\n\r\n' + file)
    body = b"".join(b"--edge\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts)
    return "multipart/form-data; boundary=edge", body + b"--edge--\r\n"


def path_of(route: Route, values: Values) -> str:
    return PATH_PARAMETER.sub(
        lambda match: quote(NO_OBJECT.get(match[1]) or values[kind(match[1])], safe=""), route.path
    )


def fields_of(form: dict[str, str], values: Values) -> Fields:
    return {name: text.format(**values).split(" ") for name, text in form.items()}


def names_in(form: dict[str, str]) -> set[str]:
    return {name for text in form.values() for name in PATH_PARAMETER.findall(text)}


@pytest.mark.parametrize(
    ("route", "form"),
    [
        pytest.param(route, form, id=f"{label(route)} {number}" if number else label(route))
        for route in ROUTES
        for number, form in enumerate(FORMS.get(label(route), [{}]))
    ],
)
def test_a_foreign_object_in_an_address_or_a_form_is_not_found(
    client: Client, route: Route, form: dict[str, str]
) -> None:
    foreign = objects(client)
    own_project = f"own-{new_id()}"
    client.made("/v1/projects", {"id": own_project, "name": "own"})
    own_client = client.again(project=own_project)
    own = objects(own_client)
    visitor = Visitor(own_client)
    used = {kind(name) for name in PATH_PARAMETER.findall(route.path) if name not in NO_OBJECT} | (
        names_in(form) - {"own_experiment_id"}
    )
    before = everything(client, foreign)
    for name in [*sorted(used), None]:
        mixed = foreign if name is None else {**own, name: foreign[name]}
        reply = visitor.send(route.method, path_of(route, mixed), fields_of(form, mixed))
        assert reply.status == 404, f"a foreign {name or 'everything'}: {reply.status} {reply.raw[-300:]!r}"
        assert MARK.encode() not in reply.raw
    assert everything(client, foreign) == before
    reply = visitor.send(route.method, path_of(route, own), fields_of(form, own))
    assert reply.status in (200, 303), f"{reply.status} {reply.raw[-2000:]!r}"
    visitor.close()
    own_client.close()


@pytest.mark.parametrize(
    ("route", "query"),
    [
        pytest.param(route, query, id=f"{label(route)} {next(iter(query))}")
        for route in ROUTES
        for query in QUERIES.get(label(route), [])
    ],
)
def test_a_foreign_object_in_a_query_is_not_shown(
    client: Client, route: Route, query: dict[str, str]
) -> None:
    foreign = objects(client)
    own_project = f"own-{new_id()}"
    client.made("/v1/projects", {"id": own_project, "name": "own"})
    own_client = client.again(project=own_project)
    own: dict[str, Any] = belongings(own_client)
    visitor = Visitor(own_client)
    reply = visitor.send("GET", path_of(route, own), fields_of(query, foreign))
    assert reply.status in (200, 303, 404), reply.raw[-300:]
    shown = (
        reply.raw.decode().replace(quote(MARK), "").replace(f'value="{MARK}"', "").replace(f"“{MARK}”", "")
    )
    assert MARK not in shown
    visitor.close()
    own_client.close()
