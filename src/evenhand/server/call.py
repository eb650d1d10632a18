"""One request on its way through a handler."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from evenhand.core.errors import Refusal
from evenhand.server.answers import Answer, encode_json
from evenhand.server.auth import Access
from evenhand.server.bodies import Receive
from evenhand.server.routes import Route
from evenhand.server.service import Service
from evenhand.store.connection import Connection
from evenhand.store.idempotency import Recorded, Repeatable, once, recorded
from evenhand.store.projects import require_project
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
        """Who calls. Routes without a role have nobody to ask for."""
        assert self._access is not None
        return self._access

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

    def open_project(self, connection: Connection, project_id: str) -> None:
        """Inside a write: the project is there (made now for an administrator) and the caller's to write to."""
        require_project(connection, project_id, scope=self.scope, may_create=self.access.may_create_projects)

    async def read(self, work: Work[T]) -> T:
        return await self.service.database.read(work)

    async def search(self, work: Work[T]) -> T:
        """`read` for what may take long."""
        return await self.service.database.search(work)

    async def write(self, work: Work[Any], status: int | None = None) -> Answer:
        """The answer with what `work` returns, once it is on disk; a repeated request gets its first answer."""
        code = self.route.status if status is None else status
        if self.idempotency_key is None:
            return Answer(code, encode_json(await self.service.database.write(work)))
        return await self._once(lambda connection: (code, encode_json(work(connection))))

    async def told(self, value: Any) -> Answer:
        """An answer to a POST that stores nothing: a key is taken and its answer kept all the same."""
        if self.idempotency_key is None:
            return Answer(200, encode_json(value))
        return await self.write(lambda _: value, 200)

    async def write_item(self, batched: BatchedWork[I, Any], item: I, *, large: bool = False) -> Answer:
        """The same for work that is done for many requests at once."""
        if self.idempotency_key is None:
            result = await self.service.database.write_item(batched, item, large=large)
            return Answer(self.route.status, encode_json(result))
        return await self._once(partial(_single, batched, item, self.route.status))

    async def _once(self, work: Callable[[Connection], tuple[int, bytes]]) -> Answer:
        request = self._repeatable()
        # The key tells a repetition: where the outcome of a commit is unknown, the writer may ask again by itself.
        return _told_again(
            await self.service.database.write(
                lambda connection: once(connection, request, work), repeatable=True
            )
        )

    async def first_answer(self) -> Answer | None:
        """What the same request was answered before: what it was about may be gone since."""
        if self.idempotency_key is None or not self.fingerprint:
            return None
        request = self._repeatable()
        first = await self.read(lambda connection: recorded(connection, request))
        return None if first is None else _told_again(first)

    def _repeatable(self) -> Repeatable:
        assert self.idempotency_key is not None
        return Repeatable(scope=self.access.token_id, key=self.idempotency_key, fingerprint=self.fingerprint)

    def take_fingerprint(self, body: bytes) -> None:
        """What tells a repeated request from another one with the same key."""
        if self.idempotency_key is not None:
            start = f"{self.route.method} ".encode() + self.path + b"\n"
            self.fingerprint = hashlib.sha256(start + body).hexdigest()


def _told_again(answer: Recorded) -> Answer:
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
