"""Bodies of the DLP rules' endpoints."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.detection.pattern import ActionTier
from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted, partial
from gatehouse.platform.governance.dlp_fields import MAX_RULES, EntityType, Name, StreamMaxLength, Threshold
from gatehouse.policy.governance import DetectorType

Sort = Literal[
    "detector_name",
    "-detector_name",
    "detector_type",
    "-detector_type",
    "entity_type",
    "-entity_type",
    "action_tier",
    "-action_tier",
    "created_at",
    "-created_at",
    "updated_at",
    "-updated_at",
]
#: The allowed fields depend on the detector type: see `config`.
Config = Annotated[
    dict[str, Any],
    Field(
        description="`regex`: `pattern`, `context`, `reversible`; `ner`: `entities`, `reversible`; `llm`: `labels`,"
        " `threshold`.",
        examples=[{"pattern": "EMP-[0-9]{6}", "context": ["employee"]}],
    ),
]


class NewDlpRule(Body):
    detector_name: Name
    detector_type: Annotated[DetectorType, Field(examples=["regex"])]
    entity_type: EntityType
    action_tier: Annotated[ActionTier, Field(examples=["redact"])]
    enabled: bool = True
    confidence_threshold: Threshold = 0.5
    config_json: Config = Field(default_factory=dict)


@partial
class DlpRuleUpdate(NewDlpRule):
    """A partial update: omitted fields keep their values. `config_json` is replaced as a whole."""

    detector_type: Annotated[DetectorType, Field(default_factory=omitted)]
    action_tier: Annotated[ActionTier, Field(default_factory=omitted, examples=["block"])]


class ExportedRule(ResponseBody):
    detector_name: str
    detector_type: DetectorType
    entity_type: str
    action_tier: ActionTier
    enabled: bool
    confidence_threshold: float
    config_json: dict[str, Any]


class DlpRule(ExportedRule):
    id: UUID
    stream_max_length: StreamMaxLength
    updated_at: datetime


class DlpRuleVersion(ResponseBody):
    id: UUID
    rule_id: UUID
    changed_by: str | None
    change_type: Literal["create", "update", "delete"]
    old_values: Annotated[dict[str, Any] | None, Field(description="Null if the rule was created.")]
    new_values: Annotated[dict[str, Any] | None, Field(description="Null if the rule was deleted.")]
    changed_at: datetime


class DlpRulesExport(ResponseBody):
    version: Annotated[str, Field(examples=["1.0"])]
    exported_at: datetime
    tenant_id: UUID
    rules: list[ExportedRule]


class DlpRulesImport(Body):
    """An import. An export is accepted unchanged: fields other than `rules` and `conflict_mode` are ignored."""

    rules: Annotated[
        list[dict[str, Any]],
        Field(
            max_length=MAX_RULES,
            examples=[[{
                "detector_name": "Employee numbers", "detector_type": "regex", "entity_type": "employee_id",
                "action_tier": "redact", "config_json": {"pattern": "EMP-[0-9]{6}"},
            }]],
        ),
    ]  # fmt: skip
    conflict_mode: Literal["skip", "overwrite", "rename"] = "skip"
    version: Literal["1.0"] = "1.0"
    exported_at: str | None = None
    tenant_id: str | None = None


class ImportFault(ResponseBody):
    index: Annotated[int, Field(description="Index in `rules`, from 0.")]
    detector_name: str | None
    error: str


class DlpRulesImported(ResponseBody):
    imported: int
    skipped: int
    errors: list[ImportFault]
    rules: list[DlpRule]
