"""Between password and second factor: the `mfa_token` waits in a cookie of the sign-in pages alone."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.platform.access.browser.cookie import over_https
from gatehouse.platform.access.mfa.person import SigningIn, signing_in
from gatehouse.platform.access.sessions import pending
from gatehouse.platform.access.sessions.pending import SecondFactorNeeded, Standing
from gatehouse.platform.access.sign_in import paths
from gatehouse.platform.access.sign_in.showing import go
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.ports import Host

_COOKIE: Final = "gatehouse_pending"
_PATH: Final = "/login"


def send_on(needed: SecondFactorNeeded, next_path: str, host: Host) -> Response:
    """To what the password lacks."""
    response = go(
        paths.to("/login/enrol" if needed.extra["enrollment_required"] else "/login/second-factor", next_path)
    )
    response.set_cookie(
        _COOKIE, needed.extra["mfa_token"], path=_PATH, httponly=True, samesite="strict", secure=over_https(host)
    )
    return response


def forget(response: Response) -> None:
    response.delete_cookie(_COOKIE, path=_PATH)


async def person(request: Request, host: Host) -> SigningIn:
    """Raises `InvalidMfaToken`."""
    return await signing_in(host, request.cookies.get(_COOKIE, ""))


async def standing(host: Host, who: SigningIn) -> Standing:
    """What this person has, and what is asked of them."""
    async with host.database.tenant(who.tenant_id) as session:
        return await pending.standing(session, await session.get_one(UserRow, who.user_id))
