"""Authenticates callers of the administration API by the outpost's admin token."""

import hmac
from typing import Annotated, Final

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gatehouse.engine.rate_limits.selection import LimitRule, address_key
from gatehouse.engine.stages.callers.rate_limit import RateLimited
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.outpost.host import OutpostHost

#: Paths of an operator's emergency calls. Calls with a valid token are not rate limited on these paths.
EMERGENCY_PATHS: Final = frozenset({"/admin/api/override/kill-switch"})

_bearer = HTTPBearer(auto_error=False, scheme_name="admin_token", description="OUTPOST_ADMIN_TOKEN")


class BadAdminToken(Unauthenticated):
    message = "Send the outpost's admin token: Authorization: Bearer <OUTPOST_ADMIN_TOKEN>."


async def host_of(request: Request) -> OutpostHost:
    host: OutpostHost = request.app.state.host
    return host


async def admit(host: OutpostHost, address: str, token: str, path: str) -> None:
    """Checks the token and counts the call. Calls with a wrong token are counted separately, so that another client at
    the operator's address cannot use up the operator's limit. Raises `RateLimited`, `BadAdminToken`."""
    admin_token = host.settings.outpost_admin_token
    if admin_token is None or not hmac.compare_digest(token.encode(), admin_token.get_secret_value().encode()):
        await count(host, f"admin-refused|{address_key(address)}", host.settings.rate_limit_admin_per_minute, "admin")
        raise BadAdminToken
    if path.rstrip("/") not in EMERGENCY_PATHS:
        await count(host, f"admin|{address_key(address)}", host.settings.rate_limit_admin_per_minute, "admin")


async def count(host: OutpostHost, key: str, limit: int, tier: str) -> None:
    """Counts one request of `key`. Raises `RateLimited` if the last minute had `limit` requests already."""
    decision = await host.counters.take(key, limit)
    if not decision.allowed:
        raise RateLimited(LimitRule(key, limit, tier), decision)


async def admitted(
    request: Request,
    host: Annotated[OutpostHost, Depends(host_of)],
    credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> OutpostHost:
    """Verifies the token and returns the host. For requests with a body `admin.app` has verified the token already."""
    if not getattr(request.state, "admitted", False):
        token = credentials.credentials if credentials is not None else ""
        await admit(host, request.state.client_address, token, request.url.path)
    return host


#: Parameter of a route: the outpost, if the caller has a valid admin token.
AuthorizedHost = Annotated[OutpostHost, Depends(admitted)]
