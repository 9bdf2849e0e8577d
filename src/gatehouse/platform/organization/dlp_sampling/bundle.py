"""What the setting gives to a tenant's policy."""

from typing import Any

from gatehouse.platform.organization.dlp_sampling.values import read


def share(stored: dict[str, Any]) -> float:
    """Of the tenant's column."""
    return read(stored).share
