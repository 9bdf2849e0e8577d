"""Endpoint that exchanges a browser's session cookie for an access token."""

from fastapi import APIRouter, Request

from gatehouse.platform.access.browser import service
from gatehouse.platform.access.browser.schemas import SessionToken
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/auth", tags=["Sessions"])


@router.post(
    "/session/token",
    response_model=SessionToken,
    responses={
        401: {"description": "`browser_session_missing`: the cookie is missing, or its session has ended."},
        403: {"description": "`foreign_origin`: the request does not come from a page of this platform."},
    },
)
async def issue_session_token(request: Request, host: TheHost) -> SessionToken:
    """Exchanges the session cookie of the sign-in pages for an access token of at most five minutes. Only pages of this
    platform can call it: `Origin` must be the platform's, and `Sec-Fetch-Site`, if sent, must be `same-origin`. The
    call extends the session as a refresh does.

    This is the only operation of the API that accepts the cookie."""
    return await service.exchange_cookie(request, host)
