"""Keeps the `mfa_token` between the password and the second factor, in a cookie that only the sign-in pages receive."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.platform.access.browser.cookie import is_over_https
from gatehouse.platform.access.mfa import person as mfa_person
from gatehouse.platform.access.mfa.person import LoginSubject
from gatehouse.platform.access.sessions import pending
from gatehouse.platform.access.sessions.pending import FactorRequirements, SecondFactorRequired
from gatehouse.platform.access.sign_in import paths
from gatehouse.platform.access.sign_in.form_pages import redirect
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.request.ports import Host

_COOKIE_NAME: Final = "gatehouse_pending"
_COOKIE_PATH: Final = "/login"


def redirect_to_factor(needed: SecondFactorRequired, next_path: str, host: Host) -> Response:
    """Redirect to the page that verifies or enrols the second factor, and set the cookie."""
    response = redirect(
        paths.link_to("/login/enrol" if needed.extra["enrollment_required"] else "/login/second-factor", next_path)
    )
    response.set_cookie(
        _COOKIE_NAME,
        needed.extra["mfa_token"],
        path=_COOKIE_PATH,
        httponly=True,
        samesite="strict",
        secure=is_over_https(host),
    )
    return response


def clear_cookie(response: Response) -> None:
    response.delete_cookie(_COOKIE_NAME, path=_COOKIE_PATH)


async def login_subject(request: Request, host: Host) -> LoginSubject:
    """Return the subject of the cookie's `mfa_token`. Raises `InvalidMfaToken`."""
    return await mfa_person.login_subject(host, request.cookies.get(_COOKIE_NAME, ""))


async def factor_requirements(host: Host, subject: LoginSubject) -> FactorRequirements:
    """Return the second factors that the user has and needs."""
    async with host.database.tenant(subject.tenant_id) as session:
        return await pending.factor_requirements(session, await session.get_one(UserRow, subject.user_id))
