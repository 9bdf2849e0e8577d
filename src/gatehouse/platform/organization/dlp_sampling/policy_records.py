"""Reads the sampling setting for the policy of a tenant."""

from typing import Any

from gatehouse.platform.organization.dlp_sampling.values import read


def share(stored: dict[str, Any]) -> float:
    """Return the share of calls to sample, from the tenant's column."""
    return read(stored).share
