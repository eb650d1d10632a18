"""Models by name: `openai/gpt-4o` stands for an address, a dialect and the variable that holds the key.

Users add providers of their own, or change these, in a TOML file:

    [work]
    url = "https://models.example.com/v1"
    key_variable = "WORK_KEY"
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from evenhand.core.errors import InputError, OptionError, UnknownName
from evenhand.models.config import origin


class Provider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the models of one provider are."""

    url: str
    """Up to and including `/v1`; `{endpoint}` stands for the variable `url_variable`."""
    key_variable: str | None = None
    """The environment variable with the key; None where none is needed."""
    dialect: Literal["openai", "anthropic"] = "openai"
    """Which protocol the endpoints speak."""
    url_variable: str | None = None
    """The environment variable with the part of the address that is one's own."""


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(
        url="https://api.anthropic.com/v1", key_variable="ANTHROPIC_API_KEY", dialect="anthropic"
    ),
    "azure": Provider(
        url="{endpoint}/openai/v1",
        key_variable="AZURE_OPENAI_API_KEY",
        url_variable="AZURE_OPENAI_ENDPOINT",
    ),
    "gemini": Provider(
        url="https://generativelanguage.googleapis.com/v1beta/openai", key_variable="GEMINI_API_KEY"
    ),
    "groq": Provider(url="https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    "mistral": Provider(url="https://api.mistral.ai/v1", key_variable="MISTRAL_API_KEY"),
    "ollama": Provider(url="http://127.0.0.1:11434/v1"),
    "openai": Provider(url="https://api.openai.com/v1", key_variable="OPENAI_API_KEY"),
    "openrouter": Provider(url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"),
    "together": Provider(url="https://api.together.xyz/v1", key_variable="TOGETHER_API_KEY"),
    "vllm": Provider(url="http://127.0.0.1:8000/v1"),
}


class NamedModel(NamedTuple):
    """A provider's model."""

    provider: Provider
    id: str


def read_providers(path: Path) -> dict[str, Provider]:
    """The providers in a file, over the shipped ones; the shipped ones alone when there is no file."""
    try:
        loaded = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return dict(PROVIDERS)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", path=path) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", path=path) from None
    try:
        own = msgspec.convert(loaded, dict[str, Provider])
        for provider in own.values():
            origin(provider.url.replace("{endpoint}", "https://endpoint"))
    except (msgspec.ValidationError, OptionError) as error:
        raise InputError(str(error), path=path) from None
    return {**PROVIDERS, **own}


def find_model(name: str, providers: Mapping[str, Provider]) -> NamedModel:
    """The model that `provider/id` names; `UnknownName` for a provider that is not known."""
    provider, slash, model = name.partition("/")
    if not slash or not provider or not model:
        raise OptionError(f"'{name}' names no model: write PROVIDER/MODEL, such as openai/gpt-4o")
    if provider not in providers:
        raise UnknownName("provider", provider, providers)
    return NamedModel(providers[provider], model)
