"""An MCP server that needs a user's account, with its authorization server, whose behaviour a test changes."""

import hashlib
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from html import escape
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from aiohttp import web
from tests.support.mcp_servers import BASE, ScriptedServer, approve, tools
from tests.support.members import Member, member
from tests.support.pages import Visitor
from tests.support.platform import RunningPlatform, Tenant

CLIENT_ID: Final = "gate:house"
CLIENT_SECRET: Final = "Wolper tinger"
OWN: Final = "/api/v1/mcp/connections"


class AccountServer:
    """The MCP server accepts the tokens that the authorization server has issued and not revoked. Each token is for the
    account that was signed in at the authorization server, so a test can see whose token a call has."""

    def __init__(self) -> None:
        self.origin = ""
        self.mcp = ScriptedServer()
        #: the account that consents next
        self.account = "ada"
        self.lifetime_seconds: int | None = 3_600
        self.has_refresh_tokens = True
        self.sends_issuer = True
        self.metadata: dict[str, Any] = {}
        #: answers a token request instead of the server; None stands for the usual answer
        self.respond: Callable[[dict[str, str]], web.Response | None] = lambda form: None
        #: awaited before the answer to a token request
        self.before_tokens: Callable[[], Awaitable[None]] | None = None
        self.codes: dict[str, dict[str, str]] = {}
        #: accounts by access token and by refresh token
        self.access: dict[str, str] = {}
        self.refresh: dict[str, str] = {}
        self.token_requests: list[dict[str, str]] = []
        self.revoked: list[dict[str, str]] = []
        #: the client's authentication, by token
        self.revoking_clients: dict[str, str] = {}
        #: status of the answers to revocations
        self.revocation_status = 200
        #: accounts of the calls of tools
        self.callers: list[str] = []
        self._issued = 0

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def consent(self, url: str) -> dict[str, str]:
        """Consent as the account that is signed in. Returns the parameters of the redirect."""
        parts = urlsplit(url)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.origin}/authorize"
        query = dict(parse_qsl(parts.query))
        assert (query["response_type"], query["client_id"]) == ("code", CLIENT_ID)
        assert (query["code_challenge_method"], query["resource"]) == ("S256", self.url)
        self._issued += 1
        code = f"code-{self._issued}"
        self.codes[code] = {**query, "account": self.account}
        return {"code": code, "state": query["state"], **({"iss": self.origin} if self.sends_issuer else {})}

    async def _authorize(self, request: web.Request) -> web.Response:
        """The page on which a user consents in a browser."""
        answer = urlencode(self.consent(f"{self.origin}{request.path_qs}"))
        link = f'<a href="{escape(request.query["redirect_uri"])}?{escape(answer)}">Allow as {self.account}</a>'
        return web.Response(text=f"<!doctype html><title>Consent</title>{link}", content_type="text/html")

    async def _server(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.origin,
                "authorization_endpoint": f"{self.origin}/authorize",
                "token_endpoint": f"{self.origin}/token",
                "revocation_endpoint": f"{self.origin}/revoke",
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": self.sends_issuer,
                **self.metadata,
            }
        )

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.token_requests.append(form)
        if self.before_tokens is not None:
            await self.before_tokens()
        if (answer := self.respond(form)) is not None:
            return answer
        if form["grant_type"] == "refresh_token":
            # A refresh token is valid once.
            account = self.refresh.pop(form["refresh_token"], None)
            return self._refused() if account is None else self._tokens(account)
        grant_of_code = self.codes.pop(form["code"], None)
        challenge = urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if grant_of_code is None or (challenge, form["redirect_uri"]) != (
            grant_of_code["code_challenge"],
            grant_of_code["redirect_uri"],
        ):
            return self._refused()
        return self._tokens(grant_of_code["account"])

    def _refused(self) -> web.Response:
        return web.json_response({"error": "invalid_grant"}, status=400)

    def _tokens(self, account: str) -> web.Response:
        self._issued += 1
        token = f"{account}-access-{self._issued}"
        self.access[token] = account
        body: dict[str, Any] = {"access_token": token, "token_type": "Bearer", "scope": "tools"}
        if self.lifetime_seconds is not None:
            body["expires_in"] = self.lifetime_seconds
        if self.has_refresh_tokens:
            body["refresh_token"] = f"{account}-refresh-{self._issued}"
            self.refresh[body["refresh_token"]] = account
        return web.json_response(body)

    @property
    def basic(self) -> str:
        """The authentication of the client (RFC 6749, 2.3.1)."""
        credentials = ":".join(quote(text, safe="") for text in (CLIENT_ID, CLIENT_SECRET))
        return f"Basic {b64encode(credentials.encode()).decode()}"

    async def _revoke(self, request: web.Request) -> web.Response:
        self.revoked.append({name: str(value) for name, value in (await request.post()).items()})
        self.revoking_clients[self.revoked[-1]["token"]] = request.headers.get("Authorization", "")
        return web.Response(status=self.revocation_status)

    async def _mcp(self, request: web.Request) -> web.StreamResponse:
        account = self.access.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if account is None:
            return web.Response(status=401)
        if json.loads(await request.read())["method"] == "tools/call":
            self.callers.append(account)
        return await self.mcp.handle(request)


