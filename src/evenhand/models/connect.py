"""`connect`: a configuration becomes a model."""

from evenhand.models.config import EndpointConfig
from evenhand.models.dialect import Dialect
from evenhand.models.endpoint import Endpoint
from evenhand.models.openai import OpenAIDialect


def connect(config: EndpointConfig) -> Endpoint:
    """The model that `config` describes. Nothing is sent before the first question."""
    dialects: dict[str, Dialect] = {"openai": OpenAIDialect()}
    return Endpoint(config, dialects[config.dialect])
