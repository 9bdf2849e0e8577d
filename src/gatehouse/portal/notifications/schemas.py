"""Bodies of the endpoints of notifications."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.portal.notifications.kinds import Kind, Severity


class Notification(ResponseBody):
    id: UUID
    type: Kind
    severity: Severity
    message: str
    subject_id: Annotated[UUID, Field(description="Id of the outpost, the webhook or the organization.")]
    created_at: datetime
    resolved_at: Annotated[datetime | None, Field(description="Null while it is open.")]


class Notifications(ResponseBody):
    items: list[Notification]
    total: int
