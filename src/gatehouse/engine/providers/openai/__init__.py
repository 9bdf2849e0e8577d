"""OpenAI."""

from collections.abc import Mapping
from typing import Any

from gatehouse.engine.conversation.dialects.openai_chat.content import without_signatures
from gatehouse.engine.providers.kind import ProviderTarget
from gatehouse.engine.providers.wires import API_KEY, OpenAIWire, openai_dialects
from gatehouse.policy.catalog import ProviderConfig


class OpenAI(OpenAIWire):
    name = "openai"
    title = "OpenAI"
    type = "native"
    credential_fields = (API_KEY,)
    home = "https://api.openai.com/v1"
    responses_api = True
    # OpenAI's current models have no text completions, so calls for text completions are sent as chats.
    dialects: Mapping[str, str] = openai_dialects(
        "chat", "embeddings", "moderations", "image_generation", "image_edit", "image_variation", "transcription",
        "translation", "speech",
    )  # fmt: skip
    # Reasoning models refuse the older field.
    limit_field = "max_completion_tokens"

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        # Reasoning models refuse `max_tokens`. All current models accept `max_completion_tokens`.
        if "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return body

    def has_prompt_cache_key(self, config: ProviderConfig) -> bool:
        return True

    def fit(self, body: dict[str, Any], target: ProviderTarget, config: ProviderConfig) -> dict[str, Any]:
        return without_signatures(body)
