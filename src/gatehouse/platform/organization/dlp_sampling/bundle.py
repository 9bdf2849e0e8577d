"""Reads the sampling setting for a tenant's policy."""

from typing import Any

from gatehouse.platform.organization.dlp_sampling.values import read


def share(stored: dict[str, Any]) -> float:
    """Return the share of calls to keep, from the tenant's column."""
    return read(stored).share
