"""Errors of the usage endpoints."""

from gatehouse.foundation.errors import NotFound


class UsageRecordNotFound(NotFound):
    message = "Usage record not found"
