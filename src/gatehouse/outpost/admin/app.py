"""The administration API as an application: who may call, in which form errors are told."""

import hmac
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gatehouse import __version__
from gatehouse.engine.limits import Rule, address_key
from gatehouse.engine.stages.rate_limit import RateLimited
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.http import handlers
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.envelopes import CODED, ErrorForms
from gatehouse.outpost.admin import switches
from gatehouse.outpost.host import OutpostHost

_bearer = HTTPBearer(auto_error=False, scheme_name="admin_token", description="OUTPOST_ADMIN_TOKEN")


class BadAdminToken(Unauthenticated):
    message = "Send the outpost's admin token: Authorization: Bearer <OUTPOST_ADMIN_TOKEN>."


async def admitted(request: Request, shown: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]) -> None:
    """Counts the call, then asks for the token: guesses count, too."""
    host: OutpostHost = request.app.state.host
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


def administration(host: OutpostHost | None) -> FastAPI:
    """`host` None: to be described alone."""
    app = FastAPI(
        title="Gatehouse outpost",
        version=__version__,
        summary="The gateway at the customer's, and its administration.",
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(admitted)],
    )
    handlers.install(app, ErrorForms(otherwise=CODED))
    app.include_router(switches.router)
    if host is not None:
        app.state.host = host
        app.state.addresses = ClientAddresses(host.settings.trusted_proxies)
    return app


def document() -> dict[str, Any]:
    """The OpenAPI document: administration, and the gateway's paths as the proxy serves them."""
    return administration(None).openapi()
