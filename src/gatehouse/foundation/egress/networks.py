"""Parses ranges of addresses in settings and lists."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network

_MAPPED_BITS: Final = 96


def network(cidr: str, *, strict: bool = False) -> Network:
    """Returns the network of a CIDR. Host bits are cleared, or refused if `strict`. An IPv4-mapped IPv6 network becomes
    an IPv4 network, because clients' addresses are converted in the same way. Raises `ValueError`."""
    parsed = ip_network(cidr, strict=strict)
    if isinstance(parsed, IPv6Network) and parsed.prefixlen >= _MAPPED_BITS:
        mapped = parsed.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((int(mapped), parsed.prefixlen - _MAPPED_BITS))
    return parsed
