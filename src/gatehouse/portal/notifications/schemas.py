"""Bodies of the notifications' endpoints (decisions 8, Notification)."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Shown
from gatehouse.portal.notifications.kinds import Kind, Severity


class Notification(Shown):
    id: UUID
    type: Kind
    severity: Severity
    message: str
    subject_id: Annotated[UUID, Field(description="What it is about: an outpost, a webhook, the organization.")]
    created_at: datetime
    resolved_at: Annotated[datetime | None, Field(description="Null while it holds.")]


class Notifications(Shown):
    items: list[Notification]
    total: int
