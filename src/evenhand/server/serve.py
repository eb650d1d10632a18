"""Running the server: open the database, make the first token, listen, stop gracefully."""

import gc
import logging
import resource
import signal
import socket
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Literal, cast

import uvicorn

import evenhand
from evenhand.core.errors import OptionError
from evenhand.server.app import Application, make_application
from evenhand.server.config import ServerConfig
from evenhand.server.demo import PROJECT, fill
from evenhand.server.http.auth import LOGIN_LINK, Access
from evenhand.server.http.protocol import LimitedProtocol
from evenhand.server.http.proxy import Outside
from evenhand.store.connection import Connection
from evenhand.store.database import Database, open_database
from evenhand.store.projects import DEFAULT, require_project
from evenhand.store.tokens import any_administrator, any_token, create_token

if TYPE_CHECKING:
    from evenhand.server.otlp_grpc import GrpcListener

log = logging.getLogger("evenhand.server")
STOP_SECONDS = 10
MOST_FILES = 65_536
"""The limit on open files is raised to this, where the system lets it be."""
OWN_FILES = 200
"""Files kept from clients: what the database, uploads and calls to models need."""


def first_token(database: Database) -> str | None:
    """Make the administrator's token on the first start; None when there is one already."""

    def work(connection: Connection) -> str | None:
        require_project(connection, DEFAULT, scope=None, may_create=True)
        if any_administrator(connection):
            return None
        return create_token(connection, name="first start", project_id=None, role="admin").token

    return database.write_now(work)


LEAST_TOKEN, MOST_TOKEN = 16, 4_096
"""Characters of an administrator's token from the environment."""


def check_admin_token(config: ServerConfig) -> None:
    """`OptionError` for one that no request could carry, or that others could guess."""
    length = 0 if config.admin_token is None else len(config.admin_token.reveal())
    if length > MOST_TOKEN or (length and length < LEAST_TOKEN and not config.is_loopback):
        raise OptionError(
            f"EVENHAND_ADMIN_TOKEN has {length:,} characters: at most {MOST_TOKEN:,} are taken, and at least "
            f"{LEAST_TOKEN} where others can reach the server"
        )


def refuse_open_bind(config: ServerConfig, database: Database) -> None:
    """A server that others can reach must have tokens before it listens."""
    if config.is_loopback or config.admin_token is not None:
        return
    if not database.read_now(any_token):
        raise OptionError(
            f"refusing to listen on {config.host} without tokens: start once on 127.0.0.1, "
            "run 'evenhand token create', or set EVENHAND_ADMIN_TOKEN"
        )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, so that the address is known before the first request."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise OptionError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listener


def raise_file_limit() -> None:
    """Many systems start programs with 1,024 open files, which as many clients would use up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Server(uvicorn.Server):
    """uvicorn's server that ends endless streams when it stops, instead of waiting for them, and has gRPC beside it."""

    grpc: "GrpcListener | None" = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.grpc is not None and not self.should_exit:
            await self.grpc.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        served = self.config.app
        application = cast(Application, served.application if isinstance(served, Outside) else served)
        application.service.begin_stop()
        application.end_streams()
        if self.grpc is not None:
            await self.grpc.stop()
        await super().shutdown(sockets)


def wanted_grpc_port(asked: int | Literal["off"] | None) -> int | None:
    """The port that was asked for; unless asked, the usual one where gRPC is installed, else none."""
    if asked is None:
        return 4317 if find_spec("grpc") is not None else None
    return None if asked == "off" else asked


def grpc_listener(application: Application) -> "GrpcListener | None":
    """What listens for gRPC, its port being free; `OptionError` or `MissingExtra` where it cannot and must."""
    config = application.service.config
    if config.grpc_port is None:
        return None
    from evenhand.server.otlp_grpc import GrpcListener

    listener = GrpcListener(application.service, config.host, config.grpc_port)
    try:
        listen(config.host, config.grpc_port).close()
    except OptionError as error:
        if config.grpc_required:
            raise
        log.warning("no OTLP over gRPC", extra={"fields": {"reason": str(error)}})
        return None
    return listener


def uvicorn_server(application: Application) -> Server:
    """uvicorn over the application; access lines are ours."""
    config = application.service.config
    limits = config.limits
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    protocol = partial(LimitedProtocol, max_connections=max(open_files - OWN_FILES, OWN_FILES))
    return Server(
        uvicorn.Config(
            Outside(application, config) if config.is_wrapped else application,
            loop="uvloop",
            http=protocol,  # type: ignore[arg-type]  # it is only called
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            # `Outside` believes listed proxies; nothing else does.
            proxy_headers=False,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
    )


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def serve(config: ServerConfig, announce: Callable[[str], None]) -> None:
    """Serve until a signal stops it. What waits is finished first."""
    # uvicorn sends itself the signal again once it has stopped; the database must still be closed then.
    signal.signal(signal.SIGTERM, _leave)
    raise_file_limit()
    check_admin_token(config)
    database = open_database(
        config.database,
        capacity=config.limits.waiting_writes,
        time_limit=config.limits.query_seconds,
    )
    try:
        refuse_open_bind(config, database)
        # Before the token is made: one that a bad configuration kept from being shown could never be shown again.
        application = make_application(config, database)
        grpc = grpc_listener(application)
        listener = listen(config.host, config.port)
        with listener:
            port = listener.getsockname()[1]
            host = f"[{config.host}]" if ":" in config.host else config.host
            address = f"http://{host}:{port}"
            token = None if config.admin_token is not None else first_token(database)
            if config.demo and database.write_now(fill):
                announce("Demonstration data: project 'demo'")
            everything = Access(token_id=LOGIN_LINK, role="admin", scope=None)
            opens = f"/projects/{PROJECT}/dashboard" if config.demo else "/"
            application.service.sessions.load()
            code = application.service.sessions.new_code(everything, opens)
            announce(f"Evenhand listens on {address} (database: {database.dialect.place})")
            if token is not None:
                announce(f"Admin token, shown once: {token}")
            announce(f"Log in with a browser (works once): {address}/login?code={code}")
            announce(f"Reference: {address}/docs")
            if grpc is not None:
                announce(f"OTLP over gRPC: http://{grpc.address}")
            fields = {"address": address, "database": database.dialect.place, "version": evenhand.__version__}
            log.info("started", extra={"fields": {**fields, "grpc": None if grpc is None else grpc.address}})
            # What there is now stays: the collector need not look at it again and again.
            gc.freeze()
            gc.set_threshold(10_000, 20, 20)
            server = uvicorn_server(application)
            server.grpc = grpc
            server.run(sockets=[listener])
            log.info("stopped", extra={"fields": {"address": address}})
    finally:
        database.close()


def serve_database(
    config: ServerConfig, database: Database, access: Access, opens: str, announce: Callable[[str], None]
) -> None:
    """Serve an open database to whoever opens the printed link, which grants `access`; close it at the end."""
    signal.signal(signal.SIGTERM, _leave)
    try:
        application = make_application(config, database)
        with listen(config.host, config.port) as listener:
            application.service.sessions.load()
            code = application.service.sessions.new_code(access, opens)
            address = f"http://{config.host}:{listener.getsockname()[1]}"
            announce(f"Open in a browser (works once): {address}/login?code={code}")
            uvicorn_server(application).run(sockets=[listener])
    finally:
        database.close()
