"""What real packages sent, sent again: nothing that is on the wire is lost, on both databases.

The requests were recorded by tests/peers (`make test-peers` runs the packages themselves).
"""

import base64
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.peers.recording import PEERS, RECORDED
from tests.peers.showing import Shown, look, table
from tests.service_harness import Client

DOCUMENT = Path(__file__).parents[2] / "docs" / "traces.md"


def recorded(peer: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{peer}.json").read_text(encoding="utf-8"))
    return found


def requests_of(peer: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = recorded(peer)["requests"]
    return found


def replay(client: Client, requests: list[dict[str, Any]]) -> list[bytes]:
    """The answers. The project and the token are those of the test."""
    answers = []
    for request in requests:
        headers = {"Content-Type": request["headers"]["content-type"], "X-Project-Id": client.project}
        if request["headers"]["authorization"].startswith("Basic "):
            credentials = base64.b64encode(f"pk-anything:{client.token}".encode()).decode()
            headers["Authorization"] = f"Basic {credentials}"
        reply = client.request("POST", request["path"], base64.b64decode(request["body"]), headers)
        assert reply.status == 200, reply.raw
        answers.append(reply.raw)
    return answers


@pytest.fixture
def shown(client: Client) -> dict[str, Shown]:
    rows = {}
    for peer in PEERS:
        with closing(client.again(project=f"{client.project}-{peer}")) as own:
            replay(own, requests_of(peer))
            rows[peer] = look(own)
    return rows


def test_every_recorded_client_is_shown_as_the_documentation_says(shown: dict[str, Shown]) -> None:
    expected = table(shown, {peer: recorded(peer)["version"] for peer in PEERS})
    assert expected in DOCUMENT.read_text(encoding="utf-8"), f"\n{expected}"


def test_nothing_that_the_wire_carries_is_missing(shown: dict[str, Shown]) -> None:
    for peer, row in shown.items():
        assert row.roots.startswith("input and output"), peer
        assert row.calls == "input and output", peer
        assert row.model == "small-1", peer
        assert row.tokens == "8 and 1", peer
        assert "the key is wrong" in row.error, peer
        # MLflow keeps them with the trace and sends spans only; an agent of pydantic-ai knows no user.
        missing = {"mlflow": "not sent, not sent", "pydantic-ai": "conversation-1, not sent"}
        assert row.session == missing.get(peer, "conversation-1, ada"), peer
    for peer in ("traceloop", "pydantic-ai", "vercel"):
        assert shown[peer].tools == "arguments and result", peer


@pytest.mark.parametrize("order", ["spans first", "logs first", "logs twice"])
def test_texts_of_log_records_join_their_span_in_any_order(client: Client, order: str) -> None:
    requests = [request for request in requests_of("openai-v2") if "metrics" not in request["path"]]
    spans, logs = ([r for r in requests if word in r["path"]] for word in ("traces", "logs"))
    sent = {"spans first": spans + logs, "logs first": logs + spans, "logs twice": logs + spans + logs}
    replay(client, sent[order])
    [row] = client.pages("/v1/traces", project_id=client.project)
    trace = client.get(f"/v1/traces/{row['id']}", project_id=client.project).body
    answered, failed = (span for span in trace["spans"] if span["model"])
    question = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the capital of France?"},
    ]
    assert answered["input"] == failed["input"] == question
    assert answered["output"] == [{"role": "assistant", "content": "Paris.", "finish_reason": "stop"}]
    assert failed["output"] is None
    assert failed["error"] == {
        "message": "Error code: 401 - the key is wrong",
        "type": "AuthenticationError",
        "stack": None,
    }


def test_metrics_are_answered_with_a_success_that_says_they_are_not_kept(client: Client) -> None:
    [metrics] = [request for request in requests_of("openai-v2") if "metrics" in request["path"]]
    [answer] = replay(client, [metrics])
    assert b"metrics are not kept" in answer
    reply = client.post_raw("/v1/metrics", b'{"resourceMetrics": []}')
    assert (reply.status, reply.body["partialSuccess"]["rejectedDataPoints"]) == (200, "0")
