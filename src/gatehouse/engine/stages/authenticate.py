"""Who calls, and under which policy. The only way to an `Identified`."""

from gatehouse.engine.exchange import Identified, Received
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages import rate_limit
from gatehouse.foundation.errors import Forbidden, Unauthenticated


class ScopeMissing(Forbidden):
    code = "insufficient_scope"


class NoTenant(Forbidden):
    message = "A platform-wide client belongs to no organization, so it has no models to call."


async def caller(x: Received, ports: Ports, scope: str) -> Identified:
    """Raises `Unauthenticated`, `Forbidden`, or, for an address that guesses too often, `RateLimited`."""
    try:
        found = ports.credentials.identify(x)
    except Unauthenticated as error:
        rate, refused = await rate_limit.take(x, None, ports.limits, ports.counters)
        if refused is not None:
            raise refused from None
        if rate is not None:
            error.headers.update(rate.headers())
        raise
    if not found.has_scope(scope):
        raise ScopeMissing(f"The credential lacks the scope {scope}.")
    if found.tenant_id is None:
        raise NoTenant
    return Identified(received=x, caller=found, policy=await ports.policies.current(found.tenant_id))
