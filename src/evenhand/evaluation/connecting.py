"""A client of the scoring service, whether it runs already or is a database file that a server has to open."""

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenhand import settings
from evenhand.client.service import ServiceClient
from evenhand.core.errors import MissingExtra, ServiceError
from evenhand.core.extras import EXTRAS, Extra
from evenhand.core.secret import Secret

SERVER = next(extra for extra in EXTRAS if extra.name == "server")


def check_target(target: str, *, server: Extra = SERVER) -> None:
    """Raise what can be known before anything is sent: a bad address, or a database file without the server to open it."""
    if _is_address(target):
        ServiceClient(target).close()
    elif missing := server.missing:
        raise MissingExtra(missing[0], server.name, f"recording into the file {target}")


@contextmanager
def connected(target: str, token: str | None) -> Iterator[ServiceClient]:
    """A client of the service at `target`; a file is opened by a server of our own for as long as it takes."""
    key = Secret(token) if token else settings.load().token
    check_target(target)
    if _is_address(target):
        with ServiceClient(target, key) as client:
            yield client
    else:
        with _serving(target) as (url, admin), ServiceClient(url, admin) as client:
            yield client


def _is_address(target: str) -> bool:
    return "://" in target and not target.startswith("sqlite:")


@contextmanager
def _serving(target: str) -> Iterator[tuple[str, Secret]]:
    token = "evh_" + secrets.token_urlsafe(32)
    database = target if target.startswith("sqlite:") else f"sqlite:///{Path(target).resolve()}"
    process = subprocess.Popen(  # noqa: S603  our own command
        [
            sys.executable,
            "-m",
            "evenhand",
            "serve",
            "--port",
            "0",
            "--database",
            database,
            "--log-level",
            "error",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=settings.child_environment(EVENHAND_ADMIN_TOKEN=token),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = next((word for word in line.split() if word.startswith("http://")), None)
        if address is None:
            process.kill()
            _, errors = process.communicate()
            raise ServiceError(f"{database} cannot be opened: {errors.strip().splitlines()[-1:] or line}")
        yield address, Secret(token)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