@asynccontextmanager
async def account_server() -> AsyncIterator[AccountServer]:
    server = AccountServer()
    app = web.Application(client_max_size=64 * 1024**2)
    app.router.add_get("/.well-known/oauth-authorization-server", server._server)
    app.router.add_get("/authorize", server._authorize)
    app.router.add_post("/token", server._token)
    app.router.add_post("/revoke", server._revoke)
    app.router.add_post("/mcp", server._mcp)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def user_oauth(issuer: str, **fields: Any) -> dict[str, Any]:
    return {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "scope": "tools", "issuer": issuer, **fields}


async def browser_of(platform: RunningPlatform, who: Member) -> Visitor:
    """Return a browser in which a user is signed in."""
    visitor = Visitor(platform)
    await visitor.sign_in(who.email)
    assert visitor.cookie()
    return visitor


async def begin(visitor: Visitor, name: str = "weather") -> str:
    """Begin a consent. Returns the URL at the authorization server."""
    await visitor.get(f"/connect/{name}")
    assert visitor.page.status_code == 200, visitor.page.text
    answer = await visitor.fill()
    assert answer.status_code == 200, answer.text
    return link_in(answer.text)


def link_in(page: str) -> str:
    return page.split('class="button" href="')[1].split('"', maxsplit=1)[0].replace("&amp;", "&")


async def come_back(visitor: Visitor, parameters: dict[str, str], name: str = "weather") -> int:
    """Open the callback. Returns the status."""
    return (await visitor.get(f"/connect/{name}/callback?{urlencode(parameters)}")).status_code


async def connect(server: AccountServer, visitor: Visitor, account: str, name: str = "weather") -> None:
    """Connect an account, as a user does in a browser."""
    url = await begin(visitor, name)
    server.account = account
    assert await come_back(visitor, server.consent(url), name) == 303, visitor.page.text


async def registered(platform: RunningPlatform, tenant: Tenant, server: AccountServer, **fields: Any) -> dict[str, Any]:
    """Register a server that needs users' accounts, read its tools with an administrator's account, approve them, and
    permit everybody to call them."""
    body = {"name": "weather", "url": server.url, "access": "open", "user_oauth": user_oauth(server.origin), **fields}
    answer = await tenant.admin.client.post(BASE, json=body)
    assert answer.status_code == 201, answer.text
    row: dict[str, Any] = answer.json()
    boss = await member(platform, tenant, role="admin")
    visitor = await browser_of(platform, boss)
    await connect(server, visitor, "boss", str(body["name"]))
    refreshed = await boss.client.post(f"{BASE}/{row['id']}/refresh")
    assert refreshed.status_code == 200, refreshed.text
    for tool in await tools(tenant, row["id"]):
        await approve(tenant, tool)
    await visitor.client.aclose()
    return row
