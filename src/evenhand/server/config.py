"""Everything that decides how one server behaves."""

from pathlib import Path

from msgspec import Struct

from evenhand.core.secret import Secret
from evenhand.models.reasoning import THINK_TAGS

MIB = 1024 * 1024
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class RequestLimits(Struct, frozen=True, kw_only=True):
    """Limits on what one request, and all of them together, may use."""

    body_bytes: int = 16 * MIB
    """The largest body, unpacked."""
    otlp_bytes: int = 64 * MIB
    """The largest OTLP body, unpacked."""
    import_bytes: int = 4096 * MIB
    """The largest dataset import, unpacked; it is streamed."""
    import_line_bytes: int = 16 * MIB
    """The longest line of an import; a longer one is skipped."""
    import_lines: int = 10_000_000
    """The lines of one import; a longer one is refused."""
    buffered_bytes: int = 512 * MIB
    """All bodies in memory together."""
    requests: int = 2_000
    """Requests under way at once."""
    waiting_writes: int = 10_000
    """Writes that wait for the writer."""
    idle_seconds: int = 30
    """How long the server waits for a client: for a request, for its whole head, for the next piece of its body, and
    for the client to read something of an answer."""
    query_seconds: float = 5.0
    """How long a query may take."""
    scoring_seconds: float = 10.0
    """How long one request may have scores computed; what is left then becomes jobs."""
    wrong_tokens_per_minute: int = 60
    """Wrong tokens from one address before the answer is 429."""
    share_views_per_minute: int = 300
    """Views of one share link before the answer is 429."""


class ServerConfig(Struct, frozen=True, kw_only=True):
    """One server's configuration."""

    database: str
    """`sqlite:///PATH`, a path that ends in `.db`, or `postgresql://…`."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = 8321
    """The port to listen on; 0 takes a free one."""
    grpc_port: int | None = None
    """The port for OTLP over gRPC; None listens on none."""
    grpc_required: bool = False
    """Whether the server must not start without it: the port was asked for, not taken because the extra is there."""
    access_log: bool = False
    """Whether every request is a line in the log."""
    admin_token: Secret | None = None
    """An administrator's token given by the environment instead of made on the first start."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that the `Host` header may carry beside those of loopback; empty means no others on a loopback address, else
    any."""
    root_path: str = ""
    """The path under which a reverse proxy shows the server, such as `/evenhand`."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose `X-Forwarded-*` headers are believed."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of other sites whose pages may call the API, with a token and without cookies."""
    demo: bool = False
    """Fill an empty server with demonstration data."""
    models_file: Path | None = None
    """A TOML file with the judge models and the listed scorers."""
    models: str = ""
    """The judge models as TOML, where there is no file."""
    scorers: tuple[str, ...] = ()
    """Scorers that run only where they are listed: `code_sandbox`, and those of installed packages."""
    think_tags: tuple[str, ...] = THINK_TAGS
    """Tags of thinking in outputs, which is not scored."""
    limits: RequestLimits = RequestLimits()
    """Bounds on what requests may use."""

    @property
    def is_wrapped(self) -> bool:
        """Whether requests are changed before the application sees them."""
        return bool(self.root_path or self.trusted_proxies or self.allowed_origins)

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK
