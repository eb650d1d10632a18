"""`connect`: a configuration becomes a model."""

from evenhand.models.anthropic import AnthropicDialect
from evenhand.models.config import EndpointConfig
from evenhand.models.endpoint import Endpoint
from evenhand.models.openai import OpenAIDialect
from evenhand.models.spend import SpendCap


def connect(config: EndpointConfig, *, spend: SpendCap | None = None) -> Endpoint:
    """The model that `config` describes. Nothing is sent before the first question.

    `spend` is a cap shared with other endpoints, in place of the configuration's own.
    """
    dialect = AnthropicDialect() if config.dialect == "anthropic" else OpenAIDialect()
    return Endpoint(config, dialect, spend=spend)
