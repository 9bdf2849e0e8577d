"""The interface of a kind of provider. Each kind has a folder; `KINDS` in `registry` lists them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.fields.tables import Guards
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.foundation.errors import BadRequest
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.records import ProviderConfig, ProviderRecord


class CredentialField(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a credentials body (docs/providers.md). `secret` fields are sealed together as one JSON object; the
    others are stored in the provider's config. `form` is `text`, `url` or `flag` (true or false); `pattern` must match
    the whole value, `default` is stored if the field is absent, `unless` is the flag that replaces the field."""

    name: str
    required: bool = True
    secret: bool = True
    form: str = "text"
    pattern: str | None = None
    default: str | None = None
    unless: str | None = None


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model in a provider's list. Fields that the provider does not report are None."""

    model_id: str
    display_name: str | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    supports_vision: bool | None = None
    supports_streaming: bool | None = None


class ProviderTarget(msgspec.Struct, frozen=True, gc=False):
    """The properties of a call that its URL depends on. `operation` is `chat`, `embeddings` or `count_tokens`."""

    operation: str
    model: str
    stream: bool = False


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """The URL and the headers of a call."""

    url: str
    headers: Mapping[str, str]


class ProviderKind(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """The display name."""

    @property
    def type(self) -> str:
        """`native`, `openai_compatible`, `cloudmanaged` or `byoe`."""

    @property
    def credential_fields(self) -> tuple[CredentialField, ...]: ...

    @property
    def guards(self) -> Guards:
        """Fields that are sent only with the organization's permission, if the provider speaks the client's dialect."""

    @property
    def limit_field(self) -> str:
        """The field of a chat completion that limits the output tokens."""

    def dialect(self, operation: str, config: ProviderConfig) -> str | None:
        """Return the dialect of this provider for an operation; None if it does not offer the operation."""

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        """Return the endpoint of a POST. Raises `ProviderNotConfigured`."""

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        """Adapt a body that was converted from another dialect to the kind."""

    def has_prompt_cache_key(self, config: ProviderConfig) -> bool:
        """Return whether a body that was converted from another dialect may have a `prompt_cache_key`."""

    def fit(self, body: dict[str, Any], config: ProviderConfig) -> dict[str, Any]:
        """Remove or replace fields that this configuration of the provider refuses, in every body."""

    def carrier(self, outbound: Outbound, config: ProviderConfig, secret: Mapping[str, str]) -> Outbound:
        """Return the transport of its calls: the network, except for a kind that runs in this process or signs its
        requests. Raises `ProviderNotConfigured`."""

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        """Return the failure of an answer that is not 2xx, see `failure.of_status`."""

    def usage(self, headers: Mapping[str, str]) -> Usage | None:
        """Return the usage in an answer's headers, for an answer whose body has none."""

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[FoundModel]:
        """Return the provider's models, for discovery and as a health probe without cost. Raises `ProviderFailed`."""


class ProviderNotConfigured(Exception):
    """A required setting of the provider is missing; the text names it."""


class NoEmbeddings(BadRequest):
    code = "embeddings_not_supported"
    message = "This model's provider offers no embeddings."
