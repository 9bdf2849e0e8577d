"""Reads the IP allowlist for a tenant's policy."""

from typing import Any

from gatehouse.platform.organization.ip_allowlist.values import read


def record(stored: dict[str, Any]) -> tuple[tuple[str, ...] | None, bool]:
    """Return, from the tenant's column, the ranges (None: not enforced) and whether a fresh second factor bypasses
    them."""
    allowlist = read(stored)
    return (allowlist.cidrs if allowlist.enabled else None), allowlist.bypass_for_mfa
