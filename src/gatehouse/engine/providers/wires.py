"""The two ways in which providers are reached, as bases of the kinds: paths, headers and the list of models."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from gatehouse.engine.providers.failure import ProviderFailed, of_status, of_transport
from gatehouse.engine.providers.kind import CredentialField, Endpoint, FoundModel, NotConfigured
from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundRequest
from gatehouse.policy.records import ProviderConfig, ProviderRecord

API_KEY = CredentialField(name="api_key")
OPTIONAL_API_KEY = CredentialField(name="api_key", required=False)

#: A list of models is small; more is no list of models.
MAX_LIST_BYTES = 8 * 1024 * 1024

T = TypeVar("T")


class _OpenAIModel(msgspec.Struct):
    id: str
    name: str | None = None
    context_length: int | None = None
    max_model_len: int | None = None


class _OpenAIModels(msgspec.Struct):
    data: list[_OpenAIModel]


class _AnthropicModel(msgspec.Struct):
    id: str
    display_name: str | None = None
    max_input_tokens: int | None = None
    max_tokens: int | None = None


class _AnthropicModels(msgspec.Struct):
    data: list[_AnthropicModel]


class OpenAIWire:
    """`/chat/completions`, `/embeddings` and `/models` under a base URL; a bearer key."""

    dialects: Mapping[str, str] = {"chat": "openai_chat", "embeddings": "openai_embeddings"}
    paths: Mapping[str, str] = {"chat": "/chat/completions", "embeddings": "/embeddings"}

    def base_url(self, config: ProviderConfig) -> str:
        return _configured(config.base_url)

    def dialect(self, operation: str, config: ProviderConfig) -> str | None:
        return self.dialects.get(operation)

    def endpoint(self, operation: str, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        return Endpoint(self.base_url(config) + self.paths[operation], self.headers(secret))

    def headers(self, secret: Mapping[str, str]) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        key = secret.get("api_key")
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        return body

    def carrier(self, outbound: Outbound) -> Outbound:
        return outbound

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[FoundModel]:
        url = self.base_url(record.config) + "/models"
        found = await fetch(self.carrier(outbound), url, self.headers(secret), record, _OpenAIModels)
        return [
            FoundModel(
                model_id=model.id, display_name=model.name, context_window=model.context_length or model.max_model_len
            )
            for model in found.data
        ]


class AnthropicWire:
    """`/v1/messages` and `/v1/models` under a base URL; a key in `x-api-key`."""

    version = "2023-06-01"

    def base_url(self, config: ProviderConfig) -> str:
        return _configured(config.base_url).removesuffix("/v1")

    def dialect(self, operation: str, config: ProviderConfig) -> str | None:
        return "anthropic_messages" if operation == "chat" else None

    def endpoint(self, operation: str, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        return Endpoint(self.base_url(config) + "/v1/messages", self.headers(secret))

    def headers(self, secret: Mapping[str, str]) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "anthropic-version": self.version}
        key = secret.get("api_key")
        if key:
            headers["x-api-key"] = key
        return headers

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        return body

    def carrier(self, outbound: Outbound) -> Outbound:
        return outbound

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[FoundModel]:
        url = self.base_url(record.config) + "/v1/models?limit=1000"
        found = await fetch(self.carrier(outbound), url, self.headers(secret), record, _AnthropicModels)
        return [
            FoundModel(
                model_id=model.id,
                display_name=model.display_name,
                context_window=model.max_input_tokens,
                max_output_tokens=model.max_tokens,
            )
            for model in found.data
        ]


async def fetch(outbound: Outbound, url: str, headers: Mapping[str, str], record: ProviderRecord, shape: type[T]) -> T:
    """One GET of JSON, decoded. Raises `ProviderFailed`."""
    seconds = record.config.timeout_ms / 1000
    request = OutboundRequest(
        method="GET", url=url, headers=headers, connect_timeout=min(seconds, 5), first_byte_timeout=seconds,
        idle_timeout=seconds,
    )  # fmt: skip
    try:
        reply = await outbound.send(request)
        try:
            body = await reply.read(MAX_LIST_BYTES)
        finally:
            await reply.close()
    except OutboundFailed as error:
        raise of_transport(error) from None
    if not 200 <= reply.status < 300:
        raise of_status(reply.status, reply.headers, body, ())
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProviderFailed("bad_reply", status=reply.status) from None


def _configured(base_url: str | None) -> str:
    if not base_url:
        raise NotConfigured("base_url")
    return base_url.rstrip("/")
