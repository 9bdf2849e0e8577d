"""Azure OpenAI: OpenAI's dialect at a customer's own URL, with the name of a deployment as the model's name.

Differences: the path contains the model, the key has a header of its own or is a token of Microsoft Entra ID, every
call has an API version, older versions refuse newer fields, and a content filter inspects the input and output of each
model.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from gatehouse.engine.conversation.dialects.openai_chat.content import without_signatures
from gatehouse.engine.conversation.errors import FilteredUpstream
from gatehouse.engine.providers.authentication.entra import Application, EntraTokens, cloud_of
from gatehouse.engine.providers.failure import ProviderFailed, of_status
from gatehouse.engine.providers.kind import (
    CredentialField,
    Endpoint,
    ProviderModel,
    ProviderNotConfigured,
    ProviderTarget,
)
from gatehouse.engine.providers.wires import OpenAIWire, fetch, openai_dialects
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

DEFAULT_VERSION: Final = "2024-02-01"

#: The last version whose data plane lists deployments.
_LIST_VERSION: Final = "2023-03-15-preview"
#: The first version that accepts `stream_options` and `max_completion_tokens`.
_NEWER_FIELDS_VERSION: Final = "2024-09-01"
#: Operations that only version 1 of the API has.
_VERSION_1_OPERATIONS: Final = frozenset({"responses", "compact", "input_tokens"})
#: Ends of the URLs that Azure's pages offer to copy: the path of a deployment or of another API.
_PATH_SUFFIX: Final = re.compile(r"(?:/openai(?:/.*)?|/+)\Z", re.DOTALL)


class AzureOpenAI(OpenAIWire):
    name = "azure_openai"
    title = "Azure OpenAI"
    type = "native"
    responses_api = True
    credential_fields = (
        CredentialField(name="api_key", way="api_key"),
        CredentialField(
            name="entra_tenant_id", secret=False, pattern=r"[A-Za-z0-9][A-Za-z0-9.-]{0,254}", way="application"
        ),
        CredentialField(name="entra_client_id", secret=False, pattern=r"[0-9A-Fa-f-]{36}", way="application"),
        CredentialField(name="entra_client_secret", way="application"),
        CredentialField(name="use_instance_role", secret=False, form="flag", way="role"),
        CredentialField(name="hosted_endpoint", secret=False, form="url"),
        CredentialField(
            name="hosted_api_version",
            required=False,
            secret=False,
            pattern=r"\d{4}-\d{2}-\d{2}(-preview)?",
            default=DEFAULT_VERSION,
        ),
    )
    dialects: Mapping[str, str] = openai_dialects(
        "chat", "embeddings", "image_generation", "image_edit", "transcription", "translation", "speech"
    )
    key_header = "api-key"
    # Reasoning models refuse the older field.
    limit_field = "max_completion_tokens"
    key_prefix = ""

    def __init__(self, tokens: EntraTokens | None = None) -> None:
        self._tokens = tokens or EntraTokens()

    def base_url(self, config: ProviderConfig) -> str:
        if not config.hosted_endpoint:
            raise ProviderNotConfigured("hosted_endpoint")
        parts = urlsplit(config.hosted_endpoint)
        return f"{parts.scheme}://{parts.netloc}{_PATH_SUFFIX.sub('', parts.path)}/openai"

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        if target.operation in _VERSION_1_OPERATIONS:
            # This version of the API has no query, and names the deployment in the body.
            return Endpoint(f"{self.base_url(config)}/v1{self.paths[target.operation]}", self.headers(secret))
        deployment = f"{self.base_url(config)}/deployments/{quote(target.model, safe='')}"
        url = f"{deployment}{self.paths[target.operation]}?api-version={quote(_version(config), safe='')}"
        return Endpoint(url, self.headers(secret))

    def carrier(self, outbound: Outbound, provider: ProviderRecord, secret: Mapping[str, str]) -> Outbound:
        config = provider.config
        cloud = cloud_of(config.hosted_endpoint or "")
        if config.use_instance_role:
            return self._tokens.of_machine(outbound, cloud, provider.id)
        client_secret = secret.get("entra_client_secret")
        if not client_secret or not config.entra_tenant_id or not config.entra_client_id:
            return outbound
        application = Application(config.entra_tenant_id, config.entra_client_id, client_secret)
        return self._tokens.of_application(outbound, application, cloud, provider.id)

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        # As for OpenAI: reasoning models refuse `max_tokens`. `fit` restores it for older versions of the API.
        if "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return body

    def has_prompt_cache_key(self, config: ProviderConfig) -> bool:
        return _version(config) >= _NEWER_FIELDS_VERSION

    def fit(self, body: dict[str, Any], target: ProviderTarget, config: ProviderConfig) -> dict[str, Any]:
        if "messages" in body and _version(config) < _NEWER_FIELDS_VERSION:
            # Streams of these versions report no usage: it is estimated.
            body.pop("stream_options", None)
            if "max_completion_tokens" in body:
                body["max_tokens"] = body.pop("max_completion_tokens")
        return without_signatures(body)

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        failed = of_status(status, headers, body, secrets)
        if isinstance(failed.client_error, FilteredUpstream) and (categories := _filter_categories(body)):
            # Azure's message explains how to change the filter, which clients cannot do.
            message = f"{FilteredUpstream.message[:-1]}: {', '.join(categories)}."
            failed.client_error = FilteredUpstream(message, filters=categories)
        return failed

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        """Return the deployments. A resource that no longer lists them answers 404, which also shows that the resource
        is available."""
        url = f"{self.base_url(record.config)}/deployments?api-version={_LIST_VERSION}"
        carrier = self.carrier(outbound, record, secret)
        listed = await fetch(carrier, url, self.headers(secret), record, _Deployments)
        return [
            ProviderModel(
                model_id=deployment.id,
                display_name=f"{deployment.id} ({deployment.model})" if deployment.model else None,
            )
            for deployment in listed.data
            if deployment.status in {None, "succeeded"}
        ]


class _Deployment(msgspec.Struct):
    id: str
    model: str | None = None
    status: str | None = None


class _Deployments(msgspec.Struct):
    data: list[_Deployment]


class _Inner(msgspec.Struct):
    content_filter_result: dict[str, Any] | None = None
    content_filter_results: dict[str, Any] | None = None


class _Error(msgspec.Struct):
    innererror: _Inner | None = None


class _FilteredResponse(msgspec.Struct):
    error: _Error


_refused = msgspec.json.Decoder(_FilteredResponse)


def _filter_categories(body: bytes) -> list[str]:
    """Return the categories of the filter that matched, such as `hate` or `jailbreak`."""
    try:
        inner = _refused.decode(body).error.innererror or _Inner()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    results = inner.content_filter_result or inner.content_filter_results or {}
    return sorted(
        name for name, result in results.items() if isinstance(result, dict) and result.get("filtered") is True
    )


def _version(config: ProviderConfig) -> str:
    return config.hosted_api_version or DEFAULT_VERSION
