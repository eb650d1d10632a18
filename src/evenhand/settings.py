"""The only reader of the environment."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from evenhand.core.errors import OptionError
from evenhand.core.secret import Secret

SANDBOXES = ("auto", "docker", "bubblewrap")


class Settings(Struct, frozen=True, kw_only=True):
    """Everything that the environment decides, read once."""

    sandbox: str = "auto"
    """`EVENHAND_SANDBOX`: which back end runs model-written code."""
    api_key: Secret | None = None
    """`EVENHAND_API_KEY`, else `OPENAI_API_KEY`: the key of the model under test."""
    judge_api_key: Secret | None = None
    """`EVENHAND_JUDGE_API_KEY`, else what the model under test uses."""
    data_folder: Path
    """`EVENHAND_DATA`, else the user's data folder: databases."""
    cache_folder: Path
    """`EVENHAND_CACHE`, else the user's cache folder: model replies."""


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings that `environ` (the process's own by default) asks for."""
    env = os.environ if environ is None else environ
    sandbox = env.get("EVENHAND_SANDBOX", "auto")
    if sandbox not in SANDBOXES:
        raise OptionError(f"EVENHAND_SANDBOX is '{sandbox}'; it can be {', '.join(SANDBOXES)}")
    api_key = _secret(env, "EVENHAND_API_KEY") or _secret(env, "OPENAI_API_KEY")
    home = Path(env.get("HOME") or "/")
    return Settings(
        sandbox=sandbox,
        api_key=api_key,
        judge_api_key=_secret(env, "EVENHAND_JUDGE_API_KEY") or api_key,
        data_folder=_folder(env, "EVENHAND_DATA", "XDG_DATA_HOME", home / ".local" / "share"),
        cache_folder=_folder(env, "EVENHAND_CACHE", "XDG_CACHE_HOME", home / ".cache"),
    )


def _secret(env: Mapping[str, str], name: str) -> Secret | None:
    value = env.get(name, "").strip()
    return Secret(value) if value else None


def _folder(env: Mapping[str, str], ours: str, theirs: str, fallback: Path) -> Path:
    if value := env.get(ours):
        return Path(value)
    return Path(env.get(theirs) or fallback) / "evenhand"
