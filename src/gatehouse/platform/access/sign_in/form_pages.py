"""Renders pages with forms. Adds the proof, and the origins to which the form may redirect."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gatehouse.platform.access import browser
from gatehouse.platform.access.openid import service as openid
from gatehouse.platform.access.pages import page
from gatehouse.platform.access.sign_in import paths, proof
from gatehouse.platform.request.ports import Host


async def render_form(
    request: Request, host: Host, template: str, status: int = 200, *, next_path: str = paths.HOME, **context: Any
) -> Response:
    """Render a template. `next_path` is the final destination: a path of this platform, or `paths.HOME`."""
    secret = proof.secret_for(request)
    # Browsers apply the form-action policy to redirects after a form too, so the policy must list the application's
    # origin.
    application, target = await openid.destination(host, next_path)
    response = page(
        template,
        status,
        form_targets=[] if target is None else [target],
        proof=proof.derive(secret),
        next="" if next_path == paths.HOME else next_path,
        application=application,
        **context,
    )
    proof.set_cookie(response, secret, host)
    return response


def redirect(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303, {"Referrer-Policy": "same-origin"})


def sign_in_browser(response: Response, cookie_secret: str, host: Host) -> Response:
    """Set the session cookie on the response, and clear the form secret, which a former user may have known."""
    browser.set_cookie(response, cookie_secret, host)
    proof.clear_cookie(response)
    return response
