"""Share links: one object for whoever has the link, and nothing else of the project."""

import re
import sqlite3
from pathlib import Path
from typing import Any

from tests.ab_suites import wait_for
from tests.service import ADMIN, ServiceUnderTest, running_service
from tests.service_harness import Client, running
from tests.visitor import Visitor

from evenhand.core.ids import new_id
from evenhand.server.config import RequestLimits

BROWSER = {"Accept": "text/html"}


def project(service: ServiceUnderTest) -> Client:
    """A client in a project of its own."""
    client = Client(service.url, ADMIN, f"project-{new_id()}")
    client.made("/v1/projects", {"id": client.project, "name": "Private project"})
    return client


def objects(client: Client) -> dict[str, str]:
    """A trace, and two experiments with runs that link to it."""
    trace, _ = client.trace(name="the trace", output="what the trace said")
    dataset, items = client.dataset(["first question", "second question"])
    found = {"trace": trace}
    for name in ("base", "other"):
        found[name] = client.experiment(dataset, name=f"experiment {name}")
        runs = [
            {
                "dataset_item_id": item,
                "output": f"{name} answer",
                "trace_id": trace,
                "scores": [{"scorer_name": "s", "value": 0.5, "rationale": "because"}],
            }
            for item in items
        ]
        client.runs(found[name], runs)
    return found


def share(visitor: Visitor, project_id: str, kind: str, *ids: str, **more: str) -> str:
    """The path of a new link."""
    pairs = [("kind", kind), *(("object_id", one) for one in ids), *more.items()]
    reply = visitor.post(f"/projects/{project_id}/shares", pairs)
    assert reply.status == 200, reply
    [link] = re.findall(r"http://[^/]+(/shared/[^<\s]+)", reply.body.decode())
    return str(link).replace("&amp;", "&")


def read(service: ServiceUnderTest, path: str) -> tuple[int, str, dict[str, str]]:
    """What somebody without a session gets."""
    reply = service.raw("GET", path, None, BROWSER, token=None)
    text = reply.body.decode() if isinstance(reply.body, bytes) else str(reply.body)
    return reply.status, text, reply.headers


def test_a_link_shows_one_object_and_no_way_to_another(service: ServiceUnderTest) -> None:
    client = project(service)
    found, visitor = objects(client), Visitor(service)
    kinds = {
        "trace": (("trace", found["trace"]), "what the trace said"),
        "experiment": (("experiment", found["base"]), "base answer"),
        "comparison": (("comparison", found["base"], found["other"]), "experiment other"),
    }
    for kind, (given, expected) in kinds.items():
        link = share(visitor, client.project, *given)
        status, text, headers = read(service, link)
        assert (status, expected in text) == (200, True), kind
        # No address of the project, no form that changes something, no secret of a form.
        assert "/projects" not in text
        assert 'method="post"' not in text
        assert "_secret" not in text
        if kind != "trace":
            assert found["trace"] not in text
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["x-robots-tag"] == "noindex, nofollow"
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert "set-cookie" not in headers
    # An open run, and an open item of a comparison, lead to their traces only inside.
    run = client.get(f"/v1/experiments/{found['base']}/runs").body["items"][0]
    for given, name, opened in (
        (("experiment", found["base"]), "open", run["id"]),
        (("comparison", found["base"], found["other"]), "open", run["dataset_item_id"]),
    ):
        link = share(visitor, client.project, *given, view=f"{name}={opened}")
        assert link.endswith(f"?{name}={opened}")
        status, text, _ = read(service, link)
        assert (status, "because" in text, found["trace"] in text) == (200, True, False)
        assert "/projects" not in text
    client.close()


def test_an_export_is_not_part_of_what_is_shared(service: ServiceUnderTest) -> None:
    client = project(service)
    found = objects(client)
    link = share(Visitor(service), client.project, "experiment", found["base"], view="format=csv")
    for path in (link, f"{link}?format=csv", f"{link}?format=json"):
        status, text, headers = read(service, path)
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert found["trace"] not in text
    client.close()


def test_a_link_that_was_taken_back_or_has_ended_shows_nothing(service: ServiceUnderTest) -> None:
    client = project(service)
    found, visitor = objects(client), Visitor(service)
    links = [share(visitor, client.project, "trace", found["trace"], days="1") for _ in range(2)]
    listed = visitor.get(f"/projects/{client.project}/shares").body.decode()
    newest, oldest = re.findall(r"/shares/([\w-]+)/revoke", listed)
    done = visitor.post(f"/projects/{client.project}/shares/{newest}/revoke")
    assert done.status == 303
    assert read(service, links[1])[0] == 404
    assert read(service, links[0])[0] == 200
    service.database.write_now(
        lambda connection: connection.run(
            "UPDATE shares SET expires_at = '2026-01-01T00:00:00.000Z' WHERE id = ?", oldest
        )
    )
    status, text, _ = read(service, links[0])
    assert status == 404
    assert "what the trace said" not in text
    listed = visitor.get(f"/projects/{client.project}/shares").body.decode()
    assert "taken back" in listed
    assert "ended" in listed
    actions = [
        (entry["action"], entry["object_type"], entry["object_id"], entry["actor"])
        for entry in client.get("/v1/audit", project_id=client.project).body["items"]
    ]
    assert actions == [
        ("revoke", "share", newest, "login link"),
        ("share", "share", newest, "login link"),
        ("share", "share", oldest, "login link"),
    ]
    client.close()


