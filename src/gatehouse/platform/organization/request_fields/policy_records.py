"""Reads the allowed request fields for the policy of a tenant."""

from typing import Any

from gatehouse.platform.organization.request_fields.values import read


def record(stored: dict[str, Any]) -> tuple[str, ...]:
    """Return the allowed fields from the tenant's column."""
    return read(stored).allowed
