"""What the allowlist gives to a tenant's policy."""

from typing import Any

from gatehouse.platform.organization.ip_allowlist.values import read


def record(stored: dict[str, Any]) -> tuple[tuple[str, ...] | None, bool]:
    """Of the tenant's column: the ranges, None where they are not enforced; whether a fresh factor bypasses them."""
    allowlist = read(stored)
    return (allowlist.cidrs if allowlist.enabled else None), allowlist.bypass_for_mfa
