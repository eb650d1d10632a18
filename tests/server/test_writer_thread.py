"""The thread that writes runs code of the store and of the parts that feed it, never a handler's."""

import threading
from pathlib import Path
from types import FrameType
from typing import Any

from tests.server.test_every_post import POSTS, send
from tests.service import ADMIN, running_service
from tests.service_harness import Client

from evenhand.core.ids import new_id
from evenhand.server import api

HANDLERS = str(Path(api.__file__).parent)
MODELS = '[models.small]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "x"\nallow_private = true\n'


class CallsOfTheWriter:
    """Which files' functions the writer's thread has called."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and threading.current_thread().name == "evenhand-writer":
            self.files.add(frame.f_code.co_filename)


def delete_everything(client: Client) -> None:
    dataset, _ = client.dataset(["x"])
    trace_id, _ = client.trace()
    rule = {
        "project_id": client.project,
        "name": new_id(),
        "scorer_name": "regex",
        "config": {"pattern": "x"},
    }
    made = client.made("/v1/rules", rule)["id"]
    token = client.made("/v1/tokens", {"name": "t", "role": "read", "project_id": client.project})["id"]
    client.post(f"/v1/traces/{trace_id}/queue")
    for path in (
        f"traces/{trace_id}/queue",
        f"traces/{trace_id}",
        f"datasets/{dataset}",
        f"rules/{made}",
        f"tokens/{token}",
    ):
        assert client.delete(f"/v1/{path}").status == 200, path


def test_the_writer_never_calls_back_into_the_handlers(service_url: str) -> None:
    """Every change there is, with and without an idempotency key."""
    calls = CallsOfTheWriter()
    threading.setprofile(calls.note)
    try:
        with running_service(service_url, models=MODELS) as service:
            client = Client(service.url, ADMIN, f"project-{new_id()}")
            client.made("/v1/projects", {"id": client.project, "name": "test"})
            for makers in POSTS.values():
                for make in makers:
                    assert send(client, make(client)).status in (200, 201, 202)
                    assert send(client, make(client), **{"Idempotency-Key": new_id()}).status in (
                        200,
                        201,
                        202,
                    )
            delete_everything(client)
            client.close()
    finally:
        threading.setprofile(None)
    # the profile has seen the writer at work
    assert {Path(file).name for file in calls.files} >= {"writer.py", "scores.py", "runs.py", "ingest.py"}
    assert sorted(file for file in calls.files if file.startswith(HANDLERS)) == []