def test_what_is_deleted_is_no_longer_shown(service: ServiceUnderTest) -> None:
    client = project(service)
    found, visitor = objects(client), Visitor(service)
    link = share(visitor, client.project, "trace", found["trace"])
    other = share(visitor, client.project, "experiment", found["base"])
    assert client.request("DELETE", f"/v1/traces/{found['trace']}").status == 200
    assert read(service, link)[0] == 404
    assert client.request("DELETE", f"/v1/projects/{client.project}").status == 200
    assert read(service, other)[0] == 404
    client.close()


def test_nobody_shares_or_takes_back_what_is_another_projects(service: ServiceUnderTest) -> None:
    foreign, own = project(service), project(service)
    found = objects(foreign)
    link = share(Visitor(service), foreign.project, "trace", found["trace"])
    listed = Visitor(service).get(f"/projects/{foreign.project}/shares").body.decode()
    [share_id] = re.findall(r"/shares/([\w-]+)/revoke", listed)
    stranger = Visitor(service, "admin", own.project)
    given = {
        "trace": [found["trace"]],
        "experiment": [found["base"]],
        "comparison": [found["base"], found["other"]],
    }
    for kind, ids in given.items():
        pairs = [("kind", kind), *(("object_id", one) for one in ids)]
        for where in (own.project, foreign.project):
            reply = stranger.post(f"/projects/{where}/shares", pairs)
            assert (kind, where, reply.status) == (kind, where, 404)
        # An administrator of all projects shares it in its own project alone.
        assert Visitor(service).post(f"/projects/{own.project}/shares", pairs).status == 404
    for where in (own.project, foreign.project):
        assert stranger.post(f"/projects/{where}/shares/{share_id}/revoke").status == 404
    assert stranger.get(f"/projects/{foreign.project}/shares").status == 404
    assert read(service, link)[0] == 200
    reader = Visitor(service, "read", foreign.project)
    assert (
        reader.post(
            f"/projects/{foreign.project}/shares", [("kind", "trace"), ("object_id", found["trace"])]
        ).status
        == 403
    )
    foreign.close()
    own.close()


def test_a_bad_form_makes_no_link(service: ServiceUnderTest) -> None:
    client = project(service)
    found, visitor = objects(client), Visitor(service)
    bad: list[list[tuple[str, Any]]] = [
        [("kind", "dataset"), ("object_id", found["trace"])],
        [("kind", "trace")],
        [("kind", "comparison"), ("object_id", found["base"])],
        [("kind", "trace"), ("object_id", found["trace"]), ("days", "0")],
        [("kind", "trace"), ("object_id", found["trace"]), ("days", "366")],
        [("kind", "trace"), ("object_id", found["trace"]), ("view", "depth=much")],
    ]
    for pairs in bad:
        assert visitor.post(f"/projects/{client.project}/shares", pairs).status == 400, pairs
    page = visitor.get(f"/projects/{client.project}/shares").body.decode()
    assert "Nothing is shared" in page
    client.close()


def test_guessing_and_hammering_are_slowed_down(tmp_path: Path) -> None:
    limits = RequestLimits(wrong_tokens_per_minute=5, share_views_per_minute=3, query_seconds=60.0)
    with running_service(f"sqlite:///{tmp_path / 'e.db'}", limits=limits) as service:
        client = project(service)
        link = share(Visitor(service), client.project, "trace", objects(client)["trace"])
        guesses = [read(service, f"/shared/guess-{n}")[0] for n in range(7)]
        assert guesses == [404] * 5 + [429] * 2
        # Guessing does not keep those out who have a link.
        assert [read(service, link)[0] for _ in range(4)] == [200, 200, 200, 429]
        client.close()


def test_the_secret_is_neither_in_the_database_nor_in_a_log(tmp_path: Path) -> None:
    database = tmp_path / "e.db"
    with running_service(f"sqlite:///{database}") as service:
        client = project(service)
        link = share(Visitor(service), client.project, "trace", objects(client)["trace"])
        client.close()
    secret = link.removeprefix("/shared/")
    assert len(secret) == 43
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()
    with sqlite3.connect(database) as opened:
        [(kept,)] = opened.execute("SELECT secret_hash FROM shares")
    assert re.fullmatch(r"[0-9a-f]{64}", kept)
    with running(f"sqlite:///{database}", tmp_path, "--access-log", "--log-level", "debug") as server:
        reader = Client(server.address)
        assert reader.request("GET", link).status == 200
        assert reader.request("GET", f"{link}?depth=much").status == 400
        assert reader.request("GET", f"{link}x").status == 404
        reader.close()
        wait_for(lambda: server.log().count("/shared/{secret}") == 3)  # the line follows the answer
        log = server.log()
    assert secret not in log
