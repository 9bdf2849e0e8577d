"""Anthropic. It offers no embeddings."""

from gatehouse.engine.providers.wires import API_KEY, AnthropicWire


class Anthropic(AnthropicWire):
    name = "anthropic"
    title = "Anthropic"
    type = "native"
    credential_fields = (API_KEY,)
    home = "https://api.anthropic.com"
