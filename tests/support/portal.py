"""A portal in the test's own process with its own database, and organizations to call it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from random import getrandbits
from typing import Any, Self
from uuid import UUID, uuid4

import httpx2
import psycopg
import uvicorn
from starlette.types import ASGIApp
from tests.support import http_observer
from tests.support.leaks import LEAK_DETECTOR
from tests.support.watched import Watched

from gatehouse.foundation import jwt
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.ingress.protocol import GatewayHttpProtocol
from gatehouse.portal import installation
from gatehouse.portal.host import PortalHost
from gatehouse.portal.installation import PortalInstallation
from gatehouse.portal.server.app import application
from gatehouse.portal.server.duties import DUTIES
from gatehouse.portal.settings import PortalSettings

ADMIN_KEY = "the portal's admin key in tests"
MASTER_KEY = "cG9ydGFsIHRlc3RzJyBtYXN0ZXIga2V5IDMyIGIuLi4="


@dataclass
class Member:
    """A member. `client` uses a token like that of single sign-on."""

    id: UUID
    email: str
    client: httpx2.AsyncClient


@dataclass
class Org:
    """An organization. `client` uses a token that the admin key has issued, with the id `jti`."""

    id: UUID
    slug: str
    client: httpx2.AsyncClient
    jti: str

    @property
    def path(self) -> str:
        return f"/v1/orgs/{self.id}"


@dataclass
class RunningPortal:
    installed: PortalInstallation
    host: PortalHost
    app: ASGIApp
    #: clients without a credential, and with the admin key
    anonymous: httpx2.AsyncClient
    admin: httpx2.AsyncClient
    _owner: psycopg.Connection[Any]
    _clients: list[httpx2.AsyncClient] = field(default_factory=list)

    @classmethod
    @asynccontextmanager
    async def start(cls, settings: PortalSettings) -> AsyncIterator[Self]:
        LEAK_DETECTOR.add_secret(ADMIN_KEY, "the portal's admin key")
        installed = installation.connect(settings)
        installation.prepare(installed)
        host = PortalHost(installed)
        app = Watched(application(host))
        await host.start(DUTIES)
        owner = _owner(installed)
        running = cls(installed, host, app, _client(app), _client(app, {"X-API-Key": ADMIN_KEY}), owner)
        try:
            yield running
        finally:
            running._owner.close()
            for client in (running.anonymous, running.admin, *running._clients):
                await client.aclose()
            await host.stop()

    @asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[str]:
        """Serve the same application on a real socket, like `gatehouse serve portal`. Yields its URL."""
        config = uvicorn.Config(
            self.app, port=0, http=GatewayHttpProtocol, lifespan="off", log_config=None, access_log=False, ws="none"
        )
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            task = asyncio.create_task(server.serve(sockets=[listener]))
            while not server.started:
                await asyncio.sleep(0.01)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            # Observed too, because the server itself answers some requests.
            http_observer.register(url)
            try:
                yield url
            finally:
                http_observer.unregister(url)
                server.should_exit = True
                await task

    def sql(self, query: str, parameters: Any = None) -> list[Any]:
        """Run a statement as the owner, who sees the rows of all organizations. Return the rows as tuples."""
        try:
            cursor = self._owner.execute(query, parameters)
        except psycopg.OperationalError:
            # The database was unavailable meanwhile.
            self._owner = _owner(self.installed)
            cursor = self._owner.execute(query, parameters)
        return cursor.fetchall() if cursor.description else []

    def client(self, token: str) -> httpx2.AsyncClient:
        client = _client(self.app, {"Authorization": f"Bearer {token}"})
        self._clients.append(client)
        return client

    async def new_org(self, plan_tier: str = "enterprise", **body: Any) -> Org:
        slug = f"o-{uuid4().hex[:12]}"
        answer = await self.admin.post("/v1/orgs", json={"name": slug, "slug": slug, "plan_tier": plan_tier, **body})
        assert answer.status_code == 201, answer.text
        org_id = UUID(answer.json()["org"]["id"])
        # Statements of tests block this event loop, so they must not wait for a row that a job has locked.
        waiting = "SELECT 1 FROM jobs WHERE org_id = %s AND status IN ('queued', 'running')"
        while not self.host.platform.configured and self.sql(waiting, [org_id]):
            await asyncio.sleep(0.005)
        token = (await self.admin.post(f"/v1/orgs/{org_id}/tokens", json={})).json()
        return Org(org_id, slug, self.client(token["token"]), token["jti"])

    async def new_member(self, org: Org, role: str = "member", *, claimed: str | None = None) -> Member:
        """Create a signed-in member. `claimed` is the role in the token if it differs."""
        member_id, email = new_id(), f"{role}-{uuid4().hex[:12]}@example.test"
        self.sql(
            "INSERT INTO members (id, org_id, email, role, platform_sub, platform_tenant_id, accepted_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [member_id, org.id, email, role, str(uuid4()), org.id, utc_now() - timedelta(seconds=1)],
        )
        claims = {"sub": str(org.id), "uid": str(member_id), "role": claimed or role, "plan": "enterprise"}
        token = await self.signed(claims)
        return Member(member_id, email, self.client(token))

    async def signed(self, claims: Mapping[str, Any], *, lifetime: int = 900, **more: Any) -> str:
        """Return a token that is signed like the portal's. `more` replaces the claims that signing adds."""
        await self.host.keys._refresh()
        token = await self.host.keys.sign(claims, lifetime_seconds=lifetime)
        if more:
            verified = await self.host.keys.verify(await self.host.keys.sign(claims, lifetime_seconds=900))
            token = jwt.sign({**verified, **more}, self.host.keys._current())
        return token

    def audit(self, org_id: UUID, action: str) -> list[dict[str, Any]]:
        """Return the organization's audit rows with this action, oldest first."""
        cursor = self._owner.execute(
            "SELECT * FROM audit WHERE org_id = %s AND action = %s ORDER BY at, id", [org_id, action]
        )
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _owner(installed: PortalInstallation) -> psycopg.Connection[Any]:
    return psycopg.connect(installed.owner_url, autocommit=True, options="-csearch_path=portal")


def _client(app: ASGIApp, headers: Mapping[str, str] | None = None) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(
        transport=transport,
        base_url="http://portal.test",
        headers=headers,
        timeout=60,
        event_hooks={"request": [_from_anywhere]},
    )


async def _from_anywhere(request: httpx2.Request) -> None:
    """Set a random address, unless the test sets one, because wrong credentials are counted by address."""
    request.headers.setdefault("X-Forwarded-For", str(ip_address(getrandbits(32))))
