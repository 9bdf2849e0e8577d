"""Who may call the administration API: whoever shows the outpost's admin token."""

import hmac
from typing import Annotated, Final

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gatehouse.engine.limits import Rule, address_key
from gatehouse.engine.stages.rate_limit import RateLimited
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.outpost.host import OutpostHost

#: An operator's emergency calls: no limit refuses them once the token is good.
EMERGENCY_PATHS: Final = frozenset({"/admin/api/override/kill-switch"})

_bearer = HTTPBearer(auto_error=False, scheme_name="admin_token", description="OUTPOST_ADMIN_TOKEN")


class BadAdminToken(Unauthenticated):
    message = "Send the outpost's admin token: Authorization: Bearer <OUTPOST_ADMIN_TOKEN>."


def host_of(request: Request) -> OutpostHost:
    host: OutpostHost = request.app.state.host
    return host


async def admit(host: OutpostHost, address: str, token: str, path: str) -> None:
    """Checks the token, then counts the call. Calls with a wrong token have a count of their own, so that whoever
    shares an operator's address cannot use up the operator's limit. Raises `RateLimited`, `BadAdminToken`."""
    secret = host.settings.outpost_admin_token
    if secret is None or not hmac.compare_digest(token.encode(), secret.get_secret_value().encode()):
        await count(host, f"admin-refused|{address_key(address)}", host.settings.rate_limit_admin_per_minute, "admin")
        raise BadAdminToken
    if path.rstrip("/") not in EMERGENCY_PATHS:
        await count(host, f"admin|{address_key(address)}", host.settings.rate_limit_admin_per_minute, "admin")


async def count(host: OutpostHost, key: str, limit: int, tier: str) -> None:
    """Takes one request of `key`'s minute. Raises `RateLimited`."""
    taken = await host.counters.take(key, limit)
    if not taken.allowed:
        raise RateLimited(Rule(key, limit, tier), taken)


async def admitted(
    request: Request,
    host: Annotated[OutpostHost, Depends(host_of)],
    shown: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> OutpostHost:
    """Whoever has sent a body was asked before it was read (`admin.front`)."""
    if not getattr(request.state, "admitted", False):
        addresses: ClientAddresses = request.app.state.addresses
        token = shown.credentials if shown is not None else ""
        await admit(host, addresses.of_scope(request.scope), token, request.url.path)
    return host


#: In a route's signature: the outpost, for a caller who showed the token.
Operated = Annotated[OutpostHost, Depends(admitted)]
