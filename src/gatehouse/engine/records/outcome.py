"""Journal entries of requests: one when a stream opens, and one when the request ends.

New fields are only appended and have a default, so that older lines remain readable.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar
from uuid import UUID

import msgspec

#: The type of ids: UUID where entries are written, text where entries are only copied, which takes a tenth of the time.
Id = TypeVar("Id", UUID, str)


class DlpEvent(msgspec.Struct, array_like=True, frozen=True, kw_only=True, gc=False):
    """The matches of one rule in one direction, and the action. The matched text is never included (docs/dlp.md).
    `rule_id` is None for an event without a rule: content that no tier can read, or the failure of a tier."""

    rule_id: str | None
    rule_name: str
    detector_type: str | None
    entity_type: str
    #: `input` or `output`
    direction: str
    #: `logged`, `redacted`, `pending`, `approved`, `blocked`, `cancelled`
    status: str
    #: `allow`, `log_only`, `redact`, `prompt`, `block`
    action: str
    severity: str
    #: `platform` or `organization`
    source: str
    score: float | None
    match_count: int


class RuleEvent(msgspec.Struct, array_like=True, frozen=True, kw_only=True, gc=False):
    """The result of a content filter or policy rule for a request. The matched text is never included."""

    #: `content_filter`, `policy_rule`, `model_registry`, `request_field`, `cost_cap` or `mcp_tool`
    kind: str
    rule_id: str
    rule_name: str
    #: the type of a filter, or the action of a rule
    action: str
    #: `matched` or `failed`; for a rule that requires approval also `approved` or `denied`
    result: str
    #: `provider/model-id` of the candidate that the rule was evaluated for
    model: str | None = None


class Failed(msgspec.Struct, array_like=True, frozen=True, kw_only=True, gc=False):
    """A failed attempt at a model. `status` is the status that the provider sent, or None if it sent none.
    `duration_ms` is None if no call was made. `credential` is the label of the provider's credential, or None if it
    has only one."""

    provider: str
    model_id: str
    status: int | None
    reason: str
    duration_ms: float | None = None
    credential: str | None = None


class _Arrived(msgspec.Struct, Generic[Id], array_like=True, kw_only=True, gc=False):
    """Fields of a request that are known before its answer."""

    #: the usage record's id
    id: Id
    tenant_id: Id
    #: Unix time at which the request arrived
    timestamp: float
    request_id: str
    actor_type: str
    user_id: Id | None
    api_key_id: Id | None
    client_id: Id | None
    ip: str
    requested_model: str | None
    provider: str | None
    model_id: str | None


class Opened(_Arrived[Id], Generic[Id], tag="opened", kw_only=True, gc=False):
    """A stream is about to send its first byte. If no `Outcome` with the same id follows, the stream was
    interrupted."""

    #: events of the input
    dlp_events: tuple[DlpEvent, ...] = ()
    #: the user's groups
    group_ids: tuple[Id, ...] = ()
    rule_events: tuple[RuleEvent, ...] = ()
    routing_policy_id: str | None = None
    end_user: str | None = None
    tags: tuple[str, ...] = ()
    model_alias: str | None = None


class Outcome(_Arrived[Id], Generic[Id], tag="outcome", kw_only=True, gc=False):
    """The result of a finished request. `outcome` is one of `success`, `error`, `refused`, `cancelled`, `interrupted`.
    `status` is the HTTP status that the client received. Amounts of money are decimal strings."""

    path: str
    outcome: str
    status: int
    error_code: str | None
    stream: bool
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost_usd: str | None
    latency_ms: float
    time_to_first_token_ms: float | None
    provider_latency_ms: float | None
    #: number of models that failed or were skipped before the one that answered
    fallbacks: int
    #: None if DLP did not inspect the request
    dlp_action: str | None
    group_id: Id | None = None
    routing_policy_id: str | None = None
    dlp_events: tuple[DlpEvent, ...] = ()
    group_ids: tuple[Id, ...] = ()
    rule_events: tuple[RuleEvent, ...] = ()
    #: the budgets that the request counts against, with the start of each period in Unix time
    budgets: tuple[tuple[Id, int], ...] = ()
    #: failed attempts, oldest first
    attempts: tuple[Failed, ...] = ()
    #: `hit` or `miss` of the response cache; None if it was not used
    cache: str | None = None
    #: the end user that the caller named (`engine.records.attribution`)
    end_user: str | None = None
    tags: tuple[str, ...] = ()
    #: duration of the attempt that was answered, until its whole answer or the first event of its stream
    attempt_ms: float | None = None
    #: name of the model alias whose deployment answered. If no model answered, the alias that the call named. None if a
    #: model outside an alias answered, or the call named no alias
    model_alias: str | None = None
    #: whether the request is a copy for a shadow, whose answer was discarded
    shadow: bool = False
    #: label of the credential with which the model was called; None if the provider has only one
    credential: str | None = None


class Scanned(_Arrived[Id], Generic[Id], tag="scanned", kw_only=True, gc=False):
    """A scan of a text with findings. The text was not sent to a provider, so there is no usage to record."""

    dlp_events: tuple[DlpEvent, ...] = ()
    group_ids: tuple[Id, ...] = ()


class ToolCalled(_Arrived[Id], Generic[Id], tag="tool_called", kw_only=True, gc=False):
    """The result of a call of a tool of an MCP server. `requested_model` is `mcp:server/tool`. Neither arguments nor
    results are included."""

    path: str
    server_id: Id
    server: str
    #: None if the agent named no tool that it may call
    tool: str | None
    definition_hash: str | None
    #: SHA-256 digest of the arguments that were sent; None if nothing was sent
    arguments_digest: str | None
    #: `success`, `error`, `refused`, `cancelled`
    outcome: str
    status: int
    error_code: str | None
    #: whether the tool reports an error
    is_error: bool
    latency_ms: float
    #: duration of the call to the server; None if nothing was sent
    upstream_ms: float | None
    #: bytes of the result before DLP
    result_bytes: int | None
    dlp_action: str | None
    dlp_events: tuple[DlpEvent, ...] = ()
    rule_events: tuple[RuleEvent, ...] = ()
    group_ids: tuple[Id, ...] = ()
    #: the budgets that the call counts against, with the start of each period in Unix time
    budgets: tuple[tuple[Id, int], ...] = ()


class Sampled(_Arrived[Id], Generic[Id], tag="sampled", kw_only=True, gc=False):
    """A sample of a request and its answer, for dry runs of rules, if the organization has enabled samples. `contents`
    (`engine.records.samples.Contents`) is sealed under a key of its own, and that key is sealed under the master key.
    `ip` is empty. Only the platform writes samples."""

    sealed_key: str
    contents: str
    #: number of texts of the request
    texts: int
    #: Unicode code points of all texts, including the texts of the answer
    characters: int
    #: number of texts of the answer; None if no answer is stored
    answer_texts: int | None = None


def group_of(groups: Sequence[Id]) -> Id | None:
    """Return the group that a usage record counts for. It is the user's group if the user has exactly one, else
    None."""
    return groups[0] if len(groups) == 1 else None


Entry: TypeAlias = Opened[Id] | Outcome[Id] | Scanned[Id] | ToolCalled[Id]

#: An entry of the platform's journal.
JournalEntry: TypeAlias = Entry[Id] | Sampled[Id]

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Entry[UUID]] = msgspec.json.Decoder(
    Opened[UUID] | Outcome[UUID] | Scanned[UUID] | ToolCalled[UUID]
)
_text_decoder: msgspec.json.Decoder[Entry[str]] = msgspec.json.Decoder(
    Opened[str] | Outcome[str] | Scanned[str] | ToolCalled[str]
)
_journal_decoder: msgspec.json.Decoder[JournalEntry[str]] = msgspec.json.Decoder(
    Opened[str] | Outcome[str] | Scanned[str] | Sampled[str] | ToolCalled[str]
)


#: Encodes one journal entry as JSON without a line break.
encode: Callable[[JournalEntry[UUID]], bytes] = _encoder.encode


def decode(line: bytes) -> Entry[UUID]:
    return _decoder.decode(line)


def decode_with_text_ids(line: bytes) -> Entry[str]:
    return _text_decoder.decode(line)


def decode_of_platform(line: bytes) -> JournalEntry[str]:
    return _journal_decoder.decode(line)
