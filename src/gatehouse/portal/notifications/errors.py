"""Errors of notifications."""

from gatehouse.foundation.errors import NotFound


class NotificationNotFound(NotFound):
    message = "Notification not found"
