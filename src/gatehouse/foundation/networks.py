"""Ranges of addresses, as people write them into settings and lists."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network

_MAPPED_BITS: Final = 96


def network(cidr: str, *, strict: bool = False) -> Network:
    """The network that a CIDR names, without its host bits, which `strict` refuses. IPv4 written as IPv6 becomes IPv4,
    as clients' addresses do. Raises `ValueError`."""
    found = ip_network(cidr, strict=strict)
    if isinstance(found, IPv6Network) and found.prefixlen >= _MAPPED_BITS:
        mapped = found.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((int(mapped), found.prefixlen - _MAPPED_BITS))
    return found
