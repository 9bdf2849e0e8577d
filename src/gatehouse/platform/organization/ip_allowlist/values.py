"""The allowlist as a value, with what holds where nobody has set anything."""

from typing import Any

import msgspec


class IpAllowlist(msgspec.Struct, frozen=True, kw_only=True):
    """`bypass_for_mfa`: a caller with a fresh second factor passes from anywhere."""

    enabled: bool = False
    cidrs: tuple[str, ...] = ()
    bypass_for_mfa: bool = False


def read(stored: dict[str, Any]) -> IpAllowlist:
    return msgspec.convert(stored, IpAllowlist)
