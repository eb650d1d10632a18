"""A wire between the service and PostgreSQL that breaks at the worst moment."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

COMMITTED = b"C\x00\x00\x00\x0bCOMMIT\x00"
"""What PostgreSQL says when a transaction is on disk."""
TURN = b"pg_advisory_xact_lock"
"""What only the writer asks for: its turn."""


class BrokenWire:
    """Passes bytes on both ways. While armed, it breaks instead of passing on that the writer's transaction was
    committed. Readers end their transactions too, whenever a server looks for jobs: those do not count.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._armed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.broken = 0

    def arm(self) -> None:
        """Break once."""
        self._armed.set()

    def start(self) -> None:
        self._spawn(self._accept)

    def close(self) -> None:
        for one in (self._listener, *self._sockets):
            _end(one)
        for thread in self._threads:
            thread.join(timeout=30)

    def _spawn(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]  # any callable
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                writes = threading.Event()
                self._spawn(self._pass_on, near, far, writes)
                self._spawn(self._pass_on, far, near, writes)

    def _pass_on(self, source: socket.socket, target: socket.socket, writes: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if TURN in data:
                    writes.set()
                if COMMITTED in data and writes.is_set() and self._armed.is_set():
                    self._armed.clear()
                    self.broken += 1
                    break
                target.sendall(data)
        _end(source)
        _end(target)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def broken_wire(port: int) -> Iterator[BrokenWire]:
    wire = BrokenWire(port)
    wire.start()
    try:
        yield wire
    finally:
        wire.close()
