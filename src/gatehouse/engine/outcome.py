"""What is written down about a request: once when a stream opens, once when the request is over.

These are the journal's entries. Fields are only ever appended, with a default, so that an older line stays readable.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar
from uuid import UUID

import msgspec

#: UUIDs for those who write; whoever only copies them reads them as text, which costs a tenth.
Id = TypeVar("Id", UUID, str)


class DlpEvent(msgspec.Struct, array_like=True, frozen=True, kw_only=True, gc=False):
    """What one rule found in one direction, and what was done about it; never the matched text (decisions of the
    contract: Records). `rule_id` is None for what no rule is about: content that no tier can read, a tier's failure."""

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
    """What a content filter or a policy rule said about a request; never what it matched."""

    #: `content_filter`, `policy_rule`, `model_registry`, `request_field` or `cost_cap`
    kind: str
    rule_id: str
    rule_name: str
    #: a filter's type, a rule's action
    action: str
    #: `matched`, `failed`; of a rule that asks a person also `approved`, `denied`
    result: str
    #: `provider/model-id` of the candidate that a rule was asked about
    model: str | None = None


class Failed(msgspec.Struct, array_like=True, frozen=True, kw_only=True, gc=False):
    """A try at a model that came to nothing; `status` is the provider's, where it gave one."""

    provider: str
    model_id: str
    status: int | None
    reason: str


class _Arrived(msgspec.Struct, Generic[Id], array_like=True, kw_only=True, gc=False):
    """What is known of a request before its answer."""

    #: the usage record's id
    id: Id
    tenant_id: Id
    #: Unix time the request arrived
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
    """A stream is about to send its first byte. Without an `Outcome` of the same id later, it was interrupted."""

    #: of the input
    dlp_events: tuple[DlpEvent, ...] = ()
    #: the user's groups
    group_ids: tuple[Id, ...] = ()
    rule_events: tuple[RuleEvent, ...] = ()
    routing_policy_id: str | None = None
    end_user: str | None = None
    tags: tuple[str, ...] = ()


class Outcome(_Arrived[Id], Generic[Id], tag="outcome", kw_only=True, gc=False):
    """A request is over. `outcome` is one of `success`, `error`, `refused`, `cancelled`, `interrupted`; `status` the
    HTTP status the client was given; money is a decimal string."""

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
    #: models that failed or were passed over before the one that answered
    fallbacks: int
    #: None: no DLP looked at it
    dlp_action: str | None
    group_id: Id | None = None
    routing_policy_id: str | None = None
    dlp_events: tuple[DlpEvent, ...] = ()
    group_ids: tuple[Id, ...] = ()
    rule_events: tuple[RuleEvent, ...] = ()
    #: the budgets that it counts for, with the beginnings of their periods in Unix time
    budgets: tuple[tuple[Id, int], ...] = ()
    #: in their order
    attempts: tuple[Failed, ...] = ()
    #: `hit` or `miss` of the response cache; None where it was not asked
    cache: str | None = None
    #: whom the call was made for, in the caller's words (`engine.attribution`)
    end_user: str | None = None
    tags: tuple[str, ...] = ()


class Scanned(_Arrived[Id], Generic[Id], tag="scanned", kw_only=True, gc=False):
    """A text was scanned and something found. It was sent nowhere, so there is no usage to record."""

    dlp_events: tuple[DlpEvent, ...] = ()
    group_ids: tuple[Id, ...] = ()


class Sampled(_Arrived[Id], Generic[Id], tag="sampled", kw_only=True, gc=False):
    """What a request asked and was answered, for trying out rules: a sample, where the organization wants some.
    `contents` (`engine.samples.Contents`) is sealed under a key of the sample's own, and that under the master key;
    `ip` is empty. The platform's own: outposts hand in none."""

    sealed_key: str
    contents: str
    #: the request's
    texts: int
    #: Unicode code points of all texts, the answer's too
    characters: int
    #: None: no answer is kept
    answer_texts: int | None = None


def group_of(groups: Sequence[Id]) -> Id | None:
    """Whose group a usage record counts for: the user's, where there is exactly one."""
    return groups[0] if len(groups) == 1 else None


Entry: TypeAlias = Opened[Id] | Outcome[Id] | Scanned[Id]

#: What the platform's journal holds.
JournalEntry: TypeAlias = Entry[Id] | Sampled[Id]

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Entry[UUID]] = msgspec.json.Decoder(Opened[UUID] | Outcome[UUID] | Scanned[UUID])
_text_decoder: msgspec.json.Decoder[Entry[str]] = msgspec.json.Decoder(Opened[str] | Outcome[str] | Scanned[str])
_journal_decoder: msgspec.json.Decoder[JournalEntry[str]] = msgspec.json.Decoder(
    Opened[str] | Outcome[str] | Scanned[str] | Sampled[str]
)


#: One journal entry: JSON without a line break.
encode: Callable[[JournalEntry[UUID]], bytes] = _encoder.encode


def decode(line: bytes) -> Entry[UUID]:
    return _decoder.decode(line)


def decode_with_text_ids(line: bytes) -> Entry[str]:
    return _text_decoder.decode(line)


def decode_of_platform(line: bytes) -> JournalEntry[str]:
    return _journal_decoder.decode(line)
