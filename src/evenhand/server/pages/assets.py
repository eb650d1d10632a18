"""The files that pages load: one stylesheet, the ES modules and the icon.

All of them are served under a path with a digest of their contents, so that a browser may keep them for ever and a new
release is seen at once.
"""

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files

from evenhand.core.errors import Refusal
from evenhand.reports.rendering import stylesheet
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.routes import Route

PACKAGE = "evenhand.server.pages"
KEPT = (b"cache-control", b"public, max-age=31536000, immutable")
VARIES = (b"vary", b"accept-encoding")
TYPES = {"css": b"text/css; charset=utf-8", "js": b"text/javascript; charset=utf-8", "svg": b"image/svg+xml"}
ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 20 20' fill='none' stroke='#63676e' stroke-width='1.6'>"
    "<path d='M10 1.5v17M2.5 10h15M2.5 7v6M17.5 7v6'/><circle cx='10' cy='10' r='3.4' fill='#0072b2' stroke='none'/></svg>"
)


@cache
def assets() -> dict[str, bytes]:
    """Every file by its name. The stylesheet is that of report files with the parts that only pages have."""
    folder = files(PACKAGE).joinpath("static")
    own = {
        entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.endswith((".js", ".css"))
    }
    pages = own.pop("pages.css")
    return {**own, "evenhand.css": stylesheet().encode() + b"\n" + pages, "icon.svg": ICON.encode()}


@cache
def digest() -> str:
    """Changes whenever a file does."""
    found = sha256()
    for name, content in sorted(assets().items()):
        found.update(name.encode() + b"\n" + content)
    return found.hexdigest()[:16]


def asset_path(name: str) -> str:
    """Where a page finds the file."""
    return f"/static/{digest()}/{name}"


async def asset(call: Call) -> Answer:
    content = assets().get(call.params["name"])
    # Under an old digest there are other contents, which must not be kept under it.
    if content is None or call.params["digest"] != digest():
        raise Refusal("NOT_FOUND", "There is no such file.")
    kind = TYPES[call.params["name"].rpartition(".")[2]]
    if b"gzip" in call.headers.get(b"accept-encoding", b""):
        packed = [KEPT, VARIES, (b"content-encoding", b"gzip")]
        return Answer(200, _packed(call.params["name"]), content_type=kind, headers=packed)
    return Answer(200, content, content_type=kind, headers=[KEPT, VARIES])


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(assets()[name], 9, mtime=0)


ROUTES = (
    Route(
        method="GET",
        path="/static/{digest}/{name}",
        handler=asset,
        audience="public",
        summary="A file that pages load",
        tag="Pages",
    ),
)
