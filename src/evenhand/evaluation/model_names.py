"""From a model's name to its address and key: the providers' table and the environment together."""

from typing import Literal, NamedTuple

from evenhand import settings
from evenhand.core.errors import OptionError
from evenhand.core.secret import Secret
from evenhand.models.providers import find_model, read_providers


class Located(NamedTuple):
    """Where a named model is."""

    url: str
    id: str
    dialect: Literal["openai", "anthropic"]
    api_key: Secret | None


def locate(name: str, *, api_key: Secret | None = None, general_key: str = "EVENHAND_API_KEY") -> Located:
    """The model that `PROVIDER/MODEL` names, with the key that was given, the provider's own or the general one.

    A key of one provider is never sent to another: `OPENAI_API_KEY` is for `openai/...` only.
    """
    provider, model = find_model(name, read_providers(settings.load().providers_file))
    url = provider.url
    if provider.url_variable is not None:
        endpoint = settings.text_named(provider.url_variable)
        if not endpoint:
            raise OptionError(f"'{name}' needs your address: set {provider.url_variable} in the environment")
        url = url.replace("{endpoint}", endpoint.rstrip("/"))
    key = api_key
    if key is None and provider.key_variable is not None:
        key = settings.key_named(provider.key_variable) or settings.key_named(general_key)
        if key is None:
            raise OptionError(
                f"'{name}' needs a key: set {provider.key_variable} or {general_key} in the environment"
            )
    return Located(url, model, provider.dialect, key)
