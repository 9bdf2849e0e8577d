"""What a kind of provider is. Each kind stands in its own folder; `KINDS` in `registry` lists them."""

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
    """One field of a credentials body (reference 3, PUT credentials). `secret` ones are sealed together as one JSON
    object; the others go into the provider's config. `form` is `text`, `url` or `flag` (true or false); `pattern` is
    what the whole value must match, `default` what is stored where none is given, `unless` the flag in whose place the
    field stands."""

    name: str
    required: bool = True
    secret: bool = True
    form: str = "text"
    pattern: str | None = None
    default: str | None = None
    unless: str | None = None


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a provider says it has. None where it does not say."""

    model_id: str
    display_name: str | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    supports_vision: bool | None = None
    supports_streaming: bool | None = None


class Target(msgspec.Struct, frozen=True, gc=False):
    """What is asked of a provider, as far as its address depends on it. `operation` is `chat` or `embeddings`."""

    operation: str
    model: str
    stream: bool = False


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    url: str
    headers: Mapping[str, str]


class Kind(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """What a human calls it."""

    @property
    def type(self) -> str:
        """`native`, `openai_compatible`, `cloudmanaged` or `byoe` (reference 3, Provider)."""

    @property
    def credential_fields(self) -> tuple[CredentialField, ...]: ...

    @property
    def guards(self) -> Guards:
        """Fields that reach it only with the organization's permission, where it speaks the client's dialect."""

    @property
    def limit_field(self) -> str:
        """The field of a chat completion by which it is told how many tokens to answer with at most."""

    def dialect(self, operation: str, config: ProviderConfig) -> str | None:
        """The dialect in which this provider does `chat` or `embeddings`; None when it does not."""

    def endpoint(self, target: Target, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        """Where to POST. Raises `NotConfigured`."""

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        """The kind's quirks, for a body that was converted from another dialect."""

    def fit(self, body: dict[str, Any], config: ProviderConfig) -> dict[str, Any]:
        """What this configuration of the provider would refuse, taken out or said otherwise, of every body."""

    def carrier(self, outbound: Outbound, config: ProviderConfig, secret: Mapping[str, str]) -> Outbound:
        """What carries its calls: the network, except for a kind that lives in this process, or signs what it sends.
        Raises `NotConfigured`."""

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        """What an answer that is not 2xx means, see `failure.of_status`."""

    def usage(self, headers: Mapping[str, str]) -> Usage | None:
        """What an answer's headers tell of its usage, for one whose body tells none."""

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[FoundModel]:
        """For discovery and as a probe of health that costs nothing. Raises `ProviderFailed`."""


class NotConfigured(Exception):
    """A setting is missing without which the provider cannot be called; the text names it."""


class NoEmbeddings(BadRequest):
    code = "embeddings_not_supported"
    message = "This model's provider offers no embeddings."
