"""The IP allowlist as a value, with its defaults."""

from typing import Any

import msgspec


class IpAllowlistValues(msgspec.Struct, frozen=True, kw_only=True):
    """The IP allowlist. With `bypass_for_mfa`, callers with a fresh second factor are accepted from any address."""

    enabled: bool = False
    cidrs: tuple[str, ...] = ()
    bypass_for_mfa: bool = False


def read(stored: dict[str, Any]) -> IpAllowlistValues:
    return msgspec.convert(stored, IpAllowlistValues)
