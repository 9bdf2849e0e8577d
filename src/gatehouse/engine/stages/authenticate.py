"""Who calls, and under which policy. The only way to an `Identified`."""

from gatehouse.engine.exchange import Identified, Received
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages import rate_limit
from gatehouse.foundation.errors import Forbidden, Refusal, Unauthenticated
from gatehouse.foundation.identity import Caller


class NoTenant(Forbidden):
    message = "A platform-wide client belongs to no organization, so it has no models to call."


async def caller(x: Received, ports: Ports, scope: str) -> Identified:
    """`scope` is what the call needs; `stages.scope` asks for it. Raises `Unauthenticated`, `Forbidden`, or, for an
    address that guesses too often, `RateLimited`."""
    try:
        found = ports.credentials.identify(x)
    except Unauthenticated as error:
        raise await _counted(error, x, None, ports) from None
    if found.tenant_id is None:
        raise await _counted(NoTenant(), x, found, ports)
    policy = await ports.policies.current(found.tenant_id)
    return Identified(received=x, caller=found, policy=policy, scope=scope)


async def _counted(error: Refusal, x: Received, caller: Caller | None, ports: Ports) -> Refusal:
    """The refusal, with the state of the limit that it has counted against; or that of the limit."""
    rate, refused = await rate_limit.take(x, caller, ports.limits, ports.counters)
    if refused is not None:
        return refused
    if rate is not None:
        error.headers.update(rate.headers())
    return error
