"""Authenticates the caller and loads the policy of the caller's organization. Only this module creates an
`Identified`."""

from gatehouse.engine.exchange import NO_CONTEXT, HostContext, Identified, Received
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.callers import rate_limit
from gatehouse.engine.verdict import Refuse
from gatehouse.foundation.errors import Forbidden, Refusal, Unauthenticated, Unavailable
from gatehouse.foundation.identity import Caller


class NoTenant(Forbidden):
    message = "A platform-wide client belongs to no organization, so it cannot call models."


async def identify(x: Received, ports: Ports, scope: str, host: HostContext = NO_CONTEXT) -> Identified | Refuse:
    """Return the caller with the policy of their organization, or a refusal: `Unauthenticated`, `NoTenant`,
    `Unavailable` if the policy cannot be loaded, or `RateLimited` for an address with too many failed attempts.
    `scope` is the scope that the call needs; `stages.callers.scope` checks it."""
    try:
        caller = ports.credentials.identify(x)
    except Unauthenticated as error:
        return await _counted(error, x, None, ports)
    if caller.tenant_id is None:
        return await _counted(NoTenant(), x, caller, ports)
    try:
        policy = await ports.policies.current(caller.tenant_id)
    except Unavailable as error:
        return Refuse(error)
    return Identified(received=x, caller=caller, policy=policy, scope=scope, host=host)


async def identify_known(
    x: Received, caller: Caller, ports: Ports, scope: str, host: HostContext = NO_CONTEXT
) -> Identified | Refuse:
    """Return a caller that the host has identified, with the policy of their organization, or a refusal: `NoTenant` or
    `Unavailable`. The credential is checked again before each attempt."""
    if caller.tenant_id is None:
        return Refuse(NoTenant())
    try:
        policy = await ports.policies.current(caller.tenant_id)
    except Unavailable as error:
        return Refuse(error)
    return Identified(received=x, caller=caller, policy=policy, scope=scope, host=host)


async def _counted(error: Refusal, x: Received, caller: Caller | None, ports: Ports) -> Refuse:
    """Count the refusal against the rate limit, and return it, or the refusal of the rate limit if the limit is
    exceeded."""
    rate, limited = await rate_limit.take(x, caller, ports.limits, ports.counters)
    if limited is not None:
        return Refuse(limited)
    if rate is not None:
        error.headers.update(rate.headers())
    return Refuse(error)
