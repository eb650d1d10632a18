"""The only reader of the environment."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from evenhand.core.errors import OptionError
from evenhand.core.secret import Secret

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
SANDBOXES = ("auto", "docker", "bubblewrap")
LOG_LEVELS = ("debug", "info", "warning", "error")
_ON, _OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that the environment decides, read once."""

    sandbox: str = "auto"
    """`EVENHAND_SANDBOX`: which back end runs model-written code."""
    sandbox_image: str = "python:3.12-slim"
    """`EVENHAND_SANDBOX_IMAGE`: the image with `python3` in which the docker back end runs programs."""
    docker_socket: str = "/var/run/docker.sock"
    """`DOCKER_HOST` when it names a local socket (`unix://...`): where the engine listens."""
    api_key: Secret | None = None
    """`EVENHAND_API_KEY`, else `OPENAI_API_KEY`: the key of the model under test."""
    judge_api_key: Secret | None = None
    """`EVENHAND_JUDGE_API_KEY`, else what the model under test uses."""
    token: Secret | None = None
    """`EVENHAND_TOKEN`: what a client shows to the scoring service."""
    host: str = "127.0.0.1"
    """`EVENHAND_HOST`: the address that the server listens on."""
    port: int = 8321
    """`EVENHAND_PORT`: the port that the server listens on."""
    grpc_port: int | Literal["off"] | None = None
    """`EVENHAND_GRPC_PORT`: the port for OTLP over gRPC, or `off`; 4317 where the extra `grpc` is installed."""
    access_log: bool = False
    """`EVENHAND_ACCESS_LOG`: every request is a line in the log."""
    database: str = ""
    """`EVENHAND_DATABASE`, else `evenhand.db` in the data folder: where the server keeps everything."""
    admin_token: Secret | None = None
    """`EVENHAND_ADMIN_TOKEN`: an administrator's token of the server, instead of one made on the first start."""
    allowed_hosts: tuple[str, ...] = ()
    """`EVENHAND_ALLOWED_HOSTS`: names that the Host header may carry, separated by commas."""
    root_path: str = ""
    """`EVENHAND_ROOT_PATH`: the path under which a reverse proxy shows the server."""
    trusted_proxies: tuple[str, ...] = ()
    """`EVENHAND_TRUSTED_PROXIES`: addresses of proxies whose X-Forwarded headers are believed, separated by commas."""
    allowed_origins: tuple[str, ...] = ()
    """`EVENHAND_ALLOWED_ORIGINS`: origins of other sites whose pages may call the API, separated by commas."""
    demo: bool = False
    """`EVENHAND_DEMO`: fill the server with demonstration data."""
    models_file: Path | None = None
    """`EVENHAND_CONFIG`: a TOML file with the judge models of the server."""
    models: str = ""
    """`EVENHAND_MODELS`: the judge models of the server, as TOML, where there is no file for them."""
    scorers: tuple[str, ...] = ()
    """`EVENHAND_SCORERS`: scorers that the server runs only where they are listed, separated by commas."""
    think_tags: str = ""
    """`EVENHAND_THINK_TAGS`: tags of thinking that the server does not score, as `--think-tags` takes them."""
    log_level: str = "info"
    """`EVENHAND_LOG_LEVEL`: how much the server logs."""
    data_folder: Path
    """`EVENHAND_DATA`, else the user's data folder: databases."""
    providers_file: Path
    """`EVENHAND_PROVIDERS`, else `providers.toml` in the user's configuration folder: model providers of one's own."""
    cache_folder: Path
    """`EVENHAND_CACHE`, else the user's cache folder: model replies."""
    github_step_summary: Path | None = None
    """`GITHUB_STEP_SUMMARY`: the file that GitHub Actions shows as the summary of a step."""


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings that `environ` (the process's own by default) asks for."""
    env = os.environ if environ is None else environ
    sandbox = env.get("EVENHAND_SANDBOX", "auto")
    if sandbox not in SANDBOXES:
        raise OptionError(f"EVENHAND_SANDBOX is '{sandbox}'; it can be {', '.join(SANDBOXES)}")
    api_key = _secret(env, "EVENHAND_API_KEY") or _secret(env, "OPENAI_API_KEY")
    home = Path(env.get("HOME") or "/")
    data_folder = _folder(env, "EVENHAND_DATA", "XDG_DATA_HOME", home / ".local" / "share")
    return Settings(
        host=env.get("EVENHAND_HOST") or "127.0.0.1",
        port=_port(env, "EVENHAND_PORT", "8321"),
        grpc_port=_grpc_port(env),
        access_log=_switch(env, "EVENHAND_ACCESS_LOG"),
        database=env.get("EVENHAND_DATABASE") or f"sqlite:///{data_folder / 'evenhand.db'}",
        admin_token=_secret(env, "EVENHAND_ADMIN_TOKEN"),
        allowed_hosts=_names(env, "EVENHAND_ALLOWED_HOSTS"),
        root_path=env.get("EVENHAND_ROOT_PATH", "").strip(),
        trusted_proxies=_names(env, "EVENHAND_TRUSTED_PROXIES"),
        allowed_origins=_names(env, "EVENHAND_ALLOWED_ORIGINS"),
        scorers=_names(env, "EVENHAND_SCORERS"),
        demo=_switch(env, "EVENHAND_DEMO"),
        think_tags=env.get("EVENHAND_THINK_TAGS", "").strip(),
        models_file=Path(env["EVENHAND_CONFIG"]) if env.get("EVENHAND_CONFIG") else None,
        models=env.get("EVENHAND_MODELS", "").strip(),
        log_level=_log_level(env),
        sandbox=sandbox,
        sandbox_image=env.get("EVENHAND_SANDBOX_IMAGE") or "python:3.12-slim",
        docker_socket=_docker_socket(env),
        api_key=api_key,
        judge_api_key=_secret(env, "EVENHAND_JUDGE_API_KEY") or api_key,
        token=_secret(env, "EVENHAND_TOKEN"),
        data_folder=data_folder,
        providers_file=_providers_file(env, home),
        cache_folder=_folder(env, "EVENHAND_CACHE", "XDG_CACHE_HOME", home / ".cache"),
        github_step_summary=Path(env["GITHUB_STEP_SUMMARY"]) if env.get("GITHUB_STEP_SUMMARY") else None,
    )


def key_named(variable: str, environ: Mapping[str, str] | None = None) -> Secret | None:
    """The key in an environment variable that a configuration file names."""
    return _secret(os.environ if environ is None else environ, variable)


def text_named(variable: str, environ: Mapping[str, str] | None = None) -> str:
    """The text of an environment variable that a configuration file names; empty when it is not set."""
    return (os.environ if environ is None else environ).get(variable, "").strip()


def _providers_file(env: Mapping[str, str], home: Path) -> Path:
    if value := env.get("EVENHAND_PROVIDERS"):
        return Path(value)
    return Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "evenhand" / "providers.toml"


def _docker_socket(env: Mapping[str, str]) -> str:
    host = env.get("DOCKER_HOST", "")
    # An engine on another machine cannot be used: programs would leave this one.
    return host.removeprefix("unix://") if host.startswith("unix://") else "/var/run/docker.sock"


def _secret(env: Mapping[str, str], name: str) -> Secret | None:
    value = env.get(name, "").strip()
    return Secret(value) if value else None


def _port(env: Mapping[str, str], name: str, default: str) -> int:
    text = env.get(name, "").strip() or default
    if not text.isdigit() or int(text) > 65535:
        raise OptionError(f"{name} is '{text}'; it must be a number from 0 to 65535")
    return int(text)


def _grpc_port(env: Mapping[str, str]) -> int | Literal["off"] | None:
    text = env.get("EVENHAND_GRPC_PORT", "").strip().lower()
    return None if not text else "off" if text == "off" else _port(env, "EVENHAND_GRPC_PORT", "")


def _switch(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "").strip().lower()
    if text not in (*_ON, *_OFF):
        raise OptionError(f"{name} is '{text}'; it can be {', '.join((*_ON, *filter(None, _OFF)))}")
    return text in _ON


def _names(env: Mapping[str, str], variable: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in env.get(variable, "").split(",") if name.strip())


def _log_level(env: Mapping[str, str]) -> str:
    level = env.get("EVENHAND_LOG_LEVEL", "").strip().lower() or "info"
    if level not in LOG_LEVELS:
        raise OptionError(f"EVENHAND_LOG_LEVEL is '{level}'; it can be {', '.join(LOG_LEVELS)}")
    return level


def _folder(env: Mapping[str, str], ours: str, theirs: str, fallback: Path) -> Path:
    if value := env.get(ours):
        return Path(value)
    return Path(env.get(theirs) or fallback) / "evenhand"


def expand(text: str, environ: Mapping[str, str] | None = None) -> str:
    """`text` with `${NAME}` and `${NAME:-fallback}` replaced from the environment; `OptionError` names what is unset."""
    env = os.environ if environ is None else environ

    def value(match: re.Match[str]) -> str:
        name, fallback = match.group(1), match.group(2)
        found = env.get(name)
        if found is None and fallback is None:
            raise OptionError(f"the variable {name} is not set in the environment")
        return found if found is not None else fallback or ""

    return _REFERENCE.sub(value, text)


def child_environment(**changes: str) -> dict[str, str]:
    """This process's environment with changes, for a command of our own that it starts."""
    return {**os.environ, **changes}
