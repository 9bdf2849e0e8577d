"""Azure OpenAI: OpenAI's dialect at a customer's own URL, with the name of a deployment as the model's name.

Differences: the path names the model, the key has a header of its own, every call has an API version, older versions
refuse newer fields, and a content filter inspects the input and output of each model.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from gatehouse.engine.conversation.dialects.openai_chat.content import without_signatures
from gatehouse.engine.conversation.errors import FilteredUpstream
from gatehouse.engine.providers.failure import ProviderFailed, of_status
from gatehouse.engine.providers.kind import CredentialField, Endpoint, FoundModel, ProviderNotConfigured, ProviderTarget
from gatehouse.engine.providers.wires import API_KEY, OpenAIWire, fetch
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.records import ProviderConfig, ProviderRecord

DEFAULT_VERSION: Final = "2024-02-01"

#: The last version whose data plane lists deployments.
_LIST_VERSION: Final = "2023-03-15-preview"
#: The first version that accepts `stream_options` and `max_completion_tokens`.
_NEWER_FIELDS_VERSION: Final = "2024-09-01"
#: Path suffixes of URLs that Azure's pages offer to copy, of a deployment or of another API.
_PATH_SUFFIX: Final = re.compile(r"(?:/openai(?:/.*)?|/+)\Z", re.DOTALL)


class AzureOpenAI(OpenAIWire):
    name = "azure_openai"
    title = "Azure OpenAI"
    type = "native"
    credential_fields = (
        API_KEY,
        CredentialField(name="hosted_endpoint", secret=False, form="url"),
        CredentialField(
            name="hosted_api_version",
            required=False,
            secret=False,
            pattern=r"\d{4}-\d{2}-\d{2}(-preview)?",
            default=DEFAULT_VERSION,
        ),
    )
    key_header = "api-key"
    # Reasoning models refuse the older field.
    limit_field = "max_completion_tokens"
    key_prefix = ""

    def base_url(self, config: ProviderConfig) -> str:
        if not config.hosted_endpoint:
            raise ProviderNotConfigured("hosted_endpoint")
        parts = urlsplit(config.hosted_endpoint)
        return f"{parts.scheme}://{parts.netloc}{_PATH_SUFFIX.sub('', parts.path)}/openai"

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        deployment = f"{self.base_url(config)}/deployments/{quote(target.model, safe='')}"
        url = f"{deployment}{self.paths[target.operation]}?api-version={quote(_version(config), safe='')}"
        return Endpoint(url, self.headers(secret))

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        # As for OpenAI: reasoning models refuse `max_tokens`. `fit` restores it for older versions of the API.
        if "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return body

    def has_prompt_cache_key(self, config: ProviderConfig) -> bool:
        return _version(config) >= _NEWER_FIELDS_VERSION

    def fit(self, body: dict[str, Any], config: ProviderConfig) -> dict[str, Any]:
        if _version(config) < _NEWER_FIELDS_VERSION:
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
    ) -> Sequence[FoundModel]:
        """Return the deployments. Resources that no longer list them answer 404, which also shows that they are
        available."""
        url = f"{self.base_url(record.config)}/deployments?api-version={_LIST_VERSION}"
        listed = await fetch(outbound, url, self.headers(secret), record, _Deployments)
        return [
            FoundModel(
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


class _Refused(msgspec.Struct):
    error: _Error


_refused = msgspec.json.Decoder(_Refused)


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
