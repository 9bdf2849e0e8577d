"""Checks that a caller grants only rights that it has.

A user with the role admin may grant every scope and tier, because both apply inside the organization only, where an
admin may do everything. A machine (an OAuth client, or an API key with scopes) may grant only rights that it has. It
may neither enable a client that has more rights, nor rotate its secret.
"""

from collections.abc import Iterable

from gatehouse.engine.rate_limits.selection import CLIENT_TIERS
from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.platform.access.oauth_clients.errors import GrantExceeded

#: In ascending order.
_TIERS = tuple(CLIENT_TIERS)


def check(caller: Caller, *, scopes: Iterable[str] = (), tier: str | None = None) -> None:
    """Check that the caller may grant these scopes and this tier. Raises `GrantExceeded`."""
    missing = sorted(scope for scope in scopes if not caller.has_scope(scope))
    if missing:
        raise GrantExceeded(f"Your credential cannot give scopes that it lacks: {', '.join(missing)}.")
    if tier is not None and caller.kind is CallerKind.OAUTH_CLIENT and _rank(tier) > _rank(caller.rate_limit_tier):
        raise GrantExceeded(f"Your credential cannot give the rate limit tier {tier}, which is above its own.")


def _rank(tier: str) -> int:
    """Return the tier's rank. Unknown tiers count as standard."""
    return _TIERS.index(tier) if tier in _TIERS else 0
