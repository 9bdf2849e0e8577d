"""Pages on which users connect their accounts at MCP servers. They accept the session cookie only, and a consent begins
with a form of this platform, so another site can begin none."""

from typing import Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response

from gatehouse.foundation.http import forms
from gatehouse.platform.access.pages import page
from gatehouse.platform.access.sign_in import paths
from gatehouse.platform.access.sign_in.form_pages import redirect, render_form
from gatehouse.platform.access.sign_in.posted_forms import Posted
from gatehouse.platform.console.files import is_built
from gatehouse.platform.mcp.connections import consents
from gatehouse.platform.mcp.connections.errors import ConsentRefused
from gatehouse.platform.mcp.connections.paths import CALLBACK, PREFIX
from gatehouse.platform.request.ports import TheHost

router = APIRouter(include_in_schema=False)

_PATH: Final = PREFIX + "/{server}"
_CONNECTIONS: Final = f"{paths.CONSOLE}/connections"


@router.get(_PATH)
async def connection_page(request: Request, host: TheHost, server: str) -> Response:
    who = await consents.signed_in(request, host)
    if who is None:
        return redirect(paths.link_to(paths.HOME, f"{PREFIX}/{server}"))
    offered = await consents.offer(host, who, server)
    row = offered.row
    return await render_form(
        request, host, "mcp_connect.html", server=server, host_name=urlsplit(offered.server.url).netloc,
        email=who.user.email, is_connected=row is not None and row.sealed_tokens is not None,
    )  # fmt: skip


@router.post(_PATH)
async def begin_connection(request: Request, host: TheHost, server: str, form: Posted) -> Response:
    """Shows a page that continues at the authorization server. The response is no redirect, because the content
    security policy of the form permits none."""
    del form
    who = await consents.signed_in(request, host)
    if who is None:
        return redirect(paths.link_to(paths.HOME, f"{PREFIX}/{server}"))
    url = await consents.begin(request, host, who, await consents.offer(host, who, server))
    return page("mcp_continue.html", server=server, url=url, host_name=urlsplit(url).netloc)


@router.get(_PATH + CALLBACK)
async def finish_connection(request: Request, host: TheHost, server: str) -> Response:
    """Receives the authorization server's answer. The response leads to a page without the answer in its address: the
    console's list of connections, if the console is installed."""
    who = await consents.signed_in(request, host)
    if who is None:
        raise ConsentRefused("another_session")
    try:
        answer = forms.parse_form(request.scope["query_string"].decode("ascii", "replace"))
    except forms.BadForm:
        answer = {}
    offered = await consents.offer(host, who, server)
    await consents.finish(consents.ConsentAnswer(request, host, who, offered, answer))
    return redirect(_CONNECTIONS if is_built() else f"{PREFIX}/{server}")
