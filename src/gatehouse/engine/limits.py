"""Which limit applies to a request, and whose count it enters (reference 1, Rate limiting on the platform).

Order, first match decides:

1.  `GET /health` and OPTIONS: none. Kill switches, of callers who may engage and release them: none.
2.  Login, register, refresh and the health probes: their limit, by address, whoever calls.
3.  No caller, or one whose credential failed: the path's limit, by address.
4.  Scans of a caller whose organization has `scan_rate_limit_rpm`: that.
5.  Trying DLP rules out, exempt admins and `unlimited` clients apart: the path's limit, whoever calls.
6.  OAuth clients: their tier's limit; `unlimited` has none. SCIM tokens and outposts: that of `premium`.
7.  Admins: none with `RATE_LIMIT_ADMIN_EXEMPT`.
8.  Users of an organization with `custom_rate_limit_rpm`: that.
9.  Admins: `RATE_LIMIT_ADMIN_RPM`.
10. Other users: the path's limit.

The path's limit is found in the table of tiers, else it is the general one. A tier of the table counts by itself, under
`{client_key}|{tier}`: ten dry runs a minute are ten, however many other requests the caller made, and they take nothing
from the 60. All else of a caller is one count, under `{client_key}` alone.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import Final, Protocol

import msgspec

from gatehouse.engine.limit_table import Entry, LimitTable
from gatehouse.foundation.identity import Caller, CallerKind, Role
from gatehouse.foundation.settings import Settings

LOGIN: Final = "/api/auth/login"
SCAN: Final = "/v1/scan"
LOGIN_PER_EMAIL: Final = 10

#: Requests a minute by a client's `rate_limit_tier`; None is no check.
CLIENT_TIERS: Final[dict[str, int | None]] = {"standard": 1000, "premium": 5000, "unlimited": None}

_BY_ADDRESS: Final = frozenset(
    {LOGIN, "/api/auth/register", "/api/auth/refresh", "/api/health/live", "/api/health/ready", "/api/health/startup"}
)
#: Costly, and called by administrators and machines alone: their own limits would leave no place for the path's.
_FOR_EVERYBODY: Final = frozenset({("POST", "/api/admin/dlp-rules/test")})
#: Limited by their tier; a SCIM token's and an outpost's is `premium`.
_MACHINES: Final = frozenset({CallerKind.OAUTH_CLIENT, CallerKind.SCIM, CallerKind.OUTPOST})

#: An administrator's emergency calls (`gatehouse.platform.routing.kill_switch.routes`).
_KILL_SWITCH: Final = re.compile(r"/api/v1/admin/kill-switch/(?:providers|models)/[^/]+/(?:disable|enable)")

#: A path longer than this is looked up anew each time: the cache's size must not be the client's choice.
_CACHED_PATH: Final = 256


class Rule(msgspec.Struct, frozen=True, gc=False):
    """`limit` requests a minute of `key`. `tier` is the limit's name for the client: `general`, `admin`, `enterprise`,
    `login`, an OAuth client's `standard` or `premium`, or the table's entry, for example `/api/auth/register`."""

    key: str
    limit: int
    tier: str


class _Found(msgspec.Struct, frozen=True, gc=False):
    """What a method and a path say, whoever calls."""

    entry: Entry
    by_address: bool
    #: what the entry's own count adds to the client key; empty for the general limit
    suffix: str
    #: a call that is not limited for callers who administer the organization
    emergency: bool
    scan: bool
    #: the path's limit holds for administrators and machines too
    for_everybody: bool


class RateLimits(Protocol):
    def resolve(self, method: str, path: str, caller: Caller | None, client_address: str) -> Rule | None:
        """None: not limited. `method` in upper case; `caller` None where there is none, or its credential failed."""


class Limits:
    """The platform's. Built once at load. Raises `BadSettings` naming the faults of `RATE_LIMIT_TIERS`."""

    def __init__(self, settings: Settings) -> None:
        self._table = LimitTable.build(settings.rate_limit_requests_per_minute, settings.rate_limit_tiers)
        self._admin_rpm = settings.rate_limit_admin_rpm
        self._admin_exempt = settings.rate_limit_admin_exempt
        self._remembered = lru_cache(maxsize=4096)(self._find)

    def resolve(self, method: str, path: str, caller: Caller | None, client_address: str) -> Rule | None:
        found = self._remembered(method, path) if len(path) <= _CACHED_PATH else self._find(method, path)
        if found is None:
            return None
        entry = found.entry
        if caller is None or found.by_address:
            return Rule(address_key(client_address) + found.suffix, entry.limit, entry.tier)
        if found.emergency and _administers(caller):
            return None
        key = caller.rate_key or address_key(client_address)
        if found.scan and caller.scan_rate_limit_rpm:
            return Rule(f"{key}|scan", caller.scan_rate_limit_rpm, "scan")
        own = Rule(key + found.suffix, entry.limit, entry.tier)
        if caller.kind in _MACHINES:
            tier = caller.rate_limit_tier if caller.rate_limit_tier in CLIENT_TIERS else "standard"
            limit = CLIENT_TIERS[tier]
            return None if limit is None else own if found.for_everybody else Rule(key, limit, tier)
        admin = caller.role is Role.ADMIN
        if admin and self._admin_exempt:
            return None
        if found.for_everybody:
            return own
        if caller.custom_rate_limit_rpm:
            return Rule(key, caller.custom_rate_limit_rpm, "enterprise")
        if admin:
            return Rule(key, self._admin_rpm, "admin")
        return own

    def _find(self, method: str, path: str) -> _Found | None:
        path = path.rstrip("/") or "/"
        if method == "OPTIONS" or (method == "GET" and path == "/health"):
            return None
        entry = self._table.find(method, path)
        return _Found(
            entry,
            by_address=path in _BY_ADDRESS or entry.path in _BY_ADDRESS,
            suffix="" if entry is self._table.general else f"|{entry.tier}",
            for_everybody=(entry.method, entry.path) in _FOR_EVERYBODY,
            emergency=method == "POST" and _KILL_SWITCH.fullmatch(path) is not None,
            scan=path == SCAN,
        )


def _administers(caller: Caller) -> bool:
    """Whether the caller may engage a kill switch: an administrator, or an OAuth client of the organization with
    `admin:write`."""
    administrator = caller.role is Role.ADMIN or caller.kind is CallerKind.OAUTH_CLIENT
    return administrator and caller.tenant_id is not None and caller.has_scope("admin:write")


def login_rule(email: str) -> Rule:
    """Guesses at one account, from wherever they come (reference 1, Rate limiting on the platform, 6)."""
    return Rule(f"login:{email.strip().lower()}", LOGIN_PER_EMAIL, "login")


@lru_cache(maxsize=8192)
def address_key(client_address: str) -> str:
    """`ip:<address>`. An IPv6 address counts with its /64, which is the least that a subscriber is given and may change
    addresses in; one that only wraps an IPv4 address counts as that."""
    try:
        address = ip_address(client_address.partition("%")[0])
    except ValueError:
        # A listener on a socket file has no addresses.
        return f"ip:{client_address[:64] or 'unknown'}"
    if isinstance(address, IPv4Address):
        return f"ip:{address}"
    if address.ipv4_mapped is not None:
        return f"ip:{address.ipv4_mapped}"
    return f"ip:{ip_address(int(address) >> 64 << 64)}/64"
