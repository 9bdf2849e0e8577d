"""Bodies of the registry's endpoints, with the fields of both variants."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final, Literal, get_args
from uuid import UUID

from pydantic import BeforeValidator, Field, WithJsonSchema

from gatehouse.foundation.http.bodies import Body, ResponseBody, partial
from gatehouse.platform.records.audit.schemas import AuditEventShown, Hash
from gatehouse.platform.routing.fields import Line, ModelId

Status = Literal[
    "draft", "pending_validation", "in_validation", "needs_remediation", "validated", "deprecated", "unclassified",
]  # fmt: skip
#: Initial statuses of a new entry.
FirstStatus = Literal["draft", "unclassified"]
RiskTier = Literal["tier_1", "tier_2", "tier_3", "tier_4", "unclassified"]

#: Permitted transitions of the validation status.
TRANSITIONS: Final[Mapping[Status, frozenset[Status]]] = {
    "draft": frozenset({"pending_validation"}),
    "unclassified": frozenset({"pending_validation"}),
    "pending_validation": frozenset({"in_validation"}),
    "in_validation": frozenset({"validated", "needs_remediation", "deprecated"}),
    "needs_remediation": frozenset({"validated", "in_validation"}),
    "validated": frozenset({"deprecated"}),
    "deprecated": frozenset(),
}
assert set(TRANSITIONS) == set(get_args(Status))

#: The provider in `provider/model-id`, without slashes and spaces.
Provider = Annotated[str, Field(pattern=r"^[^\s/\x00-\x1f\x7f]{1,63}$", examples=["openai"])]


def _as_object(tags: object) -> object:
    """Convert a list of tags to an object of keys with empty values."""
    if not isinstance(tags, list):
        return tags
    if not all(isinstance(tag, str) for tag in tags):
        raise ValueError("must be a list of texts, or an object of texts")
    return dict.fromkeys(tags, "")


_TEXT = {"type": "string", "minLength": 1, "maxLength": 100}
Tags = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=100)], Annotated[str, Field(max_length=255)]],
    Field(max_length=100),
    BeforeValidator(_as_object),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": _TEXT, "maxItems": 100},
                {
                    "type": "object",
                    "additionalProperties": {"type": "string", "maxLength": 255},
                    "propertyNames": {"minLength": 1, "maxLength": 100},
                    "maxProperties": 100,
                },
            ],
            "description": "A list, or an object of keys and values. Responses use the form of the variant.",
            "examples": [["customer-facing"], {"team": "payments"}],
        }
    ),
]


class _RegisteredModelFields(Body):
    """The fields with the same rules in creations and updates."""

    display_name: Annotated[Line | None, Field(description="If null, the model's id.", examples=["GPT-4o mini"])] = None
    owner: Annotated[Line | None, Field(description="The accountable person or team.", examples=["Model risk"])] = None
    description: Annotated[str, Field(max_length=2_000)] | None = None
    tags: Tags = Field(default_factory=dict)


class NewRegisteredModel(_RegisteredModelFields):
    """A new entry. `risk_tier` is required in variant B."""

    model_id: ModelId
    provider: Provider
    risk_tier: Annotated[RiskTier | None, Field(examples=["tier_2"])] = None
    validation_status: FirstStatus = "draft"


@partial
class RegisteredModelUpdate(_RegisteredModelFields):
    """A partial update: omitted fields keep their values. `tags` are replaced as a whole."""

    model_id: Annotated[str, Field(description="Cannot change.")]
    provider: Annotated[str, Field(description="Cannot change.")]
    risk_tier: RiskTier
    validation_status: Annotated[Status, Field(examples=["pending_validation"])]


class RegisteredModel(ResponseBody):
    id: UUID
    model_id: str
    provider: str
    display_name: str
    risk_tier: RiskTier
    validation_status: Status
    owner: str | None
    description: str | None
    tags: Annotated[list[str] | dict[str, str], Field(description="A list in variant A, an object in B.")]
    request_count_30d: Annotated[
        int, Field(description="Calls that the model answered today and in the 29 days before.")
    ]
    first_seen_at: Annotated[
        datetime | None, Field(description="Time of the first call. Null if the model was never called.")
    ]
    last_seen_at: Annotated[datetime | None, Field(description="Time of the last call.")]
    tenant_id: UUID
    created_at: datetime
    updated_at: datetime


Sort = Literal[
    "model_id",
    "-model_id",
    "provider",
    "-provider",
    "risk_tier",
    "-risk_tier",
    "validation_status",
    "-validation_status",
    "owner",
    "-owner",
    "created_at",
    "-created_at",
    "updated_at",
    "-updated_at",
]


class RegisteredModelsPage(ResponseBody):
    """The list in variant A."""

    items: list[RegisteredModel]
    total: int
    limit: int
    offset: int


class RegisteredModelsPageB(ResponseBody):
    """The list in variant B."""

    models: list[RegisteredModel]
    total: int
    limit: int
    offset: int


class Discovery(Body):
    lookback_days: Annotated[int, Field(ge=1, le=365, description="Number of days (UTC), including today.")] = 30
    auto_assign_tier: Annotated[
        Literal[True, False, "tier_1", "tier_2", "tier_3", "tier_4"] | None,
        Field(
            description="True: infer the tier from the model id. False: the tier is `unclassified`. A tier: assign it"
            " to all models. Default: false in variant A, `tier_4` in B.",
            examples=[True],
        ),
    ] = None
    dry_run: bool = False


class DiscoveredModel(ResponseBody):
    model_id: str
    provider: str
    status: Annotated[
        Literal["created", "existing"],
        Field(description="With `dry_run`, `created` means that an entry would be created."),
    ]
    risk_tier: RiskTier
    validation_status: Status
    request_count_30d: int
    first_seen_at: datetime | None
    last_seen_at: datetime | None


class Discovered(ResponseBody):
    discovered: Annotated[int, Field(description="Number of called models, with and without an entry before.")]
    created: Annotated[int, Field(description="Number of entries that were created; 0 with `dry_run`.")]
    existing: int
    dry_run: bool
    models: list[DiscoveredModel]


class EvidenceEvent(AuditEventShown):
    """An audit event with all data needed to verify its hash."""

    personal_digest: Annotated[Hash, Field(description="SHA-256 over salt, actor, address and details; hexadecimal.")]


class Move(ResponseBody):
    """A transition of the validation status."""

    old_status: str
    new_status: str
    timestamp: datetime
    actor_id: str | None
    sequence: Annotated[int, Field(description="Sequence of the audit event in `history`.")]


class HeldRequest(ResponseBody):
    """A request for the model that was held for approval."""

    id: UUID
    request_id: str
    requested_model: str
    reason: str
    rule_name: str | None
    direction: str
    status: str
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    decision_reason: str | None


class MonthOfUse(ResponseBody):
    month: Annotated[str, Field(description="The month (UTC).", examples=["2026-11"])]
    requests: int
    errors: Annotated[int, Field(description="Failed attempts and interrupted answers.")]
    blocked: Annotated[int, Field(description="Answers that DLP blocked.")]
    flagged: Annotated[int, Field(description="Requests that the registry flagged.")]
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal


class Incidents(ResponseBody):
    """Sums over all months. `kill_switches` is the number of times that the model was disabled."""

    errors: int
    dlp_blocks: int
    registry_flags: int
    kill_switches: int


class Enforcement(ResponseBody):
    mode: Literal["off", "warn", "block"]
    objection: Annotated[
        str | None,
        Field(description="Reason why the gateway flags or refuses the model.", examples=["model_not_validated"]),
    ]


class ChainHead(ResponseBody):
    """The last event of the organization's audit chain when the evidence was collected."""

    sequence: int
    hash: Hash


class Evidence(ResponseBody):
    generated_at: datetime
    model: RegisteredModel
    next_statuses: Annotated[list[Status], Field(description="Validation statuses to which the entry can change.")]
    enforcement: Enforcement
    chain: ChainHead
    history: Annotated[list[EvidenceEvent], Field(description="Changes of the model's entries, oldest first.")]
    validation: list[Move]
    kill_switches: Annotated[list[EvidenceEvent], Field(description="Kill switch events, oldest first.")]
    approvals: Annotated[list[HeldRequest], Field(description="Requests that waited for approval, oldest first.")]
    usage: Annotated[list[MonthOfUse], Field(description="Months with calls or incidents, oldest first.")]
    incidents: Incidents
    events_since: Annotated[
        datetime | None,
        Field(description="Audit events before this time are outside the hot retention window. Null if none are."),
    ]
    complete: Annotated[
        bool,
        Field(
            description="False if the entry is older than `events_since`, or if a list contains only its newest"
            " 1,000 items."
        ),
    ]
