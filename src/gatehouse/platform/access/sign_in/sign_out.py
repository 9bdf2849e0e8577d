"""Ends the current session, for the pages and for the API, and prepares the sign-out at the identity provider."""

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.foundation.identity import Caller
from gatehouse.platform.access.saml import logout
from gatehouse.platform.access.saml.errors import PublicUrlMissing
from gatehouse.platform.access.saml.table import SamlSessionRow
from gatehouse.platform.access.sessions import service as sessions
from gatehouse.platform.request.callers import RESPONSES, SessionUser
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(prefix="/api/auth", tags=["Sessions"])


class SignedOut(ResponseBody):
    by_identity_provider: Annotated[
        bool,
        Field(description="Whether single sign-on opened the session. The identity provider may then have one too."),
    ]
    provider_logout_url: Annotated[
        str | None,
        Field(
            description="The URL at which the browser signs out at the identity provider. It works once, within"
            " minutes. Null if the provider has no `slo_url` or is not active."
        ),
    ]


@router.post(
    "/logout",
    status_code=204,
    response_class=Response,
    responses={**RESPONSES, 200: {"model": SignedOut, "description": "With `single_logout`."}},
)
async def log_out(
    caller: SessionUser,
    request: Request,
    host: TheHost,
    *,
    single_logout: Annotated[
        bool, Query(description="Return the address at which the browser signs out at the identity provider too.")
    ] = False,
) -> Response:
    """Ends the current session. When the response is sent, its tokens are refused."""
    signed_out = await end_session(request, host, caller, single_logout=single_logout)
    return JSONResponse(signed_out.model_dump()) if single_logout else Response(status_code=204)


async def end_session(request: Request, host: Host, caller: Caller, *, single_logout: bool) -> SignedOut:
    """End the caller's session. With `single_logout`, prepare a logout request to the identity provider that opened the
    session, if any."""
    assert caller.tenant_id is not None
    session_id = caller.session_id
    async with changing(request, host, caller.tenant_id, caller) as change:
        await sessions.log_out(change, caller)
        by_provider = session_id is not None and await change.session.get(SamlSessionRow, session_id) is not None
    url = None
    if single_logout and by_provider and session_id is not None:
        with suppress(PublicUrlMissing):
            url = await logout.logout_request_url(request, host, caller.tenant_id, session_id)
    return SignedOut(by_identity_provider=by_provider, provider_logout_url=url)
