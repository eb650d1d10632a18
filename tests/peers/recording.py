"""Records what client packages send: `python -m tests.peers.recording [PEER ...]` writes their files of requests.

The clients run in environments of their own (`make test-peers` makes them); what they sent is then part of the fast
tests, which need no package but ours.
"""

import base64
import gzip
import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
TOKEN = "evh_recorded_token"


class Peer(NamedTuple):
    """A package that records traces, and the client that uses it."""

    package: str
    client: str
    requirements: tuple[str, ...]
    """What is installed for it."""


EXPORTER = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
PEERS = {
    # 2.4b0 was written for an older release of the package below it, and names httpx nowhere.
    "openai-v2": Peer(
        "opentelemetry-instrumentation-openai-v2",
        "openai_v2.py",
        (
            "openai",
            "httpx",
            "opentelemetry-instrumentation-openai-v2",
            "opentelemetry-util-genai==0.4b0",
            *EXPORTER,
        ),
    ),
    "openinference": Peer(
        "openinference-instrumentation-openai",
        "openinference_openai.py",
        ("openai", "openinference-instrumentation-openai", *EXPORTER),
    ),
    "traceloop": Peer("traceloop-sdk", "traceloop_sdk.py", ("openai", "httpx", "traceloop-sdk")),
    "pydantic-ai": Peer("pydantic-ai-slim", "pydantic_ai_agent.py", ("pydantic-ai-slim[openai]", *EXPORTER)),
    "langfuse": Peer("langfuse", "langfuse_sdk.py", ("openai", "langfuse")),
    "mlflow": Peer(
        "mlflow-tracing", "mlflow_tracing.py", ("openai", "mlflow-tracing", "sqlparse", *EXPORTER)
    ),
    "vercel": Peer(
        "ai",
        "vercel_ai.mjs",
        (
            "ai",
            "zod",
            "@ai-sdk/openai-compatible",
            "@opentelemetry/api",
            "@opentelemetry/sdk-node",
            "@opentelemetry/exporter-trace-otlp-proto",
        ),
    ),
}
KEPT_HEADERS = ("content-type", "authorization", "x-project-id")


def answer(call: MockCall) -> str | MockAnswer:
    """The model of all clients: it asks for a tool where it is offered one, then answers."""
    messages = call.body["messages"]
    if call.body.get("tools") and all(message["role"] != "tool" for message in messages):
        return MockAnswer(text="", tool_calls=({"name": "population", "arguments": {"city": "Paris"}},))
    return "Paris."


def environment(address: str, token: str, project: str, model_url: str) -> dict[str, str]:
    """What a client finds in its environment."""
    return {
        **os.environ,
        "MODEL_URL": model_url,
        "TOKEN": token,
        "OTEL_EXPORTER_OTLP_ENDPOINT": address,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{token},x-project-id={project}",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
        "OTEL_SERVICE_NAME": "shop",
        "OTEL_RESOURCE_ATTRIBUTES": "host.name=recorded",
        "TRACELOOP_TELEMETRY": "false",
        "DO_NOT_TRACK": "true",
    }


def run_client(peer: str, program: str, address: str, token: str, project: str) -> None:
    """Run a peer's client against the server at `address`; an error with its output when it fails."""
    with MockModel(answer, api_key="right") as model:
        client = HERE / "clients" / PEERS[peer].client
        folder, command = HERE, [program, str(client)]
        if client.suffix == ".mjs":
            # Packages are found from where the program lies: beside its node_modules.
            folder = Path(program)
            copy = folder / client.name
            copy.write_text(client.read_text(encoding="utf-8"), encoding="utf-8")
            command = ["node", str(copy)]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(address, token, project, model.url),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, f"{peer}: {done.stdout}\n{done.stderr}"


def version(peer: str, program: str) -> str:
    """The version of the package that the client uses."""
    package = PEERS[peer].package
    if PEERS[peer].client.endswith(".mjs"):
        about = Path(program) / "node_modules" / package / "package.json"
        return str(json.loads(about.read_text(encoding="utf-8"))["version"])
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([program, "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def install(peer: str) -> str:
    """Install what a peer needs into an environment of its own beside the repository's; the program to run it with."""
    folder = HERE.parents[1] / f".venv-peers-{peer}"
    if PEERS[peer].client.endswith(".mjs"):
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n', encoding="utf-8")
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent", *PEERS[peer].requirements]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return str(folder)
    program = folder / "bin" / "python"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    command = [str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *PEERS[peer].requirements], check=True, capture_output=True)
    return str(program)


def without_places(body: bytes) -> bytes:
    """The spans of a request without what only says where they were recorded."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest.FromString(body)
    for group in request.resource_spans:
        kept = [pair for pair in group.resource.attributes if not pair.key.startswith(("process.", "host."))]
        del group.resource.attributes[:]
        group.resource.attributes.extend(kept)
        for span in (span for scoped in group.scope_spans for span in scoped.spans):
            for pair in (pair for event in span.events for pair in event.attributes):
                if pair.key == "exception.stacktrace":
                    pair.value.string_value = "Traceback (most recent call last): ..."
    return bytes(request.SerializeToString())


class _Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = b"".join(self._chunks())
        match self.headers.get("content-encoding"):
            case "gzip":
                body = gzip.decompress(body)
            case "deflate":
                body = zlib.decompress(body)
        headers = {name: self.headers[name] for name in KEPT_HEADERS if name in self.headers}
        if "traces" in self.path:
            body = without_places(body)
        self.requests.append(
            {"path": self.path, "headers": headers, "body": base64.b64encode(body).decode("ascii")}
        )
        self.send_response(200)
        self.send_header("content-type", headers.get("content-type", "application/json"))
        self.send_header("content-length", "0")
        self.end_headers()

    def _chunks(self) -> Iterator[bytes]:
        if self.headers.get("transfer-encoding") != "chunked":
            yield self.rfile.read(int(self.headers.get("content-length", "0")))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def do_GET(self) -> None:
        self.send_response(404)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


def record(peer: str, program: str) -> Path:
    """Run the client against a server that only writes down; the file of its requests."""
    requests: list[dict[str, Any]] = []
    handler = type("Handler", (_Recorder,), {"requests": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run_client(peer, program, f"http://127.0.0.1:{server.server_port}", TOKEN, "recorded")
        server.shutdown()
    RECORDED.mkdir(exist_ok=True)
    target = RECORDED / f"{peer}.json"
    found = {"package": PEERS[peer].package, "version": version(peer, program), "requests": requests}
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return target


if __name__ == "__main__":
    for name in sys.argv[1:] or PEERS:
        print(record(name, install(name)))
