"""Reads the IP allowlist for the policy of a tenant."""

from typing import Any

from gatehouse.platform.organization.ip_allowlist.values import read


def record(stored: dict[str, Any]) -> tuple[tuple[str, ...] | None, bool]:
    """Return two values: the address ranges, or None if the list is not enforced; and whether a fresh second factor
    bypasses the list. `stored` is the column `ip_allowlist` of the tenant."""
    allowlist = read(stored)
    return (allowlist.cidrs if allowlist.enabled else None), allowlist.bypass_for_mfa
