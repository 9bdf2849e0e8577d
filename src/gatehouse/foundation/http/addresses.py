"""The client's address. `X-Forwarded-For` is believed from `TRUSTED_PROXIES` alone (decisions 3): anyone can send it.

Each proxy appends who called it, so the list is read from its end: the first address that is no trusted proxy is the
client. What stands left of it was written by the client itself.
"""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from starlette.types import Scope

from gatehouse.foundation.networks import network
from gatehouse.foundation.settings import BadSettings

#: Stands for a peer without an address (a Unix socket).
NOWHERE: Final = "0.0.0.0"  # noqa: S104  # not listened on

#: A chain of more proxies than this is an attack; what lies beyond is not read.
_MAX_HOPS: Final = 20
_CACHED_PEERS: Final = 4096
#: Headers that proxies add.
_FORWARDING: Final = frozenset({b"x-forwarded-for", b"forwarded", b"via", b"x-real-ip"})


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """An address as proxies and sockets write it: with a port, brackets or a zone. IPv4 in IPv6 becomes IPv4."""
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
    """`trusted` are CIDRs. Raises `BadSettings` for anything else."""

    def __init__(self, trusted: Iterable[str]) -> None:
        try:
            networks = tuple(network(cidr, strict=True) for cidr in trusted)
        except ValueError as error:
            raise BadSettings(f"TRUSTED_PROXIES: {error}") from None

        @lru_cache(maxsize=_CACHED_PEERS)
        def look(text: str) -> tuple[str | None, bool]:
            """The address in its normal form, None for nonsense, and whether it is a trusted proxy."""
            address = parse_address(text) if len(text) < 64 else None
            if address is None:
                return None, False
            return str(address), any(address in each for each in networks)

        self._look = look

    def client(self, peer: str | None, forwarded_for: str | None) -> str:
        """`peer` is who holds the connection; `forwarded_for` the header's lines joined by commas, or None."""
        known, trusted = self._look(peer) if peer else (None, False)
        if not trusted or not forwarded_for:
            return known or NOWHERE
        for hop in reversed(forwarded_for.rsplit(",", _MAX_HOPS)[-_MAX_HOPS:]):
            address, trusted = self._look(hop)
            if address is None:
                break  # the proxy that let nonsense through is the last one known
            known = address
            if not trusted:
                break
        return known or NOWHERE

    def unknown_origin(self, scope: Scope) -> bool:
        """Whether a proxy that is not trusted passed the request on: the peer's address is then not the client's."""
        peer = scope["client"][0] if scope.get("client") else None
        if peer and self._look(peer)[1]:
            return False
        return any(name in _FORWARDING for name, _ in scope["headers"])

    def of_scope(self, scope: Scope) -> str:
        peer = scope["client"][0] if scope.get("client") else None
        lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return self.client(peer, ",".join(lines) if lines else None)
