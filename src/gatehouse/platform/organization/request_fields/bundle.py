"""What the allowed fields give to a tenant's policy."""

from typing import Any

from gatehouse.platform.organization.request_fields.values import read


def record(stored: dict[str, Any]) -> tuple[str, ...]:
    """Of the tenant's column."""
    return read(stored).allowed
