"""Selects the rate limit of a request, and the counter that counts the request (docs/rate-limits.md).

The first matching rule decides:

1.  `GET /health` and OPTIONS: no limit. Kill switches, for callers who may engage and release them: no limit.
2.  Login, register, refresh and the health probes: the path's limit, by address, for every caller.
3.  No caller, or a credential that failed: the path's limit, by address.
4.  Scans of a caller whose organization has `scan_rate_limit_rpm`: that limit.
5.  Dry runs of DLP rules and test mails, except for exempt admins and `unlimited` clients: the path's limit.
6.  OAuth clients: the limit of their tier; `unlimited` has none. SCIM tokens and outposts: the limit of `premium`.
7.  Admins: no limit with `RATE_LIMIT_ADMIN_EXEMPT`.
8.  Users of an organization with `custom_rate_limit_rpm`: that limit.
9.  Admins: `RATE_LIMIT_ADMIN_RPM`.
10. Other users: the path's limit.

The path's limit is the limit of its entry in the table, or else the general limit. The limit of an entry has its own
counter, `{client_key}|{entry}`. For example, ten dry runs a minute are allowed, however many other requests the caller
sends, and they do not count against the limit of the other requests. The scans of rule 4 have the counter
`{client_key}|scan`. All other requests of a caller share the counter `{client_key}`.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import Final, Protocol

import msgspec

from gatehouse.engine.rate_limits.table import LimitEntry, LimitTable
from gatehouse.foundation.identity import Caller, CallerKind, Role
from gatehouse.foundation.settings import Settings

LOGIN: Final = "/api/auth/login"
SCAN: Final = "/v1/scan"
LOGIN_PER_EMAIL: Final = 10

#: Requests a minute by a client's `rate_limit_tier`. None means no limit.
CLIENT_TIERS: Final[dict[str, int | None]] = {"standard": 1000, "premium": 5000, "unlimited": None}

_PATHS_BY_ADDRESS: Final = frozenset(
    {LOGIN, "/api/auth/register", "/api/auth/refresh", "/api/health/live", "/api/health/ready", "/api/health/startup"}
)
#: Operations whose limit applies to every caller, because they are expensive or act on other systems. Only
#: administrators and machines call them. For other operations, the limit of such a caller replaces the path's limit.
_FOR_ALL_CALLERS: Final = frozenset({("POST", "/api/admin/dlp-rules/test"), ("POST", "/api/admin/mail/test")})
#: Kinds of callers that are limited by a tier. SCIM tokens and outposts have the tier `premium`.
_MACHINES: Final = frozenset({CallerKind.OAUTH_CLIENT, CallerKind.SCIM, CallerKind.OUTPOST})

#: Paths of the kill switches (`gatehouse.platform.routing.kill_switch.routes`, `gatehouse.platform.mcp.switching`).
_KILL_SWITCH: Final = re.compile(
    r"/api/v1/admin/(?:kill-switch/(?:providers|models)/[^/]+|mcp/servers/[^/]+(?:/tools/[^/]+)?)/(?:disable|enable)"
)

#: Longest path that is cached. It bounds the memory of the cache, because clients choose the paths.
_MAX_CACHED_PATH_CHARACTERS: Final = 256


class LimitRule(msgspec.Struct, frozen=True, gc=False):
    """A limit of `limit` requests a minute for `key`. `tier` is the name of the limit in a 429: `general`, `admin`,
    `enterprise`, `scan`, `login`, an OAuth client's `standard` or `premium`, or the entry of the table, for example
    `/api/auth/register`."""

    key: str
    limit: int
    tier: str


class _PathRule(msgspec.Struct, frozen=True, gc=False):
    """The rule of a method and a path, independent of the caller."""

    entry: LimitEntry
    by_address: bool
    #: suffix of the client key for the entry's own counter; empty for the general limit, which uses the shared counter
    suffix: str
    #: whether calls of callers who may engage a kill switch have no limit
    emergency: bool
    scan: bool
    #: whether the path's limit also applies to administrators and machines
    for_all_callers: bool


class RateLimits(Protocol):
    def resolve(self, method: str, path: str, caller: Caller | None, client_address: str) -> LimitRule | None:
        """Return the limit of a request, or None if it has none. `method` is in upper case. `caller` is None if the
        request has no credential, or if the credential failed."""


class PathLimits:
    """The rate limits of the platform, built once at the start. Raises `BadSettings` with the faults of
    `RATE_LIMIT_TIERS`."""

    def __init__(self, settings: Settings) -> None:
        self._table = LimitTable.build(settings.rate_limit_requests_per_minute, settings.rate_limit_tiers)
        self._admin_rpm = settings.rate_limit_admin_rpm
        self._admin_exempt = settings.rate_limit_admin_exempt
        self._cached_find = lru_cache(maxsize=4096)(self._find)

    def resolve(self, method: str, path: str, caller: Caller | None, client_address: str) -> LimitRule | None:
        path_rule = (
            self._cached_find(method, path) if len(path) <= _MAX_CACHED_PATH_CHARACTERS else self._find(method, path)
        )
        if path_rule is None:
            return None
        entry = path_rule.entry
        if caller is None or path_rule.by_address:
            return LimitRule(address_key(client_address) + path_rule.suffix, entry.limit, entry.tier)
        if path_rule.emergency and _administers(caller):
            return None
        key = caller.rate_key or address_key(client_address)
        if path_rule.scan and caller.scan_rate_limit_rpm:
            return LimitRule(f"{key}|scan", caller.scan_rate_limit_rpm, "scan")
        own = LimitRule(key + path_rule.suffix, entry.limit, entry.tier)
        if caller.kind in _MACHINES:
            tier = caller.rate_limit_tier if caller.rate_limit_tier in CLIENT_TIERS else "standard"
            limit = CLIENT_TIERS[tier]
            return None if limit is None else own if path_rule.for_all_callers else LimitRule(key, limit, tier)
        admin = caller.role is Role.ADMIN
        if admin and self._admin_exempt:
            return None
        if path_rule.for_all_callers:
            return own
        if caller.custom_rate_limit_rpm:
            return LimitRule(key, caller.custom_rate_limit_rpm, "enterprise")
        if admin:
            return LimitRule(key, self._admin_rpm, "admin")
        return own

    def _find(self, method: str, path: str) -> _PathRule | None:
        path = path.rstrip("/") or "/"
        if method == "OPTIONS" or (method == "GET" and path == "/health"):
            return None
        entry = self._table.find(method, path)
        return _PathRule(
            entry,
            by_address=path in _PATHS_BY_ADDRESS or entry.path in _PATHS_BY_ADDRESS,
            suffix="" if entry is self._table.general else f"|{entry.tier}",
            for_all_callers=(entry.method, entry.path) in _FOR_ALL_CALLERS,
            emergency=method == "POST" and _KILL_SWITCH.fullmatch(path) is not None,
            scan=path == SCAN,
        )


def _administers(caller: Caller) -> bool:
    """Return whether the caller may engage a kill switch: an administrator or an OAuth client, of an organization, with
    the scope `admin:write`."""
    administrator = caller.role is Role.ADMIN or caller.kind is CallerKind.OAUTH_CLIENT
    return administrator and caller.tenant_id is not None and caller.has_scope("admin:write")


def login_rule(email: str) -> LimitRule:
    """Return the limit of password attempts for one account, from all addresses together (docs/rate-limits.md)."""
    return LimitRule(f"login:{email.strip().lower()}", LOGIN_PER_EMAIL, "login")


@lru_cache(maxsize=8192)
def address_key(client_address: str) -> str:
    """Return `ip:<address>`. An IPv6 address is treated as its /64 network, the smallest network that a subscriber
    receives, within which addresses can be changed at will. An IPv4-mapped address is treated as the IPv4 address."""
    try:
        address = ip_address(client_address.partition("%")[0])
    except ValueError:
        # A connection through a Unix socket has no address.
        return f"ip:{client_address[:64] or 'unknown'}"
    if isinstance(address, IPv4Address):
        return f"ip:{address}"
    if address.ipv4_mapped is not None:
        return f"ip:{address.ipv4_mapped}"
    return f"ip:{ip_address(int(address) >> 64 << 64)}/64"
