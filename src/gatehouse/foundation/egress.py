"""The address guard for URLs that customers give: webhooks, alerts, SIEM, providers.

Reference 3, Webhooks, Delivery rules 3; decisions 7.

A name is resolved once, every address it has is judged, and the connection goes to the addresses that were judged: a
name that answers differently a second later gains nothing. Callers follow no redirects.

`EGRESS_ALLOWLIST` lets ranges through; `EGRESS_POLICY` narrows where organizations' own providers may be. Cloud
metadata addresses are refused whatever they say.
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

from gatehouse.foundation.egress_policy import EgressPolicy, stricter
from gatehouse.foundation.errors import BadRequest
from gatehouse.foundation.lookups import look_up
from gatehouse.foundation.settings import BadSettings

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_MAX_URL_CHARS: Final = 2048
_RESOLVE_SECONDS: Final = 5.0

#: What stands between `//` and the path: behind brackets nothing but a port.
_authority = re.compile(r"[^\[\]]*|\[[^\[\]]*\](:[0-9]*)?").fullmatch
_label = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?").fullmatch
#: What a system's resolver may take for an IPv4 address of one part: decimal, octal or hexadecimal.
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
_CARRIER: Final = ip_network("100.64.0.0/10")
#: Reserved beyond what the standard library knows, above all tunnels: an IPv4 address of the inside hides in them.
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
    """`reason` says what is wrong in a few words, for `last_error` of a delivery and for logs."""

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
    """A URL that the guard let pass, rewritten from its parts: no other parser can read another host into it.

    That its name resolves to permitted addresses is known only after `EgressGuard.resolve`.
    """

    url: str
    scheme: str
    host: str
    port: int
    bounds: EgressPolicy

    def __str__(self) -> str:
        return self.url


class EgressGuard:
    """`allowlist` are CIDRs; `policy` bounds the addresses that organizations give to their providers. Raises
    `BadSettings`."""

    def __init__(self, allowlist: Iterable[str] = (), policy: EgressPolicy = "private") -> None:
        self._policy = policy
        try:
            self._allowed: tuple[Network, ...] = tuple(ip_network(cidr) for cidr in allowlist)
        except ValueError as error:
            raise BadSettings(f"EGRESS_ALLOWLIST: {error}") from None

    def check(self, url: str, *, https_only: bool = True) -> SafeUrl:
        """A receiver's URL. Raises `MalformedUrl`, `BlockedAddress`. Looks up no name."""
        return self._checked(url, https_only=https_only, bounds="public")

    def provider_url(self, url: str, egress: EgressPolicy | None = None) -> SafeUrl:
        """A provider's base URL: it may be private and plain HTTP, as a local runtime is, but no metadata address.
        `egress`: the organization has given the address, and this is its own bound beside the deployment's."""
        return self._checked(url, https_only=False, bounds=self.bounds(egress))

    def bounds(self, egress: EgressPolicy | None) -> EgressPolicy:
        """What holds for a provider's address; see `provider_url`."""
        return "private" if egress is None else stricter(self._policy, egress)

    async def resolve(self, url: SafeUrl) -> tuple[Address, ...]:
        """Every address of the host, all permitted. Raises `HostNotFound`, `BlockedAddress` if a single one is not."""
        return await self.addresses(url.host, url.port, bounds=url.bounds)

    async def addresses(self, host: str, port: int, *, bounds: EgressPolicy) -> tuple[Address, ...]:
        if (literal := _literal(host)) is not None:
            self._judge(literal, bounds)
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
            self._judge(address, bounds)
        return addresses

    def _checked(self, url: str, *, https_only: bool, bounds: EgressPolicy) -> SafeUrl:
        if len(url) > _MAX_URL_CHARS:
            raise MalformedUrl(f"longer than {_MAX_URL_CHARS} characters")
        # Parsers disagree about these, and what they disagree about is the host.
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
            self._judge(literal, bounds)
        else:
            _refuse_names(host, local_allowed=bounds == "private" or bool(self._allowed))
        shown = f"[{host}]" if isinstance(literal, IPv6Address) else host
        authority = shown if port is None else f"{shown}:{port}"
        path = parts.path or "/"
        query = f"?{parts.query}" if parts.query else ""
        standard = 443 if parts.scheme == "https" else 80
        return SafeUrl(f"{parts.scheme}://{authority}{path}{query}", parts.scheme, host, port or standard, bounds)

    def _judge(self, address: Address, bounds: EgressPolicy) -> None:
        address = _plain(address)
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
    """For aiohttp's connector: connections go only where the guard says. aiohttp asks no resolver about a literal
    address, so `check` the URL too, and follow no redirects."""

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
        """Nothing is held."""


_PRIVATE_REASONS: Final = frozenset(
    {"a private address", "a loopback address", "an unspecified address", "a carrier-grade NAT address"}
)


def _reason(address: Address) -> str | None:
    """Why an address is out of bounds, or None for one on the open internet."""
    if any(address in network for network in _LINK_LOCAL):
        return "a link-local address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_unspecified:
        return "an unspecified address"
    if address.is_multicast:
        return "a multicast address"
    if address in _CARRIER:
        return "a carrier-grade NAT address"
    if any(address in network for network in _MORE_RESERVED) or address.is_reserved:
        return "a reserved address"
    if address.is_private:
        return "a private address"
    return None if address.is_global else "a reserved address"


def _plain(address: Address) -> Address:
    """The IPv4 address behind an IPv6 one that only translates it: mapped, or NAT64."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address


def _host(host: str) -> str:
    """Lower case, ASCII, without a final dot. Raises `MalformedUrl`."""
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
    """Names that need no look-up. Others are judged by their addresses."""
    if host in _METADATA_NAMES:
        raise BlockedAddress("a cloud metadata address")
    if not local_allowed and (host == "localhost" or host.endswith(".localhost")):
        raise BlockedAddress("a loopback address")
