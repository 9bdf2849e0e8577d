"""Base classes of the kinds for the two common wire formats: paths, headers and the list of models."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

import msgspec

from gatehouse.engine.conversation.operations import Operation
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.fields.tables import OPENAI_CHAT, Guards
from gatehouse.engine.providers.failure import ProviderFailed, of_status, of_transport
from gatehouse.engine.providers.kind import (
    CredentialField,
    Endpoint,
    ProviderModel,
    ProviderNotConfigured,
    ProviderTarget,
)
from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundRequest
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

API_KEY = CredentialField(name="api_key")
OPTIONAL_API_KEY = CredentialField(name="api_key", required=False)

#: A list of models is small; a larger body is not one.
MAX_LIST_BYTES = 8 * 1024 * 1024


class _OpenAIModel(msgspec.Struct):
    id: str
    name: str | None = None
    context_length: int | None = None
    max_model_len: int | None = None

    def to_provider_model(self) -> ProviderModel:
        window = self.context_length or self.max_model_len
        return ProviderModel(model_id=self.id, display_name=self.name, context_window=window)


class _AnthropicModel(msgspec.Struct):
    id: str
    display_name: str | None = None
    max_input_tokens: int | None = None
    max_tokens: int | None = None

    def to_provider_model(self) -> ProviderModel:
        return ProviderModel(
            model_id=self.id,
            display_name=self.display_name,
            context_window=self.max_input_tokens,
            max_output_tokens=self.max_tokens,
        )


Listed = TypeVar("Listed", _OpenAIModel, _AnthropicModel)


class ListedModels(msgspec.Struct, Generic[Listed]):
    """A provider's list of models."""

    data: list[Listed]


#: the operations of OpenAI's API: the dialect and the path of each
_OPENAI_OPERATIONS: Final[Mapping[Operation, tuple[str, str]]] = {
    "chat": ("openai_chat", "/chat/completions"),
    "embeddings": ("openai_embeddings", "/embeddings"),
    "completions": ("openai_completions", "/completions"),
    "moderations": ("openai_moderations", "/moderations"),
    "rerank": ("cohere_rerank", "/rerank"),
    "image_generation": ("openai_image_generation", "/images/generations"),
    "image_edit": ("openai_image_edits", "/images/edits"),
    "image_variation": ("openai_image_variations", "/images/variations"),
    "transcription": ("openai_transcriptions", "/audio/transcriptions"),
    "translation": ("openai_translations", "/audio/translations"),
    "speech": ("openai_speech", "/audio/speech"),
}


def openai_dialects(*operations: Operation) -> Mapping[str, str]:
    """Return the dialects of some of the operations of OpenAI's API."""
    return {operation: _OPENAI_OPERATIONS[operation][0] for operation in operations}


