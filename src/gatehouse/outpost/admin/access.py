"""Who may call the administration API: whoever shows the outpost's admin token."""

import hmac
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gatehouse.engine.limits import Rule, address_key
from gatehouse.engine.stages.rate_limit import RateLimited
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.outpost.host import OutpostHost

_bearer = HTTPBearer(auto_error=False, scheme_name="admin_token", description="OUTPOST_ADMIN_TOKEN")


class BadAdminToken(Unauthenticated):
    message = "Send the outpost's admin token: Authorization: Bearer <OUTPOST_ADMIN_TOKEN>."


def host_of(request: Request) -> OutpostHost:
    host: OutpostHost = request.app.state.host
    return host


async def admitted(
    request: Request,
    host: Annotated[OutpostHost, Depends(host_of)],
    shown: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> OutpostHost:
    """Counts the call, then asks for the token: guesses count, too."""
    addresses: ClientAddresses = request.app.state.addresses
    limit = host.settings.rate_limit_admin_per_minute
    rule = Rule(f"admin|{address_key(addresses.of_scope(request.scope))}", limit, "admin")
    taken = await host.counters.take(rule.key, rule.limit)
    if not taken.allowed:
        raise RateLimited(rule, taken)
    secret = host.settings.outpost_admin_token
    given = shown.credentials.encode() if shown is not None else b""
    if secret is None or not hmac.compare_digest(given, secret.get_secret_value().encode()):
        raise BadAdminToken
    return host


#: In a route's signature: the outpost, for a caller who showed the token.
Operated = Annotated[OutpostHost, Depends(admitted)]
