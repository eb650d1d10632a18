"""OTLP over gRPC, which `opentelemetry-distro` and others use unless they are told otherwise.

The same tokens, projects, limits and answers as over HTTP. A caller is known before anything of its message is read.
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.core.errors import MissingExtra, OptionError, Refusal
from evenhand.server.api.otlp import (
    NO_METRICS,
    UNAVAILABLE,
    explain,
    rpc_status,
    store_batch,
    take_logs,
    take_spans,
)
from evenhand.server.api.traces import named_project
from evenhand.server.http.auth import Access
from evenhand.server.ingest.otlp_replies import PROTOBUF, response_body
from evenhand.server.service import Service
from evenhand.store.ingest import Sender, store_texts
from evenhand.store.projects import not_found
from evenhand.store.texts import Texts

if TYPE_CHECKING:
    import grpc

log = logging.getLogger("evenhand.server")
AT_ONCE = 64
"""Calls under way; more are told to try again."""
STOP_SECONDS = 5.0
METADATA_BYTES = 16 * 1024
_SERVICE = "/opentelemetry.proto.collector.{0}.v1.{1}Service/Export"

Taken = Callable[["GrpcListener", Access, str, bytes], Awaitable[tuple[int, str]]]
"""Stores one message; how much was left out, and why."""


async def _spans(listener: "GrpcListener", access: Access, project_id: str, body: bytes) -> tuple[int, str]:
    store = partial(store_batch, listener.service, _sender(access))
    reasons = await take_spans(listener.service, project_id, PROTOBUF, body, store)
    return len(reasons), explain(reasons)


async def _logs(listener: "GrpcListener", access: Access, project_id: str, body: bytes) -> tuple[int, str]:
    async def store(texts: Texts) -> list[str]:
        return await listener.service.database.write(
            partial(store_texts, sender=_sender(access), texts=texts)
        )

    return await take_logs(project_id, PROTOBUF, body, store)


async def _metrics(listener: "GrpcListener", access: Access, project_id: str, body: bytes) -> tuple[int, str]:
    return 0, NO_METRICS


METHODS: dict[str, Taken] = {
    _SERVICE.format("trace", "Trace"): _spans,
    _SERVICE.format("logs", "Logs"): _logs,
    _SERVICE.format("metrics", "Metrics"): _metrics,
}


def _sender(access: Access) -> Sender:
    return Sender(access.scope, access.may_create_projects)


class GrpcListener:
    """Listens beside the HTTP server, in the same event loop."""

    def __init__(self, service: Service, host: str, port: int) -> None:
        """`MissingExtra` without the package that speaks gRPC."""
        try:
            import grpc
        except ImportError as error:
            raise MissingExtra("grpcio", "grpc", "OTLP over gRPC") from error
        self.service = service
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        import grpc

        limit = self.service.config.limits.otlp_bytes
        self._server = grpc.aio.server(
            options=[
                # Unpacked: what a compressed message becomes is held to it too.
                ("grpc.max_receive_message_length", limit),
                ("grpc.max_metadata_size", METADATA_BYTES),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=AT_ONCE,
        )
        handlers = {
            path: grpc.stream_unary_rpc_method_handler(partial(self._export, path, take))
            for path, take in METHODS.items()
        }
        self._server.add_generic_rpc_handlers((_handler(handlers),))
        try:
            self._server.add_insecure_port(self.address)
        except RuntimeError:
            raise OptionError(f"cannot listen on {self.address} for gRPC") from None
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(STOP_SECONDS)

    async def _export(
        self,
        path: str,
        take: Taken,
        messages: AsyncIterator[bytes],
        context: "grpc.aio.ServicerContext[Any, Any]",
    ) -> bytes:
        started, status = time.perf_counter(), 200
        try:
            return await self._answer(take, messages, context)
        except Exception as error:
            status, code, message = rpc_status(error)
            if status == 500:
                log.exception("unexpected error", extra={"fields": {"path": path}})
            await context.abort(_codes()[UNAVAILABLE if status in (429, 503) else code], message)
            raise  # not reached: abort raises
        finally:
            self.service.telemetry.record("POST", path, status, time.perf_counter() - started)

    async def _answer(
        self, take: Taken, messages: AsyncIterator[bytes], context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> bytes:
        given = dict(context.invocation_metadata() or ())
        access = await self.service.authenticator.access(
            _bytes(given.get("authorization")), _address(context.peer())
        )
        if not access.allows("write"):
            raise Refusal("FORBIDDEN", "This needs the role 'write'.", {"role": access.role})
        project_id = named_project(_bytes(given.get("x-project-id")), access.scope)
        if access.scope not in (None, project_id):
            raise not_found("project", project_id)
        body = b""
        async for message in messages:
            body = message
            break
        self.service.budget.reserve(len(body))
        try:
            rejected, why = await take(self, access, project_id, body)
        finally:
            self.service.budget.release(len(body))
        return response_body(PROTOBUF, rejected, why)


def _handler(handlers: "dict[str, grpc.RpcMethodHandler[Any, Any]]") -> "grpc.GenericRpcHandler[Any, Any]":
    import grpc

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types of its own
        def service(self, details: Any) -> Any:
            return handlers.get(details.method)

    return Handler()


def _codes() -> "dict[int, grpc.StatusCode]":
    import grpc

    return {code.value[0]: code for code in grpc.StatusCode}


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode("utf-8", "replace") if isinstance(value, str) else value


def _address(peer: str) -> str:
    """The caller's address of `ipv4:127.0.0.1:1234`."""
    return peer.partition(":")[2].rpartition(":")[0]
