"""Which limit applies to a request, and whose count it enters (reference 1, Rate limiting on the platform).

Order, first match decides:

1.  `GET /health` and OPTIONS: none.
2.  Login, register, refresh and the health probes: their limit, by address, whoever calls.
3.  No caller, or one whose credential failed: the path's limit, by address.
4.  OAuth clients: their tier's limit; `unlimited` has none. SCIM tokens and outposts: that of `premium`.
5.  Admins: none with `RATE_LIMIT_ADMIN_EXEMPT`.
6.  Users of an organization with `custom_rate_limit_rpm`: that.
7.  Admins: `RATE_LIMIT_ADMIN_RPM`.
8.  Other users: the path's limit.

The path's limit is found in the table of tiers, else it is the general one. A tier of the table counts by itself, under
`{client_key}|{tier}`: ten dry runs a minute are ten, however many other requests the caller made, and they take nothing
from the 60. All else of a caller is one count, under `{client_key}` alone.
"""

from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import Final, Protocol

import msgspec

from gatehouse.engine.limit_table import Entry, LimitTable
from gatehouse.foundation.identity import Caller, CallerKind, Role
from gatehouse.foundation.settings import Settings

LOGIN: Final = "/api/auth/login"
LOGIN_PER_EMAIL: Final = 10

#: Requests a minute by a client's `rate_limit_tier`; None is no check.
CLIENT_TIERS: Final[dict[str, int | None]] = {"standard": 1000, "premium": 5000, "unlimited": None}

_BY_ADDRESS: Final = frozenset(
    {LOGIN, "/api/auth/register", "/api/auth/refresh", "/api/health/live", "/api/health/ready", "/api/health/startup"}
)
#: Limited by their tier; a SCIM token's and an outpost's is `premium`.
_MACHINES: Final = frozenset({CallerKind.OAUTH_CLIENT, CallerKind.SCIM, CallerKind.OUTPOST})

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
        key = caller.rate_key or address_key(client_address)
        if caller.kind in _MACHINES:
            tier = caller.rate_limit_tier if caller.rate_limit_tier in CLIENT_TIERS else "standard"
            limit = CLIENT_TIERS[tier]
            return None if limit is None else Rule(key, limit, tier)
        admin = caller.role is Role.ADMIN
        if admin and self._admin_exempt:
            return None
        if caller.custom_rate_limit_rpm:
            return Rule(key, caller.custom_rate_limit_rpm, "enterprise")
        if admin:
            return Rule(key, self._admin_rpm, "admin")
        return Rule(key + found.suffix, entry.limit, entry.tier)

    def _find(self, method: str, path: str) -> _Found | None:
        path = path.rstrip("/") or "/"
        if method == "OPTIONS" or (method == "GET" and path == "/health"):
            return None
        entry = self._table.find(method, path)
        general = entry is self._table.general
        return _Found(entry, path in _BY_ADDRESS or entry.path in _BY_ADDRESS, "" if general else f"|{entry.tier}")


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
