"""Determines a client's address. Any client can send `X-Forwarded-For`, so only proxies in `TRUSTED_PROXIES` are
trusted to set it.

Each proxy appends the address of its peer. So the list is read from its end: the first address that is not a trusted
proxy is the client's. The client may have sent the addresses to the left of its own.
"""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from starlette.types import Scope

from gatehouse.foundation.egress.networks import network
from gatehouse.foundation.settings import BadSettings

#: stands for the address of a peer that has none, such as a Unix socket
NO_ADDRESS: Final = "0.0.0.0"  # noqa: S104  # not listened on

#: maximum number of addresses of `X-Forwarded-For` that are read, counted from its end
_MAX_HOPS: Final = 20
_CACHED_PEERS: Final = 4096
#: headers that proxies add
_FORWARDING_HEADERS: Final = frozenset({b"x-forwarded-for", b"forwarded", b"via", b"x-real-ip"})


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Returns an address as proxies and sockets write it, with or without port, brackets or zone, or None if invalid.
    An IPv4-mapped IPv6 address becomes IPv4."""
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
    """Determines clients' addresses. `trusted` lists the CIDRs of trusted proxies. Raises `BadSettings` for a text that
    is not a CIDR."""

    def __init__(self, trusted: Iterable[str]) -> None:
        try:
            networks = tuple(network(cidr, strict=True) for cidr in trusted)
        except ValueError as error:
            raise BadSettings(f"TRUSTED_PROXIES: {error}") from None

        @lru_cache(maxsize=_CACHED_PEERS)
        def parse(text: str) -> tuple[str | None, bool]:
            """Returns the normalized address, or None if it is invalid, and whether it is a trusted proxy."""
            address = parse_address(text) if len(text) < 64 else None
            if address is None:
                return None, False
            return str(address), any(address in network_range for network_range in networks)

        self._parse = parse

    def client(self, peer: str | None, forwarded_for: str | None) -> str:
        """Returns the client's address. `peer` is the address of the connection's peer, `forwarded_for` the header's
        lines joined by commas, or None."""
        client, trusted = self._parse(peer) if peer else (None, False)
        if not trusted or not forwarded_for:
            return client or NO_ADDRESS
        for hop in reversed(forwarded_for.rsplit(",", _MAX_HOPS)[-_MAX_HOPS:]):
            address, trusted = self._parse(hop)
            if address is None:
                break  # an invalid address: the client is the proxy that added it, the last valid address
            client = address
            if not trusted:
                break
        return client or NO_ADDRESS

    def unknown_origin(self, scope: Scope) -> bool:
        """Returns whether an untrusted proxy forwarded the request, so that the peer's address is not the client's."""
        peer = scope["client"][0] if scope.get("client") else None
        if peer and self._parse(peer)[1]:
            return False
        return any(name in _FORWARDING_HEADERS for name, _ in scope["headers"])

    def of_scope(self, scope: Scope) -> str:
        """Returns the client's address of an ASGI request."""
        peer = scope["client"][0] if scope.get("client") else None
        lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return self.client(peer, ",".join(lines) if lines else None)