class Wire:
    """Base of all wire formats. `paths` has the paths of the operations, `models` that of the list of models."""

    #: the default base URL
    home: str | None = None
    dialects: Mapping[str, str]
    paths: Mapping[str, str]
    models: str
    shape: type[ListedModels[_OpenAIModel] | ListedModels[_AnthropicModel]]
    fixed_headers: Mapping[str, str] = {"Content-Type": "application/json"}
    key_header: str
    key_prefix = ""
    guards: Guards = OPENAI_CHAT
    # Servers that only resemble OpenAI's do not accept the newer field.
    limit_field = "max_tokens"
    #: the default of the setting `responses_api`; None: the kind has no such setting
    responses_api: bool | None = None
    #: the regions whose prices are those of the known models; empty: address and prices do not depend on a region
    priced_regions: frozenset[str] = frozenset()

    def base_url(self, config: ProviderConfig) -> str:
        base = config.base_url or self.home
        if not base:
            raise ProviderNotConfigured("base_url")
        return base.rstrip("/")

    def headers(self, secret: Mapping[str, str], config: ProviderConfig | None = None) -> dict[str, str]:
        headers = dict(self.fixed_headers)
        key = secret.get("api_key")
        if not key:
            return headers
        header = None if config is None or config.quirks is None else config.quirks.key_header
        if header is None:
            headers[self.key_header] = self.key_prefix + key
        else:
            headers[header] = f"Bearer {key}" if header == "authorization" else key
        return headers

    def dialect(self, operation: str, config: ProviderConfig, model: str) -> str | None:
        return self.dialects.get(operation)

    def has_responses(self, config: ProviderConfig) -> bool:
        if self.responses_api is None:
            return False
        return self.responses_api if config.responses_api is None else config.responses_api

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        return Endpoint(self.base_url(config) + self.paths[target.operation], self.headers(secret, config))

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        return body

    def has_prompt_cache_key(self, config: ProviderConfig) -> bool:
        # Servers that only resemble OpenAI's may refuse the field.
        return config.quirks is not None and config.quirks.prompt_cache_key is True

    def fit(self, body: dict[str, Any], target: ProviderTarget, config: ProviderConfig) -> dict[str, Any]:
        return body

    def carrier(self, outbound: Outbound, provider: ProviderRecord, secret: Mapping[str, str]) -> Outbound:
        return outbound

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        return of_status(status, headers, body, secrets)

    def usage(self, headers: Mapping[str, str]) -> Usage | None:
        return None

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        url = self.base_url(record.config) + self.models
        carrier = self.carrier(outbound, record, secret)
        listed = await fetch(carrier, url, self.headers(secret, record.config), record, self.shape)
        return [model.to_provider_model() for model in listed.data]


class OpenAIWire(Wire):
    """`/chat/completions`, `/models` and the paths of the other operations under a base URL; a bearer key. A server
    that only resembles OpenAI's may have all of them."""

    dialects: Mapping[str, str] = openai_dialects(*_OPENAI_OPERATIONS)
    paths: Mapping[str, str] = {
        **{operation: path for operation, (_, path) in _OPENAI_OPERATIONS.items()},
        "responses": "/responses",
        "compact": "/responses/compact",
        "input_tokens": "/responses/input_tokens",
    }
    models = "/models"
    shape = ListedModels[_OpenAIModel]
    key_header = "Authorization"
    key_prefix = "Bearer "

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        path = None if config.quirks is None else config.quirks.rerank_path
        if target.operation == "rerank" and path is not None:
            # A path that begins with two slashes names another host if it is resolved as a reference. The key must not
            # be sent there.
            parts = urlsplit(self.base_url(config))
            url = f"{parts.scheme}://{parts.netloc}/{path.lstrip('/')}"
            return Endpoint(url, self.headers(secret, config))
        return super().endpoint(target, config, secret)


class AnthropicWire(Wire):
    """`/v1/messages` and `/v1/models` under a base URL, whether that ends in `/v1` or not; a key in `x-api-key`."""

    dialects: Mapping[str, str] = {"chat": "anthropic_messages", "count_tokens": "anthropic_token_count"}
    paths: Mapping[str, str] = {"chat": "/v1/messages", "count_tokens": "/v1/messages/count_tokens"}
    models = "/v1/models?limit=1000"
    shape = ListedModels[_AnthropicModel]
    fixed_headers: Mapping[str, str] = {**Wire.fixed_headers, "anthropic-version": "2023-06-01"}
    key_header = "x-api-key"

    def base_url(self, config: ProviderConfig) -> str:
        return super().base_url(config).removesuffix("/v1")


T = TypeVar("T")


async def fetch(
    outbound: Outbound,
    url: str,
    headers: Mapping[str, str],
    record: ProviderRecord,
    shape: type[T],
    *,
    failure: Callable[[int, Mapping[str, str], bytes, Iterable[str]], ProviderFailed] = of_status,
) -> T:
    """GET a JSON document, and return it decoded. Raises `ProviderFailed`."""
    seconds = record.config.timeout_ms / 1000
    request = OutboundRequest(
        method="GET", url=url, headers=headers, connect_timeout=min(seconds, 5), first_byte_timeout=seconds,
        idle_timeout=seconds, egress=record.egress,
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
        raise failure(reply.status, reply.headers, body, ())
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProviderFailed("bad_reply", status=reply.status) from None
