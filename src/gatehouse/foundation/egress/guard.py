"""The egress guard for URLs from customers: webhooks, alerts, SIEM, providers (docs/security.md).

A name is resolved once, all its addresses are checked, and the connection uses exactly the checked addresses, so that
DNS rebinding has no effect. Callers must not follow redirects.

`EGRESS_ALLOWLIST` permits ranges. `EGRESS_POLICY` restricts the addresses of organizations' own providers. Cloud
metadata addresses are always refused.
"""

import asyncio
import re
import socket
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

from gatehouse.foundation.egress.resolver import look_up
from gatehouse.foundation.errors import BadRequest
from gatehouse.foundation.settings import BadSettings, EgressPolicy, stricter

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_MAX_URL_CHARACTERS: Final = 2048
_RESOLVE_SECONDS: Final = 5.0

#: the part of a URL between `//` and the path; after brackets only a port
_authority = re.compile(r"[^\[\]]*|\[[^\[\]]*\](:[0-9]*)?").fullmatch
_label = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?").fullmatch
#: matches a number that a system's resolver may read as a one-part IPv4 address: decimal, octal or hexadecimal
_number = re.compile(r"[0-9]+|0x[0-9a-f]*").fullmatch

_METADATA: Final = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # most clouds
        "169.254.170.2",  # container credentials
        "169.254.170.23",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
    )
)
_METADATA_NAMES: Final = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})
_LINK_LOCAL: Final = (ip_network("169.254.0.0/16"), ip_network("fe80::/10"))
_CARRIER_GRADE_NAT: Final = ip_network("100.64.0.0/10")
#: reserved ranges that the standard library does not list, mainly tunnels, which can contain an internal IPv4 address
_MORE_RESERVED: Final = tuple(
    ip_network(cidr)
    for cidr in (
        "192.88.99.0/24",
        "2002::/16",  # 6to4
        "2001::/32",  # Teredo
        "64:ff9b:1::/48",  # NAT64 of a local network
        "fec0::/10",
        "100::/64",
        "3fff::/20",  # documentation
    )
)
_NAT64: Final = ip_network("64:ff9b::/96")


class UnsafeUrl(BadRequest):
    """A refused URL. `reason` is a short text for a delivery's `last_error` and for logs."""

    code = "unsafe_url"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"url: {reason}")


class MalformedUrl(UnsafeUrl):
    code = "malformed_url"


class BlockedAddress(UnsafeUrl):
    code = "blocked_address"


class HostNotFound(UnsafeUrl):
    code = "host_not_found"


@dataclass(frozen=True, slots=True)
class SafeUrl:
    """A URL that the guard has permitted. It is rebuilt from its parts, so that every parser reads the same host.

    The addresses of its host are not yet checked: `EgressGuard.resolve` checks them.
    """

    url: str
    scheme: str
    host: str
    port: int
    bounds: EgressPolicy

    def __str__(self) -> str:
        return self.url


