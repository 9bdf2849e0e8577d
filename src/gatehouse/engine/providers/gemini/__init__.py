"""Google's Gemini API. It has its own header for the key, and the path contains the model and the operation."""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

import msgspec

from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.providers.gemini.failure import failure_of
from gatehouse.engine.providers.kind import Endpoint, ProviderModel, ProviderTarget
from gatehouse.engine.providers.wires import API_KEY, Wire, fetch
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

#: Maximum number of pages of the list of models.
MAX_PAGES = 10

_CHAT_METHODS = frozenset({"generateContent"})
_OFFERED_METHODS = _CHAT_METHODS | {"embedContent", "batchEmbedContents"}


class _Model(msgspec.Struct, rename="camel"):
    name: str
    display_name: str | None = None
    input_token_limit: int | None = None
    output_token_limit: int | None = None
    supported_generation_methods: list[str] = []

    @property
    def methods(self) -> frozenset[str]:
        return frozenset(self.supported_generation_methods)

    def to_provider_model(self) -> ProviderModel:
        return ProviderModel(
            model_id=self.name.removeprefix("models/"),
            display_name=self.display_name,
            context_window=self.input_token_limit,
            max_output_tokens=self.output_token_limit,
            supports_streaming=bool(_CHAT_METHODS & self.methods),
        )


class _ModelsPage(msgspec.Struct, rename="camel"):
    models: list[_Model]
    next_page_token: str = ""


class Gemini(Wire):
    name = "gemini"
    title = "Google Gemini"
    type = "native"
    credential_fields = (API_KEY,)
    home = "https://generativelanguage.googleapis.com/v1beta"
    dialects: Mapping[str, str] = {
        "chat": "gemini_generate",
        "embeddings": "gemini_embed",
        "count_tokens": "gemini_count",
    }
    key_header = "x-goog-api-key"

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        method = "countTokens" if target.operation == "count_tokens" else "batchEmbedContents"
        if target.operation == "chat":
            method = "streamGenerateContent?alt=sse" if target.stream else "generateContent"
        path = quote(resource(target.model), safe="/:@")
        return Endpoint(f"{self.base_url(config)}/{path}:{method}", self.headers(secret))

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        return failure_of(status, headers, body, secrets)

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        url = f"{self.base_url(record.config)}/models?pageSize=1000"
        models: list[ProviderModel] = []
        token = ""
        for _ in range(MAX_PAGES):
            page_url = f"{url}&pageToken={quote(token, safe='')}" if token else url
            page = await fetch(outbound, page_url, self.headers(secret), record, _ModelsPage, failure=self.failure)
            models += [model.to_provider_model() for model in page.models if _OFFERED_METHODS & model.methods]
            token = page.next_page_token
            if not token:
                break
        return models


def resource(model: str) -> str:
    """Return a model's full resource name. Models that a customer has tuned already have a prefix in their name."""
    return model if "/" in model else f"models/{model}"
