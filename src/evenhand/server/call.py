"""One request on its way through a handler."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from evenhand.core.errors import Refusal
from evenhand.server.http.answers import Answer, encode_json
from evenhand.server.http.auth import Access
from evenhand.server.http.bodies import Receive
from evenhand.server.http.routes import Route
from evenhand.server.service import Service
from evenhand.store.connection import Connection
from evenhand.store.idempotency import Recorded, Repeatable, once, recorded
from evenhand.store.projects import Owner
from evenhand.store.writer import BatchedWork, Work

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741  one letter for an item's type


class Call:
    """What a handler is given."""

    __slots__ = (
        "_access",
        "fingerprint",
        "headers",
        "idempotency_key",
        "media_type",
        "params",
        "path",
        "receive",
        "request_id",
        "route",
        "service",
    )  # fmt: skip

    def __init__(
        self,
        service: Service,
        route: Route,
        params: dict[str, str],
        headers: dict[bytes, bytes],
        access: Access | None,
        receive: Receive,
        path: bytes,
    ) -> None:
        self.service = service
        self.route = route
        self.params = params
        self.headers = headers
        self.receive = receive
        self.path = path
        self.media_type = ""
        self.idempotency_key = _idempotency_key(headers) if route.method == "POST" else None
        self.fingerprint = ""
        self._access = access

    @property
    def access(self) -> Access:
        """Who calls; not for public routes."""
        assert self._access is not None
        return self._access

    @property
    def is_public(self) -> bool:
        """Whether anybody may call this, without a token or a session."""
        return self._access is None

    @property
    def scope(self) -> str | None:
        """The only project that the caller sees; None for all."""
        return self.access.scope

    def listed_project(self, project_id: str | None) -> str:
        """The project that a list is asked for: required, and the caller's own."""
        if not project_id:
            raise Refusal("PROJECT_REQUIRED", "Say which project: ?project_id=…", {"field": "project_id"})
        if self.scope is not None and self.scope != project_id:
            raise Refusal("NOT_FOUND", f"There is no project '{project_id[:200]}'.")
        return project_id

    def owner(self, project_id: str) -> Owner:
        """The caller as one who puts something into a project; `in_project` checks whether that is allowed."""
        return Owner(project_id, self.scope, self.access.may_create_projects)

    async def read(self, work: Work[T]) -> T:
        return await self.service.database.read(work)

    async def search(self, work: Work[T]) -> T:
        """`read` for queries that may take long."""
        return await self.service.database.search(work)

    async def write(self, work: Work[Any], status: int | None = None) -> Answer:
        """Do `work` and answer with what it returns, once it is on disk; a repeated request gets its first answer.

        `work` runs on the writer's thread: handlers give it a function of the store with its arguments bound.
        """
        code = self.route.status if status is None else status
        if self.idempotency_key is None:
            return Answer(code, encode_json(await self.service.database.write(work)))
        return await self._once(lambda connection: (code, encode_json(work(connection))))

    async def respond_idempotently(self, value: Any) -> Answer:
        """Answer a POST that stores nothing. With an idempotency key the answer is kept for repetitions."""
        if self.idempotency_key is None:
            return Answer(200, encode_json(value))
        return await self.write(lambda _: value, 200)

    async def write_item(self, batched: BatchedWork[I, Any], item: I) -> Answer:
        """Do `batched` for `item`, together with items of other requests, and answer with its result."""
        if self.idempotency_key is None:
            result = await self.service.database.write_item(batched, item)
            return Answer(self.route.status, encode_json(result))
        return await self._once(partial(_single, batched, item, self.route.status))

    async def _once(self, work: Callable[[Connection], tuple[int, bytes]]) -> Answer:
        request = self._repeatable()
        # The key identifies a repetition, so the writer may retry when the outcome of a commit is unknown.
        return _replay(
            await self.service.database.write(
                lambda connection: once(connection, request, work), repeatable=True
            )
        )

    async def first_answer(self) -> Answer | None:
        """The first answer to a repeated request, even if what it was about has been deleted since."""
        if self.idempotency_key is None or not self.fingerprint:
            return None
        request = self._repeatable()
        first = await self.read(lambda connection: recorded(connection, request))
        return None if first is None else _replay(first)

    def _repeatable(self) -> Repeatable:
        assert self.idempotency_key is not None
        return Repeatable(scope=self.access.token_id, key=self.idempotency_key, fingerprint=self.fingerprint)

    def take_fingerprint(self, body: bytes) -> None:
        """Note what distinguishes a repeated request from another one with the same key."""
        if self.idempotency_key is not None:
            start = f"{self.route.method} ".encode() + self.path + b"\n"
            self.fingerprint = hashlib.sha256(start + body).hexdigest()


def _replay(answer: Recorded) -> Answer:
    headers = [(b"idempotent-replayed", b"true")] if answer.replayed else None
    return Answer(answer.status, answer.body, headers=headers)


def _single(
    batched: Callable[[Connection, Sequence[Any]], Sequence[Any]],
    item: Any,
    status: int,
    connection: Connection,
) -> tuple[int, bytes]:
    result = batched(connection, [item])[0]
    if isinstance(result, Exception):
        raise result
    return status, encode_json(result)


def _idempotency_key(headers: dict[bytes, bytes]) -> str | None:
    given = headers.get(b"idempotency-key")
    if given is None:
        return None
    key = given.decode("latin-1")
    if not 1 <= len(key) <= 255 or not (key.isascii() and key.isprintable()):
        raise Refusal("INVALID_REQUEST", "An Idempotency-Key has 1 to 255 printable ASCII characters.")
    return key
