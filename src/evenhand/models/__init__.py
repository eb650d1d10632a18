"""Chat endpoints: one port, the OpenAI-compatible and Anthropic dialects behind it, limits, cache and cost."""
