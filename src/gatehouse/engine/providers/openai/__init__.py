"""OpenAI itself."""

from typing import Any

from gatehouse.engine.providers.wires import API_KEY, OpenAIWire
from gatehouse.policy.records import ProviderConfig


class OpenAI(OpenAIWire):
    name = "openai"
    title = "OpenAI"
    type = "native"
    credential_fields = (API_KEY,)

    def base_url(self, config: ProviderConfig) -> str:
        return (config.base_url or "https://api.openai.com/v1").rstrip("/")

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        # Reasoning models refuse the older name of the limit; every current model takes this one.
        if "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return body
