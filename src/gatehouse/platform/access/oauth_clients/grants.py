"""Nobody hands out what they lack.

A person with the role admin may give every scope and tier there is: both bind inside the organization, where an admin
may do all of it anyway. A machine (an OAuth client, or an API key with scopes) may give what it has itself and no more,
and neither open nor take over a client that can do more than it can.
"""

from collections.abc import Iterable

from gatehouse.engine.limits import CLIENT_TIERS
from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.platform.access.oauth_clients.errors import GrantExceeded

#: From little to much.
_TIERS = tuple(CLIENT_TIERS)


def check(caller: Caller, *, scopes: Iterable[str] = (), tier: str | None = None) -> None:
    """Raises `GrantExceeded` where the caller may not give these scopes, or this tier."""
    lacking = sorted(scope for scope in scopes if not caller.has_scope(scope))
    if lacking:
        raise GrantExceeded(f"Your credential cannot give scopes that it lacks: {', '.join(lacking)}.")
    if tier is not None and caller.kind is CallerKind.OAUTH_CLIENT and _rank(tier) > _rank(caller.rate_limit_tier):
        raise GrantExceeded(f"Your credential cannot give the rate limit tier {tier}, which is above its own.")


def _rank(tier: str) -> int:
    """Unknown values count as standard (reference 1, Rate limiting, 7)."""
    return _TIERS.index(tier) if tier in _TIERS else 0
