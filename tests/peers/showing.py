"""What the service shows of each client's traces: the rows of the table in docs/traces.md."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.peers.recording import PEERS
from tests.service_harness import Client

QUESTION, ANSWER = "What is the capital of France?", "Paris."


class Shown(NamedTuple):
    """What there is to see of one client's traces."""

    roots: str
    """Question and answer at the root: its own, or those of its first model call."""
    calls: str
    """Question and answer at a model call that succeeded."""
    model: str
    """The model of calls that succeeded and of the one that failed."""
    tokens: str
    """Input and output tokens of the first call, and whether the trace counts each call once."""
    error: str
    """What the failed call says."""
    tools: str
    """Arguments and result of a tool."""
    session: str
    """Session and user."""


NOT_SENT = "not sent"
"""What the package does not put on the wire."""
REMARKS = {
    "openai-v2": " (texts in `/v1/logs`)",
    "traceloop": " (OpenLLMetry)",
    "langfuse": " (its own path and keys)",
    "mlflow": " (exporting over OTLP)",
    "vercel": " (Vercel AI SDK, Node)",
}


def is_call(span: dict[str, Any]) -> bool:
    return bool(span["model"]) and not span["is_total"]


def texts(span: dict[str, Any]) -> str:
    found = [name for name, part in (("input", QUESTION), ("output", ANSWER)) if part in str(span[name])]
    return " and ".join(found) or "nothing"


def look(client: Client) -> Shown:
    """Read all traces of a client's project."""
    traces = [
        client.get(f"/v1/traces/{row['id']}", project_id=client.project).body
        for row in client.pages("/v1/traces", project_id=client.project)
    ]
    assert traces, "nothing arrived"
    spans = [span for trace in traces for span in trace["spans"]]
    answered = [span for span in spans if is_call(span) and span["error"] is None]
    failed = [span for span in spans if is_call(span) and span["error"] is not None]
    assert answered, [span["name"] for span in spans]
    assert len(failed) == 1, [(span["name"], span["model"], span["error"]) for span in spans]
    good = next(trace for trace in traces if any(span["id"] == answered[0]["id"] for span in trace["spans"]))
    [root] = [span for span in good["spans"] if span["id"] == good["root_span_id"]]
    counted = sum((span["tokens_input"] or 0) + (span["tokens_output"] or 0) for span in answered)
    assert sum(trace["tokens"] for trace in traces) == counted, "tokens are counted twice"
    return Shown(
        roots=texts(root) + (", of its first call" if root["input_from_span_id"] else ""),
        calls=texts(answered[-1]),
        model=_all_of((*answered, failed[0])),
        tokens=f"{answered[-1]['tokens_input']} and {answered[-1]['tokens_output']}",
        error=": ".join(failed[0]["error"][part] for part in ("type", "message") if failed[0]["error"][part]),
        tools=_tools(spans),
        session=", ".join(good[part] or NOT_SENT for part in ("session_id", "user_id")),
    )


def _all_of(calls: Iterable[dict[str, Any]]) -> str:
    return ", ".join(sorted({str(call["model"]) for call in calls}))


def _tools(spans: list[dict[str, Any]]) -> str:
    for span in spans:
        if (
            "population" in str(span["metadata"])
            and str(span["output"]) == "2100000"
            and "Paris" in str(span["input"])
        ):
            return "arguments and result"
    return "none used"


def table(rows: dict[str, Shown], versions: dict[str, str]) -> str:
    """The table as it stands in the documentation."""
    head = (
        "| instrumentation | root shows | call shows | model | tokens | failed call | tool | session, user |"
    )
    lines = [head, "|" + "---|" * 8]
    for peer, shown in rows.items():
        name = f"`{PEERS[peer].package}` {versions[peer]}{REMARKS.get(peer, '')}"
        lines.append(f"| {name} | {' | '.join(cell.replace('|', '/') for cell in shown)} |")
    return "\n".join(lines)
