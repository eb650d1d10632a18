"""`evenhand serve`: the scoring service."""

from pathlib import Path

import click

from evenhand.cli.think_tags import THINK_TAGS_HELP
from evenhand.core.errors import MissingExtra
from evenhand.settings import LOG_LEVELS, load


@click.command()
@click.option("--host", help="Address to listen on (127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (8321); 0 takes a free one.")
@click.option("--grpc-port", type=click.IntRange(1, 65535), help="Port for OTLP over gRPC (4317 where the extra 'grpc' is installed; EVENHAND_GRPC_PORT=off for none).")  # fmt: skip
@click.option("--access-log", is_flag=True, help="Log every request.")
@click.option("--database", help="sqlite:///PATH or postgresql://… (evenhand.db in the data folder).")
@click.option("--config", "models_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="TOML file with the judge models and listed scorers.")  # fmt: skip
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Also run this scorer: code_sandbox, or one of an installed package.")  # fmt: skip
@click.option("--think-tags", metavar="TAGS", help=THINK_TAGS_HELP + "  [default: think]")
@click.option("--allowed-host", "allowed_hosts", multiple=True, help="A name that the Host header may carry.")
@click.option("--root-path", metavar="PATH", help="Path under which a reverse proxy shows the server, such as /evenhand.")  # fmt: skip
@click.option("--trusted-proxy", "trusted_proxies", multiple=True, metavar="ADDRESS", help="Believe X-Forwarded-Proto, -Host and -For from this address or network.")  # fmt: skip
@click.option("--allow-origin", "allowed_origins", multiple=True, metavar="ORIGIN", help="Let pages of this origin call the API, with a token and without cookies.")  # fmt: skip
@click.option("--demo", is_flag=True, help="Fill the server with demonstration data.")
@click.option("--log-level", type=click.Choice(LOG_LEVELS), help="How much to log (info).")  # fmt: skip
def command(
    host: str | None,
    port: int | None,
    grpc_port: int | None,
    access_log: bool,
    database: str | None,
    models_file: Path | None,
    scorers: tuple[str, ...],
    think_tags: str | None,
    allowed_hosts: tuple[str, ...],
    root_path: str | None,
    trusted_proxies: tuple[str, ...],
    allowed_origins: tuple[str, ...],
    demo: bool,
    log_level: str | None,
) -> None:
    """Serve the scoring API.

    \b
    evenhand serve
    evenhand serve --demo --port 0 --database sqlite:///demo.db
    evenhand serve --database postgresql://user@host/scores --config judges.toml
    evenhand serve --scorer code_sandbox --scorer polite
    evenhand serve --root-path /evenhand --trusted-proxy 127.0.0.1 --allowed-host example.org

    Everything is kept in one SQLite file, or in PostgreSQL. The first start prints an admin token, once.
    """
    try:
        from evenhand.models.reasoning import parse_tags
        from evenhand.server.config import ServerConfig
        from evenhand.server.http.logs import set_up_logging
        from evenhand.server.serve import serve, wanted_grpc_port
    except ImportError as error:
        raise MissingExtra(error.name or "uvicorn", "server", "the server") from error
    settings = load()
    config = ServerConfig(
        host=host or settings.host,
        port=settings.port if port is None else port,
        grpc_port=wanted_grpc_port(settings.grpc_port if grpc_port is None else grpc_port),
        grpc_required=(grpc_port or settings.grpc_port) not in (None, "off"),
        access_log=access_log or settings.access_log,
        database=database or settings.database,
        admin_token=settings.admin_token,
        allowed_hosts=allowed_hosts or settings.allowed_hosts,
        root_path=root_path or settings.root_path,
        trusted_proxies=trusted_proxies or settings.trusted_proxies,
        allowed_origins=allowed_origins or settings.allowed_origins,
        demo=demo or settings.demo,
        models_file=models_file or settings.models_file,
        models=settings.models,
        scorers=scorers or settings.scorers,
        think_tags=parse_tags(think_tags or settings.think_tags or "think"),
    )
    set_up_logging(log_level or settings.log_level)
    serve(config, click.echo)
