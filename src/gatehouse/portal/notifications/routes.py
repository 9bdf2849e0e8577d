"""The endpoints of notifications."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.lists import OffsetWindow, offset_window
from gatehouse.portal.notifications import service, table
from gatehouse.portal.notifications.schemas import Notification, Notifications
from gatehouse.portal.notifications.table import NotificationRow
from gatehouse.portal.request.callers import RESPONSES, OrgAdmin, OrgMember
from gatehouse.portal.request.injected import Changing, Session, loaded

router = APIRouter(prefix="/v1/orgs/{org_id}/notifications", tags=["Notifications"], responses=RESPONSES)


class NotificationNotFound(NotFound):
    message = "Notification not found"


LoadedNotification = Annotated[
    NotificationRow, Depends(loaded(NotificationRow, "notification_id", NotificationNotFound))
]
Window = Annotated[OffsetWindow, Depends(offset_window(default=100, maximum=500))]


@router.get("", response_model=Notifications)
async def list_notifications(
    caller: OrgMember,
    session: Session,
    window: Window,
    *,
    resolved: Annotated[bool | None, Query(description="Only resolved, or only open notifications.")] = None,
) -> object:
    """Returns the notifications of your organization, the newest first. They report outposts without a heartbeat,
    deliveries that have failed permanently, and a failed provisioning."""
    items, total = await table.listed(session, window, resolved=resolved)
    return {"items": items, "total": total}


@router.post("/{notification_id}/resolve", response_model=Notification)
async def resolve_notification(caller: OrgAdmin, notification: LoadedNotification, change: Changing) -> object:
    """Marks the notification as resolved."""
    return service.resolve(change, notification)
