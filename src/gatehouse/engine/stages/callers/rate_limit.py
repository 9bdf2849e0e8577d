"""Counts requests against their rate limit, and refuses requests that exceed it (docs/rate-limits.md). A request whose
authentication failed is counted by its address, with `caller` None."""

import json
from typing import Final, Protocol, TypeAlias, TypeGuard

from gatehouse.engine.exchange import Identified
from gatehouse.engine.ports import Counters, Ports
from gatehouse.engine.rate_limits.selection import (
    LOGIN,
    LimitRule,
    RateLimits,
    login_rule,
)
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.counters import RateDecision, RateState
from gatehouse.foundation.errors import TooManyRequests
from gatehouse.foundation.identity import Caller

#: Length of the longest e-mail address in characters (RFC 5321, 4.5.3.1).
_MAX_EMAIL_CHARACTERS: Final = 254


class LimitedRequest(Protocol):
    """The properties of a request that its rate limit depends on, in addition to the caller. `exchange.Received`
    implements this protocol."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def client_address(self) -> str: ...


class RateLimited(TooManyRequests):
    """The request exceeds its rate limit: 429. `extra` has `tier` and `retry_after` (seconds). `headers` has
    `Retry-After` and the three headers of `RateState`."""

    def __init__(self, rule: LimitRule, taken: RateDecision) -> None:
        wait = taken.retry_after
        super().__init__(
            f"Limit of {rule.limit} requests a minute reached ({rule.tier}). Try again in {wait} s.",
            headers={**taken.rate.headers(), "Retry-After": str(wait)},
            tier=rule.tier,
            retry_after=wait,
        )


#: The state for the headers of the answer (None if no limit applies), and the refusal (None if the request fits).
LimitResult: TypeAlias = tuple[RateState | None, RateLimited | None]

_FREE: Final[LimitResult] = (None, None)


async def take(x: LimitedRequest, caller: Caller | None, limits: RateLimits, counters: Counters) -> LimitResult:
    rule = limits.resolve(x.method, x.path, caller, x.client_address)
    if rule is None:
        return _FREE
    taken = await counters.take(rule.key, rule.limit)
    return taken.rate, None if taken.allowed else RateLimited(rule, taken)


async def take_login(email: str | None, client_address: str, limits: RateLimits, counters: Counters) -> LimitResult:
    """Count a sign-in (`POST /api/auth/login`) by account and by address. Either both limits count it, or neither does.
    The returned state is that of the limit with less room. If `email` is None (see `email_of`), only the address
    counts."""
    rules = [] if email is None else [login_rule(email)]
    by_address = limits.resolve("POST", LOGIN, None, client_address)
    if by_address is not None:
        rules.append(by_address)
    taken = await counters.take_all(*[(rule.key, rule.limit) for rule in rules])
    return taken.rate, None if taken.allowed else RateLimited(rules[taken.claim], taken)


def email_of(body: bytes) -> str | None:
    """Return the e-mail address in the body of a sign-in, from `email` or else from `username`, or None if there is
    none."""
    try:
        # The handler uses the same parser. With another one, a body that only the handler can parse (UTF-16, NaN) would
        # not be counted.
        named = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(named, dict):
        for value in (named.get("email"), named.get("username")):
            if is_name(value):
                return value
    return None


def is_name(value: object) -> TypeGuard[str]:
    """Return whether a value can be an e-mail address or a user name."""
    return isinstance(value, str) and 0 < len(value.strip()) <= _MAX_EMAIL_CHARACTERS


async def check(x: Identified, ports: Ports) -> Verdict | RateState:
    """Count the request of an identified caller, and return the state for the headers of the answer, unless the host
    has counted the request."""
    if x.host.rate is not None:
        return x.host.rate
    received = x.received
    rule = ports.limits.resolve(received.method, received.path, x.caller, received.client_address)
    if rule is None:
        return ALLOW
    taken = await ports.counters.take(rule.key, rule.limit)
    return taken.rate if taken.allowed else Refuse(RateLimited(rule, taken))
