"""Pages with forms: each gets its proof, and may lead where it is to go on to."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gatehouse.platform.access import browser
from gatehouse.platform.access.openid import service as openid
from gatehouse.platform.access.pages import page
from gatehouse.platform.access.sign_in import paths, proof
from gatehouse.platform.ports import Host


async def show(
    request: Request, host: Host, template: str, status: int = 200, *, next_path: str = paths.HOME, **shown: Any
) -> Response:
    """`next_path` is where it goes on to in the end: an own path, or `paths.HOME`."""
    secret = proof.secret_for(request)
    # Browsers look at every redirect that follows a form: the application's origin is let through by name.
    application, target = await openid.destination(host, next_path)
    response = page(
        template,
        status,
        form_targets=[] if target is None else [target],
        proof=proof.of(secret),
        next="" if next_path == paths.HOME else next_path,
        application=application,
        **shown,
    )
    proof.keep(response, secret, host)
    return response


def go(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303, {"Referrer-Policy": "same-origin"})


def entered(response: Response, cookie_secret: str, host: Host) -> Response:
    """The browser is signed in from this answer on; what it held of a stranger's is void."""
    browser.set_cookie(response, cookie_secret, host)
    proof.forget(response)
    return response
