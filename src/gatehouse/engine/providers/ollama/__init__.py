"""A self-hosted Ollama server, through its OpenAI-compatible endpoint, without a key."""

from collections.abc import Mapping

from gatehouse.engine.fields.tables import LOCAL
from gatehouse.engine.providers.kind import CredentialField, ProviderNotConfigured
from gatehouse.engine.providers.wires import OpenAIWire, openai_dialects
from gatehouse.policy.catalog import ProviderConfig


class Ollama(OpenAIWire):
    name = "ollama"
    title = "Ollama"
    type = "native"
    guards = LOCAL
    dialects: Mapping[str, str] = openai_dialects("chat", "embeddings", "completions")
    credential_fields = (CredentialField(name="local_runtime_base_url", secret=False, form="url"),)

    def base_url(self, config: ProviderConfig) -> str:
        base = config.local_runtime_base_url or config.base_url
        if not base:
            raise ProviderNotConfigured("local_runtime_base_url")
        return base.rstrip("/").removesuffix("/v1") + "/v1"