class EgressGuard:
    """Checks URLs and addresses. `allowlist` has CIDRs; `policy` restricts the addresses of organizations' own
    providers. Raises `BadSettings`."""

    def __init__(self, allowlist: Iterable[str] = (), policy: EgressPolicy = "private") -> None:
        self._policy = policy
        try:
            self._allowed: tuple[Network, ...] = tuple(ip_network(cidr) for cidr in allowlist)
        except ValueError as error:
            raise BadSettings(f"EGRESS_ALLOWLIST: {error}") from None

    def check(self, url: str, *, https_only: bool = True) -> SafeUrl:
        """Checks a receiver's URL without a DNS look-up. Raises `MalformedUrl`, `BlockedAddress`."""
        return self._check_url(url, https_only=https_only, bounds="public")

    def provider_url(self, url: str, egress: EgressPolicy | None = None) -> SafeUrl:
        """Checks a provider's base URL. The URL may use plain HTTP and a private address, as for a local runtime, but
        no metadata address. `egress` is None for an address that the operator has set. For an address that the
        organization has set, `egress` is the organization's policy; the stricter one of this policy and the
        deployment's policy applies."""
        return self._check_url(url, https_only=False, bounds=self.bounds(egress))

    def bounds(self, egress: EgressPolicy | None) -> EgressPolicy:
        """Returns the policy for a provider's address; see `provider_url`."""
        return "private" if egress is None else stricter(self._policy, egress)

    async def resolve(self, url: SafeUrl) -> tuple[Address, ...]:
        """Returns all addresses of the host. Raises `HostNotFound`, or `BlockedAddress` if any of them is refused."""
        return await self.addresses(url.host, url.port, bounds=url.bounds)

    async def addresses(self, host: str, port: int, *, bounds: EgressPolicy) -> tuple[Address, ...]:
        """Returns all addresses of a host name or literal address. Raises `HostNotFound`, or `BlockedAddress` if any of
        them is refused."""
        if (literal := _literal(host)) is not None:
            self._check_address(literal, bounds)
            return (literal,)
        _refuse_names(host)
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                addresses = tuple(map(ip_address, await look_up(host, port)))
        except (OSError, TimeoutError):
            raise HostNotFound("the host name cannot be resolved") from None
        if not addresses:
            raise HostNotFound("the host name has no address")
        for address in addresses:
            self._check_address(address, bounds)
        return addresses

    def _check_url(self, url: str, *, https_only: bool, bounds: EgressPolicy) -> SafeUrl:
        if len(url) > _MAX_URL_CHARACTERS:
            raise MalformedUrl(f"longer than {_MAX_URL_CHARACTERS} characters")
        # Parsers treat these characters differently, so that two parsers may read different hosts.
        if "\\" in url or any(unicodedata.category(character)[0] in "CZ" for character in url):
            raise MalformedUrl("holds a space, a backslash or a control character")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise MalformedUrl("not a URL") from None
        if parts.scheme not in {"https", "http"} or (https_only and parts.scheme != "https"):
            raise MalformedUrl("must begin with https://" if https_only else "must begin with https:// or http://")
        if not _authority(parts.netloc):
            raise MalformedUrl("not a URL")
        if "@" in parts.netloc:
            raise MalformedUrl("must not hold a user name or password")
        if port == 0:
            raise MalformedUrl("port 0 does not exist")
        host = _host(parts.hostname or "")
        literal = _literal(host)
        if literal is not None:
            self._check_address(literal, bounds)
        else:
            _refuse_names(host, local_allowed=bounds == "private" or bool(self._allowed))
        url_host = f"[{host}]" if isinstance(literal, IPv6Address) else host
        authority = url_host if port is None else f"{url_host}:{port}"
        path = parts.path or "/"
        query = f"?{parts.query}" if parts.query else ""
        default_port = 443 if parts.scheme == "https" else 80
        return SafeUrl(f"{parts.scheme}://{authority}{path}{query}", parts.scheme, host, port or default_port, bounds)

    def _check_address(self, address: Address, bounds: EgressPolicy) -> None:
        address = _without_embedding(address)
        if address in _METADATA:
            raise BlockedAddress("a cloud metadata address")
        if any(address in network for network in self._allowed):
            return
        if bounds == "listed":
            raise BlockedAddress("an address that EGRESS_ALLOWLIST does not name")
        reason = _reason(address)
        if reason is not None and not (bounds == "private" and reason in _PRIVATE_REASONS):
            raise BlockedAddress(reason)


class GuardedResolver(AbstractResolver):
    """A resolver for aiohttp's connector that returns only permitted addresses. aiohttp does not resolve literal
    addresses, so callers must also `check` the URL, and must not follow redirects."""

    def __init__(self, guard: EgressGuard, *, bounds: EgressPolicy = "public") -> None:
        self._guard = guard
        self._bounds: EgressPolicy = bounds

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._guard.addresses(host, port, bounds=self._bounds)
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Does nothing: the resolver has no resources."""


_PRIVATE_REASONS: Final = frozenset(
    {"a private address", "a loopback address", "an unspecified address", "a carrier-grade NAT address"}
)


def _reason(address: Address) -> str | None:
    """Returns why an address is refused, or None for a public address."""
    if any(address in network for network in _LINK_LOCAL):
        return "a link-local address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_unspecified:
        return "an unspecified address"
    if address.is_multicast:
        return "a multicast address"
    if address in _CARRIER_GRADE_NAT:
        return "a carrier-grade NAT address"
    if any(address in network for network in _MORE_RESERVED) or address.is_reserved:
        return "a reserved address"
    if address.is_private:
        return "a private address"
    return None if address.is_global else "a reserved address"


def _without_embedding(address: Address) -> Address:
    """Returns the IPv4 address that an IPv6 address embeds (mapped, or NAT64), else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address


def _host(host: str) -> str:
    """Returns the host in lower-case ASCII without a final dot. Raises `MalformedUrl`."""
    if "%" in host:
        raise MalformedUrl("must not name a network zone")
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        ascii_host = unicodedata.normalize("NFKC", host).encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        raise MalformedUrl("not a host name") from None
    labels = ascii_host.split(".")
    if len(ascii_host) > 253 or not all(map(_label, labels)):
        raise MalformedUrl("not a host name")
    if _number(labels[-1]):
        try:
            return str(IPv4Address(ascii_host))
        except ValueError:
            raise MalformedUrl("an address written as a number; write four decimal parts") from None
    return ascii_host


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _refuse_names(host: str, *, local_allowed: bool = True) -> None:
    """Refuses the names of metadata services and, unless `local_allowed`, of this host. Raises `BlockedAddress`. Other
    names are checked by their addresses."""
    if host in _METADATA_NAMES:
        raise BlockedAddress("a cloud metadata address")
    if not local_allowed and (host == "localhost" or host.endswith(".localhost")):
        raise BlockedAddress("a loopback address")
