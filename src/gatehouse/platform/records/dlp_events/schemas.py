"""Bodies of the responses of the endpoint of DLP events."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody

Status = Literal["logged", "redacted", "pending", "approved", "blocked", "cancelled"]
Direction = Literal["input", "output"]
Action = Literal["allow", "log_only", "redact", "prompt", "block"]
Severity = Literal["low", "medium", "high", "critical"]
Source = Literal["platform", "organization"]


class DlpEvent(ResponseBody):
    id: UUID
    timestamp: datetime
    request_id: str
    user_id: UUID | None
    group_ids: list[str]
    rule_id: str | None
    rule_name: str | None
    detector_type: Annotated[str | None, Field(examples=["regex"])]
    entity_type: Annotated[str | None, Field(examples=["credit_card"])]
    direction: Direction
    status: Status
    score: float | None
    match_count: int | None
    model: str | None
    action: Annotated[Action | None, Field(description="Action of the rule for this caller, including overrides.")]
    severity: Severity | None
    source: Annotated[Source | None, Field(description="Owner of the rule: the platform or the organization.")]


class DlpEventsPage(ResponseBody):
    items: list[DlpEvent]
    total: int
    page: int
    page_size: int
