"""Where a URL leads."""

import base64
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from gatehouse.foundation.egress import EgressGuard
from gatehouse.foundation.egress_policy import EgressPolicy
from gatehouse.foundation.outbound import ConnectFailed
from gatehouse.foundation.outbound.proxies import environment_proxy

#: ASCII that a request target may hold as it is; whatever else is there is sent percent-encoded.
_TARGET: Final = "%/?:@!$&'()*+,;=-._~[]"


class Proxy(NamedTuple):
    host: str
    port: int
    tls: bool
    #: the value of Proxy-Authorization
    credentials: str | None


class Origin(NamedTuple):
    """What connections are shared by, and a provider's calls counted by: one proxy's providers are still many."""

    host: str
    port: int
    tls: bool
    proxy: Proxy | None
    #: what the addresses of `host` are judged by: a connection is never shared with calls that may go less far
    bounds: EgressPolicy = "private"


@dataclass(frozen=True, slots=True)
class Route:
    """`start` is a request's head behind the method: target, version, `Host`, and what a proxy asks for."""

    origin: Origin
    start: str = field(repr=False)


def find_route(url: str, guard: EgressGuard, egress: EgressPolicy | None = None) -> Route:
    """`egress`: see `OutboundRequest`. Raises `UnsafeUrl`, and `ConnectFailed` for a proxy whose URL makes no sense."""
    safe = guard.provider_url(url, egress)
    tls = safe.scheme == "https"
    named = environment_proxy(safe.scheme, safe.host)
    proxy = _proxy(named) if named else None
    origin = Origin(safe.host, safe.port, tls, proxy, safe.bounds)
    authority = authority_of(origin, explicit=safe.port != (443 if tls else 80))
    parts = urlsplit(safe.url)
    target = quote(f"{parts.path}?{parts.query}" if parts.query else parts.path, safe=_TARGET)
    start = f" {target} HTTP/1.1\r\nHost: {authority}\r\n"
    if proxy is not None and not tls:
        start = f" http://{authority}{start[1:]}"
        if proxy.credentials is not None:
            start += f"Proxy-Authorization: {proxy.credentials}\r\n"
    return Route(origin, start)


def authority_of(origin: Origin, *, explicit: bool) -> str:
    """`host` or `host:port`, an IPv6 address in brackets."""
    host = origin.host
    if ":" in host and isinstance(ip_address(host), IPv6Address):
        host = f"[{host}]"
    return f"{host}:{origin.port}" if explicit else host


def _proxy(named: str) -> Proxy:
    try:
        parts = urlsplit(named if "://" in named else f"http://{named}")
        port = parts.port
    except ValueError:
        raise ConnectFailed from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConnectFailed
    tls = parts.scheme == "https"
    credentials = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.hostname, port or (443 if tls else 80), tls, credentials)
