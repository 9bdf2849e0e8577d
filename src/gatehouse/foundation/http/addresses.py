"""Determines the client's address. `X-Forwarded-For` is trusted only from `TRUSTED_PROXIES`: any client can send it.

Each proxy appends the address of its peer, so the list is read from its end: the first address that is not a trusted
proxy is the client. Everything to its left was sent by the client itself.
"""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from starlette.types import Scope

from gatehouse.foundation.egress.networks import network
from gatehouse.foundation.settings import BadSettings

#: address of a peer without one (a Unix socket)
NO_ADDRESS: Final = "0.0.0.0"  # noqa: S104  # not listened on

#: hops of `X-Forwarded-For` that are read; a longer chain is an attack
_MAX_HOPS: Final = 20
_CACHED_PEERS: Final = 4096
#: headers that proxies add
_FORWARDING_HEADERS: Final = frozenset({b"x-forwarded-for", b"forwarded", b"via", b"x-real-ip"})


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address as proxies and sockets write it, with or without port, brackets or zone, or None if invalid. An
    IPv4-mapped IPv6 address becomes IPv4."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class ClientAddresses:
    """Determines clients' addresses. `trusted` has the proxies' CIDRs. Raises `BadSettings` for anything else."""

    def __init__(self, trusted: Iterable[str]) -> None:
        try:
            networks = tuple(network(cidr, strict=True) for cidr in trusted)
        except ValueError as error:
            raise BadSettings(f"TRUSTED_PROXIES: {error}") from None

        @lru_cache(maxsize=_CACHED_PEERS)
        def parse(text: str) -> tuple[str | None, bool]:
            """Return the normalized address, or None if it is invalid, and whether it is a trusted proxy."""
            address = parse_address(text) if len(text) < 64 else None
            if address is None:
                return None, False
            return str(address), any(address in network_range for network_range in networks)

        self._parse = parse

    def client(self, peer: str | None, forwarded_for: str | None) -> str:
        """Return the client's address. `peer` is the address of the connection's peer, `forwarded_for` the header's
        lines joined by commas, or None."""
        client, trusted = self._parse(peer) if peer else (None, False)
        if not trusted or not forwarded_for:
            return client or NO_ADDRESS
        for hop in reversed(forwarded_for.rsplit(",", _MAX_HOPS)[-_MAX_HOPS:]):
            address, trusted = self._parse(hop)
            if address is None:
                break  # an invalid address: the proxy that passed it on is the last known one
            client = address
            if not trusted:
                break
        return client or NO_ADDRESS

    def unknown_origin(self, scope: Scope) -> bool:
        """Return whether an untrusted proxy forwarded the request, so that the peer's address is not the client's."""
        peer = scope["client"][0] if scope.get("client") else None
        if peer and self._parse(peer)[1]:
            return False
        return any(name in _FORWARDING_HEADERS for name, _ in scope["headers"])

    def of_scope(self, scope: Scope) -> str:
        peer = scope["client"][0] if scope.get("client") else None
        lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return self.client(peer, ",".join(lines) if lines else None)
