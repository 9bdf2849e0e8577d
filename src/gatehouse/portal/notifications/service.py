"""Resolves notifications."""

from gatehouse.foundation.clock import utc_now
from gatehouse.portal.change import PortalChange
from gatehouse.portal.notifications.table import NotificationRow


def resolve(change: PortalChange, notification: NotificationRow) -> NotificationRow:
    """Marks the notification as resolved. The same problem is reported again only if it has been absent meanwhile."""
    if notification.resolved_at is None:
        notification.resolved_at = utc_now()
        change.record("notification.resolved", "notification", notification.id, type=notification.type)
    return notification
