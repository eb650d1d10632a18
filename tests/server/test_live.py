"""The stream that tells open pages that something has changed."""

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from tests.service import ADMIN, ServiceUnderTest, running_service
from tests.service_harness import Client
from tests.visitor import Visitor

from evenhand.core.ids import new_id

WAIT = 60.0


@contextmanager
def stream(visitor: Visitor, *projects: str) -> Iterator[Callable[[], dict[str, Any] | None]]:
    """Reads the next event; None where the stream has ended."""
    connection = http.client.HTTPConnection("127.0.0.1", visitor.service.port, timeout=WAIT)
    query = "&".join(f"of.{one}=1" for one in projects)
    connection.request("GET", f"/live?{query}", headers={"Cookie": visitor.cookie})
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream")

    def following() -> dict[str, Any] | None:
        while line := answer.readline():
            if line.startswith(b"data: "):
                found: dict[str, Any] = json.loads(line[6:])
                return found
        return None

    try:
        yield following
    finally:
        connection.close()


def project(service: ServiceUnderTest) -> Client:
    client = Client(service.url, ADMIN, f"project-{new_id()}")
    client.made("/v1/projects", {"id": client.project, "name": "n"})
    return client


def streams_open(service: ServiceUnderTest) -> int:
    page = service.raw("GET", "/metrics").body.decode()
    return int(re.findall(r"^evenhand_streams_open (\d+)", page, re.MULTILINE)[0])


def test_every_kind_of_change_is_news_on_every_server_of_a_database(
    service: ServiceUnderTest, service_url: str
) -> None:
    """With PostgreSQL the stream is another server's, which hears of the changes through the database alone."""
    several = service_url.startswith("postgresql")
    with running_service(service_url) if several else nullcontext(service) as second:
        client = project(service)
        dataset, items = client.dataset(["one", "two"])
        experiment = client.experiment(dataset)
        with stream(Visitor(second), client.project) as following:
            first = following()
            assert first is not None
            marks = [first["mark"]]

            def changed() -> None:
                event = following()
                assert event is not None
                assert event["project"] == client.project
                assert event["mark"] not in marks
                marks.append(event["mark"])

            [run] = client.runs(experiment, [{"dataset_item_id": items[0], "output": "x"}])
            changed()
            score = {"target_id": run, "target_type": "run", "scorer_name": "s", "value": 1}
            client.made("/v1/scores", score)
            changed()
            client.request("POST", f"/v1/experiments/{experiment}/complete")
            changed()
        client.close()


def test_a_stream_names_projects_that_its_reader_may_see(service: ServiceUnderTest) -> None:
    own, foreign = project(service), project(service)
    reader = Visitor(service, "read", own.project)
    assert reader.get(f"/live?of.{foreign.project}=1").status == 404
    assert reader.get(f"/live?of.{own.project}=1&of.{foreign.project}=1").status == 404
    assert Visitor(service).get("/live?of.unknown=1").status == 404
    assert reader.get("/live").status == 400
    assert Visitor(service, "review", own.project).get(f"/live?of.{own.project}=1").status == 403
    assert service.raw("GET", f"/live?of.{own.project}=1", token=None).status == 401
    with stream(Visitor(service), own.project, foreign.project) as following:
        told = {(following() or {})["project"], (following() or {})["project"]}
    assert told == {own.project, foreign.project}
    own.close()
    foreign.close()


def test_open_streams_do_not_keep_a_server_from_stopping(service_url: str) -> None:
    ended = threading.Event()
    with running_service(service_url) as service:
        client = project(service)
        entered = stream(Visitor(service), client.project)
        following = entered.__enter__()
        assert following() is not None
        assert streams_open(service) == 1

        def read() -> None:
            while following() is not None:
                pass
            ended.set()

        threading.Thread(target=read, daemon=True).start()
        client.close()
    # `running_service` has stopped the server gracefully; the stream ended as a whole answer.
    assert ended.wait(WAIT)
    entered.__exit__(None, None, None)


def test_who_leaves_is_no_longer_looked_for(service: ServiceUnderTest) -> None:
    client = project(service)
    with stream(Visitor(service), client.project) as following:
        assert following() is not None
        assert streams_open(service) == 1
    deadline = threading.Event()
    for _ in range(600):
        if streams_open(service) == 0:
            break
        deadline.wait(0.1)
    assert streams_open(service) == 0
    client.close()
