"""Mistral's own API. It resembles OpenAI's but refuses unknown fields, so bodies are written in Mistral's dialect."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.providers.kind import ProviderModel
from gatehouse.engine.providers.mistral.failure import failure_of
from gatehouse.engine.providers.wires import API_KEY, OpenAIWire, fetch
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderRecord


class _Capabilities(msgspec.Struct, frozen=True):
    """The capabilities of a model in the list; None: not stated."""

    vision: bool | None = None
    completion_chat: bool | None = None


class _Model(msgspec.Struct):
    id: str
    name: str | None = None
    max_context_length: int | None = None
    capabilities: _Capabilities = _Capabilities()

    def to_provider_model(self) -> ProviderModel:
        return ProviderModel(
            model_id=self.id,
            display_name=self.name,
            context_window=self.max_context_length,
            supports_vision=self.capabilities.vision,
            supports_streaming=self.capabilities.completion_chat,
        )


class _ModelList(msgspec.Struct):
    data: list[_Model]


class Mistral(OpenAIWire):
    name = "mistral"
    title = "Mistral"
    type = "native"
    credential_fields = (API_KEY,)
    home = "https://api.mistral.ai/v1"
    dialects: Mapping[str, str] = {
        "chat": "mistral_chat",
        "embeddings": "mistral_embeddings",
        "moderations": "openai_moderations",
        "transcription": "openai_transcriptions",
    }

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        return failure_of(status, headers, body, secrets)

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        url = self.base_url(record.config) + self.models
        listed = await fetch(outbound, url, self.headers(secret), record, _ModelList, failure=self.failure)
        # Mistral lists its aliases as separate models, and may list an id twice.
        return list({model.id: model.to_provider_model() for model in listed.data}.values())
