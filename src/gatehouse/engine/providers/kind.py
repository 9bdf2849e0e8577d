"""The interface of a kind of provider. Each kind has a folder; `KINDS` in `registry` lists them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.dialects.openai_responses.native import NATIVE_OPERATIONS
from gatehouse.engine.conversation.operations import Operation
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.fields.tables import Guards
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.foundation.errors import BadRequest
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

#: an operation at a provider; the operations of the Responses API are `responses` and `compact`, which are chats, and
#: `input_tokens`, a token count
ProviderOperation: TypeAlias = Operation | Literal["responses", "compact", "input_tokens"]


class CredentialField(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a credentials body (docs/providers.md). `secret` fields are sealed together as one JSON object; the
    others are stored in the provider's config. `form` is `text`, `url`, `flag` (true or false) or `document` (a JSON
    object, or its text); `pattern` must match the whole value, `default` is stored if the field is absent. `normalize`
    returns the text that is stored, and raises `ValueError` with a sentence that contains nothing of the value. A field
    that is not secret is a setting of the provider, unless it is `per_credential`.

    A field with a `way` belongs to one of several ways of authentication. A credential uses one of them: that of a flag
    that is true, else that of the first such field with a value, else the first one. `required` then applies to this
    way only."""

    name: str
    required: bool = True
    secret: bool = True
    form: str = "text"
    pattern: str | None = None
    default: str | None = None
    normalize: Callable[[str], str] | None = None
    way: str | None = None
    per_credential: bool = False


class ProviderModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model in a provider's list. Fields that the provider does not report are None."""

    model_id: str
    display_name: str | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    supports_vision: bool | None = None
    supports_streaming: bool | None = None


class ProviderTarget(msgspec.Struct, frozen=True, gc=False):
    """The properties of a call that its URL depends on."""

    operation: ProviderOperation
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

    def dialect(self, operation: str, config: ProviderConfig, model: str) -> str | None:
        """Return the dialect of this provider for an operation of a model; None if it does not offer the operation."""

    @property
    def responses_api(self) -> bool | None:
        """The default of the setting `responses_api`; None: the kind has no such setting."""

    def has_responses(self, config: ProviderConfig) -> bool:
        """Return whether the provider has OpenAI's Responses API."""

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        """Return the endpoint of a POST. Raises `ProviderNotConfigured`."""

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        """Adapt a body that was converted from another dialect to the kind."""

    def has_prompt_cache_key(self, config: ProviderConfig) -> bool:
        """Return whether a body that was converted from another dialect may have a `prompt_cache_key`."""

    def fit(self, body: dict[str, Any], target: ProviderTarget, config: ProviderConfig) -> dict[str, Any]:
        """Remove or replace fields that this configuration of the provider refuses, in every body, and add those that
        it requires."""

    def carrier(self, outbound: Outbound, provider: ProviderRecord, secret: Mapping[str, str]) -> Outbound:
        """Return the transport for calls of a provider: the network, except for a kind that runs in this process or
        signs its requests. Raises `ProviderNotConfigured`."""

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        """Return the failure of an answer that is not 2xx, see `failure.of_status`."""

    def usage(self, headers: Mapping[str, str]) -> Usage | None:
        """Return the usage in an answer's headers, for an answer whose body has none."""

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        """Return the provider's models, for discovery and as a health probe without cost. Raises `ProviderFailed`."""


class ProviderNotConfigured(Exception):
    """A required setting of the provider is missing; the text identifies it."""


class NotOffered(BadRequest):
    """The provider does not offer the operation."""

    code = "operation_not_supported"


class NoEmbeddings(NotOffered):
    code = "embeddings_not_supported"
    message = "This model's provider offers no embeddings."


class Offer(msgspec.Struct, frozen=True, gc=False):
    """How a provider serves an operation: its dialect, and its own operation."""

    dialect: str
    operation: ProviderOperation


def offer_to(
    kind: ProviderKind, client: Dialect, config: ProviderConfig, model: str, *, as_chat: bool = False
) -> Offer | None:
    """Return how a provider's model serves calls of a client's dialect, or None if it does not. Operations of the
    Responses API may be served natively. For all other operations the result is that of `offer`."""
    native = NATIVE_OPERATIONS.get(client.name)
    if native is not None and kind.has_responses(config):
        return Offer(client.name, native.path)
    if native is not None and native.native_only:
        return None
    return offer(kind, client.operation, config, model, as_chat=as_chat)


def offer(
    kind: ProviderKind, operation: Operation, config: ProviderConfig, model: str, *, as_chat: bool = False
) -> Offer | None:
    """Return how a provider's model serves an operation, or None if it does not. Text completions are converted to
    chats if the provider has no text completions, or if `as_chat` is true. Raises `ProviderNotConfigured`."""
    dialect = None if as_chat else kind.dialect(operation, config, model)
    if dialect is not None:
        return Offer(dialect, operation)
    if operation == "completions":
        dialect = kind.dialect("chat", config, model)
        return None if dialect is None else Offer(dialect, "chat")
    return None
