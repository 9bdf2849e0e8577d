"""The rules of notifications."""

from gatehouse.foundation.clock import utc_now
from gatehouse.portal.change import Change
from gatehouse.portal.notifications.table import NotificationRow


def resolve(change: Change, notification: NotificationRow) -> NotificationRow:
    """Somebody has seen to it. What is still wrong is told again only when it has been right meanwhile."""
    if notification.resolved_at is None:
        notification.resolved_at = utc_now()
        change.record("notification.resolved", "notification", notification.id, type=notification.type)
    return notification
