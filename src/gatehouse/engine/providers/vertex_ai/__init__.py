"""Google's Vertex AI: models of a project at a location, Gemini in Google's dialect and Claude in Anthropic's.

The path contains the model, so a body for Claude has the version of Vertex's API instead of the model's name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from gatehouse.engine.providers.authentication.google import GoogleTokens, normalized_key
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.providers.gemini.failure import failure_of
from gatehouse.engine.providers.kind import (
    CredentialField,
    Endpoint,
    ProviderModel,
    ProviderNotConfigured,
    ProviderTarget,
)
from gatehouse.engine.providers.vertex_ai.models import list_publisher_models
from gatehouse.engine.providers.wires import Wire
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

ANTHROPIC_VERSION: Final = "vertex-2023-10-16"

_CLAUDE: Final = "claude"
_CLAUDE_DIALECTS: Final[Mapping[str, str]] = {"chat": "anthropic_messages", "count_tokens": "anthropic_token_count"}
_GEMINI_DIALECTS: Final[Mapping[str, str]] = {
    "chat": "gemini_generate", "embeddings": "vertex_gemini_embed", "count_tokens": "vertex_gemini_count",
}  # fmt: skip
_OTHER_DIALECTS: Final[Mapping[str, str]] = {"chat": "gemini_generate", "embeddings": "vertex_predict"}
#: The model that counts tokens for all models of Anthropic.
_COUNTING_MODEL: Final = "count-tokens"
#: A tuned model, which has an endpoint of its own.
_ENDPOINT: Final = re.compile(r"endpoints/\d+")
#: Locations that consist of several regions. Their host names have another form.
_MULTI_REGIONS: Final = frozenset({"us", "eu"})


class VertexAI(Wire):
    name = "vertex_ai"
    title = "Google Vertex AI"
    type = "cloudmanaged"
    credential_fields = (
        CredentialField(name="service_account_key", form="document", normalize=normalized_key, way="service_account"),
        CredentialField(name="use_instance_role", secret=False, form="flag", way="role"),
        CredentialField(
            name="cloud_project",
            secret=False,
            pattern=r"([a-z0-9.-]{1,63}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]|\d{6,20}",
        ),
        # The location becomes part of a host name.
        CredentialField(name="cloud_location", secret=False, pattern=r"global|us|eu|[a-z]{2,16}-[a-z]{2,16}\d{1,2}"),
    )
    dialects: Mapping[str, str] = _GEMINI_DIALECTS

    def __init__(self, tokens: GoogleTokens | None = None) -> None:
        self._tokens = tokens or GoogleTokens()

    def dialect(self, operation: str, config: ProviderConfig, model: str) -> str | None:
        if model.startswith(_CLAUDE):
            return _CLAUDE_DIALECTS.get(operation)
        return (_GEMINI_DIALECTS if model.startswith("gemini") else _OTHER_DIALECTS).get(operation)

    def base_url(self, config: ProviderConfig) -> str:
        if config.base_url:
            return config.base_url.rstrip("/")
        location = config.cloud_location
        if not location:
            raise ProviderNotConfigured("cloud_location")
        if location == "global":
            return "https://aiplatform.googleapis.com"
        if location in _MULTI_REGIONS:
            return f"https://aiplatform.{location}.rep.googleapis.com"
        return f"https://{location}-aiplatform.googleapis.com"

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        if not config.cloud_project or not config.cloud_location:
            raise ProviderNotConfigured("cloud_project")
        place = f"projects/{quote(config.cloud_project, safe=':')}/locations/{config.cloud_location}"
        version, path = _method(target)
        return Endpoint(f"{self.base_url(config)}/{version}/{place}/{path}", self.fixed_headers)

    def fit(self, body: dict[str, Any], target: ProviderTarget, config: ProviderConfig) -> dict[str, Any]:
        if not target.model.startswith(_CLAUDE):
            return body
        body = {**body, "anthropic_version": ANTHROPIC_VERSION}
        if target.operation == "chat":
            del body["model"]
        return body

    def carrier(self, outbound: Outbound, provider: ProviderRecord, secret: Mapping[str, str]) -> Outbound:
        if provider.config.use_instance_role:
            return self._tokens.of_machine(outbound, provider.id)
        key = secret.get("service_account_key")
        if not key:
            raise ProviderNotConfigured("service_account_key")
        return self._tokens.of_service_account(outbound, key, provider.id)

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        return failure_of(status, headers, body, secrets)

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        """Return Google's and Anthropic's models. The lists are the same for all projects. A model of Anthropic can be
        called only after it has been enabled in the project."""
        carrier = self.carrier(outbound, record, secret)
        return await list_publisher_models(carrier, self.base_url(record.config), record, self.failure)


def _method(target: ProviderTarget) -> tuple[str, str]:
    """Return the version of the API and the path below the location."""
    model = quote(target.model, safe="@")
    if target.model.startswith(_CLAUDE):
        if target.operation == "count_tokens":
            return "v1", f"publishers/anthropic/models/{_COUNTING_MODEL}:rawPredict"
        return "v1", f"publishers/anthropic/models/{model}:{'streamRawPredict' if target.stream else 'rawPredict'}"
    path = target.model if _ENDPOINT.fullmatch(target.model) else f"publishers/google/models/{model}"
    if target.operation == "chat":
        return "v1", f"{path}:{'streamGenerateContent?alt=sse' if target.stream else 'generateContent'}"
    if target.operation == "count_tokens":
        return "v1", f"{path}:countTokens"
    if target.model.startswith("gemini"):
        # Version 1 of the API cannot embed several texts in one call with these models.
        return "v1beta1", f"{path}:batchEmbedContents"
    return "v1", f"{path}:predict"
