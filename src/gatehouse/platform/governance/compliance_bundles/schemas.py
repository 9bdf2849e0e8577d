"""Bodies of the compliance bundles' endpoints."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

from pydantic import AfterValidator, Field

from gatehouse.detection.taxonomy import TAXONOMY
from gatehouse.foundation.http.bodies import Body, Moment, ResponseBody, omitted, partial

#: Version of the export's format.
EXPORT_VERSION: Final = "1.0"
#: Maximum number of bundles of an organization.
MAX_BUNDLES: Final = 1_000
#: Maximum number of records of one file.
MAX_IMPORTED_BUNDLES: Final = 1_000

Framework = Literal[
    "SOC2", "HIPAA", "GDPR", "PCI-DSS", "ISO27001", "NIST-800-53", "CCPA", "GLBA", "FERPA", "EU-AI-ACT", "SOX",
    "FedRAMP",
]  # fmt: skip
State = Literal["active", "archived"]
Sort = Literal[
    "name", "-name", "regulatory_framework", "-regulatory_framework", "updated_at", "-updated_at"
]  # fmt: skip

_ENTITY_TYPES: Final = frozenset(TAXONOMY)


def _require_entity_type(entity_type: str) -> str:
    if entity_type not in _ENTITY_TYPES:
        raise ValueError("not an entity type of the taxonomy; GET /api/admin/dlp-rules/entity-types lists them")
    return entity_type


def _without_duplicates(entity_types: list[str]) -> list[str]:
    return list(dict.fromkeys(entity_types))


Name: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Card data"])
]
Description: TypeAlias = Annotated[str, Field(max_length=2000)]
Version: TypeAlias = Annotated[str, Field(min_length=1, max_length=50, examples=["4.0.1"])]
EntityTypes: TypeAlias = Annotated[
    list[Annotated[str, Field(max_length=100), AfterValidator(_require_entity_type)]],
    Field(max_length=500, description="Entity types of the taxonomy.", examples=[["credit_card", "iban"]]),
    AfterValidator(_without_duplicates),
]


class NewBundle(Body):
    name: Name
    regulatory_framework: Annotated[Framework, Field(examples=["PCI-DSS"])]
    version: Version
    seed_rule_mappings: EntityTypes
    description: Description | None = None
    enabled: bool = True


class ImportedBundle(NewBundle):
    """An exported record. `exported_at` and `export_version` are ignored."""

    state: Annotated[
        State | None,
        Field(description="If omitted, `active` for a new bundle and unchanged for a replaced bundle."),
    ] = None
    exported_at: Moment | None = None
    export_version: Annotated[str | None, Field(max_length=50)] = None


@partial
class BundleUpdate(NewBundle):
    """A partial update: omitted fields keep their values."""

    regulatory_framework: Annotated[Framework, Field(default_factory=omitted)]
    enabled: Annotated[bool, Field(default_factory=omitted, examples=[False])]


class _BundleFields(ResponseBody):
    name: str
    description: str | None
    regulatory_framework: Framework
    version: str
    enabled: bool
    seed_rule_mappings: list[str]


class Bundle(_BundleFields):
    id: UUID
    state: State
    acknowledged_by: Annotated[
        str | None, Field(description="The user or client who accepted the bundle in its current form.")
    ]
    acknowledged_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ExportRecord(_BundleFields):
    state: State
    exported_at: datetime
    export_version: str


class ImportSummary(ResponseBody):
    created: int
    skipped: int
    replaced: int
    created_names: list[str]
    skipped_names: list[str]
    replaced_names: list[str]
    archived_names: Annotated[
        list[str], Field(description="Created or replaced bundles that are archived and therefore not active.")
    ]


class BySeverity(ResponseBody):
    critical: int = 0
    high: int = 0
    medium: int = 0
    low: int = 0


class ByAction(ResponseBody):
    """Numbers of events by action. `allow` counts events that were only logged."""

    block: int = 0
    redact: int = 0
    allow: int = 0
    require_approval: int = 0


class Day(ResponseBody):
    date: Annotated[str, Field(examples=["2026-11-21"])]
    event_count: int


class BundleFigures(ResponseBody):
    bundle_id: UUID
    bundle_name: str
    total_events: int
    by_action: ByAction


class BundleStats(BundleFigures):
    by_severity: BySeverity
    daily_trend: Annotated[list[Day], Field(description="Every day of the period (UTC), oldest first.")]


class TopTrigger(ResponseBody):
    rule_name: str
    bundle: str
    event_count: int


class Summary(ResponseBody):
    days: int
    total_events: int
    coverage_percent: Annotated[
        float, Field(description="Percentage of requests in which an entity type of an active bundle was found.")
    ]
    top_triggers: list[TopTrigger]
    bundles: list[BundleFigures]


class Report(ResponseBody):
    generated_at: datetime
    period_days: int
    summary: Summary
    bundle_details: list[BundleStats]


def content(body: NewBundle) -> dict[str, Any]:
    """Return the column values of a bundle."""
    return {name: getattr(body, name) for name in _BundleFields.model_fields}
