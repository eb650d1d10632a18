"""Addresses of objects on a scoring service, as people copy them: `URL/datasets/ID`, `URL/experiments/ID`."""

from urllib.parse import unquote, urlsplit


def split_address(text: str, kind: str) -> tuple[str, str] | None:
    """The service's address and the object's id; None when `text` is not the address of one of this kind.

    The address of the page works too: `URL/projects/NAME/datasets/ID`.
    """
    parts = urlsplit(text)
    before, _, identifier = parts.path.rstrip("/").rpartition("/")
    if not identifier or not before.endswith(f"/{kind}"):
        return None
    prefix = before.removesuffix(f"/{kind}").removesuffix("/v1")
    if "/projects/" in prefix:
        prefix = prefix[: prefix.index("/projects/")]
    return f"{parts.scheme}://{parts.netloc}{prefix}", unquote(identifier)
