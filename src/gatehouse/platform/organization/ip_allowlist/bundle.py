"""Reads the IP allowlist for the policy of a tenant."""

from typing import Any

from gatehouse.platform.organization.ip_allowlist.values import read


def record(stored: dict[str, Any]) -> tuple[tuple[str, ...] | None, bool]:
    """Return the address ranges from the tenant's column, or None if they are not enforced, and whether a fresh second
    factor bypasses them."""
    allowlist = read(stored)
    return (allowlist.cidrs if allowlist.enabled else None), allowlist.bypass_for_mfa
