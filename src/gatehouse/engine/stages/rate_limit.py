"""Counts the request against its limit, and refuses it when there is no room (reference 1, Rate limiting on the
platform). Also for a request whose authentication failed: with `caller` None it counts by its address."""

import json
from typing import Final, Protocol, TypeAlias, TypeGuard

from gatehouse.engine.exchange import Identified
from gatehouse.engine.limits import LOGIN, RateLimits, Rule, login_rule
from gatehouse.engine.ports import Counters, Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.counters import RateState, Taken
from gatehouse.foundation.errors import TooManyRequests
from gatehouse.foundation.identity import Caller

#: The longest address that mail knows (RFC 5321, 4.5.3.1); what is longer is nobody's.
_LONGEST_EMAIL: Final = 254


class Asks(Protocol):
    """What a limit depends on beside the caller; `exchange.Received` has it."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def client_address(self) -> str: ...


class RateLimited(TooManyRequests):
    """`extra` holds `tier` and `retry_after` (seconds); `headers` `Retry-After` and the three of `RateState`."""

    def __init__(self, rule: Rule, taken: Taken) -> None:
        wait = taken.retry_after
        super().__init__(
            f"Limit of {rule.limit} requests a minute reached ({rule.tier}). Try again in {wait} s.",
            headers={**taken.rate.headers(), "Retry-After": str(wait)},
            tier=rule.tier,
            retry_after=wait,
        )


#: The state for the answer's headers, None where nothing is limited; and the refusal, None where there is room.
Toll: TypeAlias = tuple[RateState | None, RateLimited | None]

_FREE: Final[Toll] = (None, None)


async def take(x: Asks, caller: Caller | None, limits: RateLimits, counters: Counters) -> Toll:
    rule = limits.resolve(x.method, x.path, caller, x.client_address)
    if rule is None:
        return _FREE
    taken = await counters.take(rule.key, rule.limit)
    return taken.rate, None if taken.allowed else RateLimited(rule, taken)


async def take_login(email: str | None, client_address: str, limits: RateLimits, counters: Counters) -> Toll:
    """For `POST /api/auth/login` in place of `take`: guesses at one account, then guesses from one address; both count
    or neither. The state is that of the one with less room. `email` None (see `email_of`): the address alone."""
    rules = [] if email is None else [login_rule(email)]
    by_address = limits.resolve("POST", LOGIN, None, client_address)
    if by_address is not None:
        rules.append(by_address)
    taken = await counters.take_all(*[(rule.key, rule.limit) for rule in rules])
    return taken.rate, None if taken.allowed else RateLimited(rules[taken.claim], taken)


def email_of(body: bytes) -> str | None:
    """The address that a login's body names, in `email` or else `username`; None where it cannot be read."""
    try:
        # The parser of the handler behind this: what another one refuses (UTF-16, NaN) would slip past the count.
        named = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(named, dict):
        for value in (named.get("email"), named.get("username")):
            if is_name(value):
                return value
    return None


def is_name(value: object) -> TypeGuard[str]:
    """Whether it can be an address or a user name that somebody has."""
    return isinstance(value, str) and 0 < len(value.strip()) <= _LONGEST_EMAIL


async def check(x: Identified, ports: Ports) -> Verdict:
    """The stage: takes for an identified caller, and keeps the state for the answer's headers. A request that the host
    has counted already comes with it."""
    if x.rate is not None:
        return ALLOW
    received = x.received
    rule = ports.limits.resolve(received.method, received.path, x.caller, received.client_address)
    if rule is None:
        return ALLOW
    taken = await ports.counters.take(rule.key, rule.limit)
    x.rate = taken.rate
    return ALLOW if taken.allowed else Refuse(RateLimited(rule, taken))
