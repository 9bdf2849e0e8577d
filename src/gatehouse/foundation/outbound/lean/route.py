"""The route of a URL: its origin, proxy, and request target."""

import base64
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound import ConnectFailed
from gatehouse.foundation.outbound.proxies import environment_proxy
from gatehouse.foundation.settings import EgressPolicy

#: characters that are not percent-encoded in a request target
_TARGET_CHARACTERS: Final = "%/?:@!$&'()*+,;=-._~[]"


class OutboundProxy(NamedTuple):
    host: str
    port: int
    tls: bool
    #: the value of Proxy-Authorization
    credentials: str | None


class Origin(NamedTuple):
    """The key by which connections are shared and calls are counted. `host` and `port` are the provider's, even if the
    connection goes to a proxy."""

    host: str
    port: int
    tls: bool
    proxy: OutboundProxy | None
    #: policy for the addresses of `host`; calls under a stricter policy do not share the connection
    bounds: EgressPolicy = "private"


@dataclass(frozen=True, slots=True)
class Route:
    """The route of a URL. `start` is the part of a request's head after the method: target, version, `Host`, and the
    headers for the proxy."""

    origin: Origin
    start: str = field(repr=False)


def find_route(url: str, guard: EgressGuard, egress: EgressPolicy | None = None) -> Route:
    """Returns the route of a URL. `egress` is that of the `OutboundRequest`. Raises `UnsafeUrl`, and `ConnectFailed` if
    the URL of the proxy is invalid."""
    safe = guard.provider_url(url, egress)
    tls = safe.scheme == "https"
    proxy_url = environment_proxy(safe.scheme, safe.host)
    proxy = _proxy(proxy_url) if proxy_url else None
    origin = Origin(safe.host, safe.port, tls, proxy, safe.bounds)
    authority = authority_of(origin, explicit=safe.port != (443 if tls else 80))
    parts = urlsplit(safe.url)
    target = quote(f"{parts.path}?{parts.query}" if parts.query else parts.path, safe=_TARGET_CHARACTERS)
    start = f" {target} HTTP/1.1\r\nHost: {authority}\r\n"
    if proxy is not None and not tls:
        start = f" http://{authority}{start[1:]}"
        if proxy.credentials is not None:
            start += f"Proxy-Authorization: {proxy.credentials}\r\n"
    return Route(origin, start)


def authority_of(origin: Origin, *, explicit: bool) -> str:
    """Returns `host:port` if `explicit`, else `host`. An IPv6 address is in brackets."""
    host = origin.host
    if ":" in host and isinstance(ip_address(host), IPv6Address):
        host = f"[{host}]"
    return f"{host}:{origin.port}" if explicit else host


def _proxy(url: str) -> OutboundProxy:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
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
    return OutboundProxy(parts.hostname, port or (443 if tls else 80), tls, credentials)
