"""Reads the allowed request fields for a tenant's policy."""

from typing import Any

from gatehouse.platform.organization.request_fields.values import read


def record(stored: dict[str, Any]) -> tuple[str, ...]:
    """Return the allowed fields, from the tenant's column."""
    return read(stored).allowed
