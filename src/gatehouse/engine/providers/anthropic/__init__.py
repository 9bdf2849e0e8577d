"""Anthropic itself. It has no embeddings."""

from gatehouse.engine.providers.wires import API_KEY, AnthropicWire
from gatehouse.policy.records import ProviderConfig


class Anthropic(AnthropicWire):
    name = "anthropic"
    title = "Anthropic"
    type = "native"
    credential_fields = (API_KEY,)

    def base_url(self, config: ProviderConfig) -> str:
        return (config.base_url or "https://api.anthropic.com").rstrip("/").removesuffix("/v1")
