"""A platform in the test's own process, and users to call it."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import time
from typing import Any, Final, Self
from uuid import UUID, uuid4

import httpx2
import psycopg
import uvicorn
from psycopg.types.json import Jsonb
from sqlalchemy import text
from tests.support import http_observer
from tests.support.watched import WatchedPlatform

from gatehouse.foundation import jwt
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.database import Database
from gatehouse.ingress.protocol_choice import Ingress, protocol_of
from gatehouse.platform.installation import setup
from gatehouse.platform.installation.bootstrap import touch
from gatehouse.platform.installation.setup import Installation
from gatehouse.platform.records.archive.storage.places import archive_storage
from gatehouse.platform.records.audit.checking import Break
from gatehouse.platform.records.audit.verify import Verifier
from gatehouse.platform.worker.app import Platform
from gatehouse.platform.worker.host import PlatformHost

#: The HTTP server that tests use. Set the environment variable INGRESS to run the suite with the other server.
INGRESS: Final = Settings.from_environment({"INGRESS": os.environ.get("INGRESS", "")}).ingress

PASSWORD = "correct horse battery staple"


@dataclass
class Person:
    """A user with a session. `client` uses its token."""

    id: UUID
    email: str
    client: httpx2.AsyncClient
    token: str
    session_id: UUID


@dataclass
class Tenant:
    id: UUID
    slug: str
    admin: Person
    auditor: Person
    user: Person


@dataclass
class RunningPlatform:
    installed: Installation
    host: PlatformHost
    app: Platform
    #: client without a credential
    anonymous: httpx2.AsyncClient
    _owner: psycopg.Connection[Any]
    #: the HTTP server of `listening`
    ingress: Ingress = INGRESS
    _clients: list[httpx2.AsyncClient] = field(default_factory=list)
    _key: jwt.SigningKey | None = None

    @classmethod
    @asynccontextmanager
    async def start(cls, settings: Settings) -> AsyncIterator[Self]:
        installed = setup.connect(settings)
        setup.prepare(installed)
        hosts: list[PlatformHost] = []

        def make_host() -> PlatformHost:
            hosts.append(PlatformHost(settings, Database(installed.url, pool_size=10), installed.master_keys))
            return hosts[0]

        app = WatchedPlatform(settings, make_host)
        async with app._serving():
            owner = psycopg.connect(installed.owner_url, autocommit=True)
            running = cls(installed, hosts[0], app, _client(app), owner)
            try:
                yield running
            finally:
                owner.close()
                for client in (running.anonymous, *running._clients):
                    await client.aclose()

    def sql(self, query: str, parameters: Any = None) -> list[Any]:
        """Run a statement as the owner, who sees the rows of all tenants. Return the rows as tuples."""
        cursor = self._owner.execute(query, parameters)
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def owner_transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """Open a transaction of the owner on a separate connection. It is committed at the end."""
        with psycopg.connect(self.installed.owner_url) as connection:
            yield connection

    def client(self, credential: str) -> httpx2.AsyncClient:
        client = _client(self.app, credential)
        self._clients.append(client)
        return client

    async def refresh(self) -> None:
        """Wait until this worker has applied all committed changes."""
        await self.host.feed.catch_up()

    async def new_tenant(self) -> Tenant:
        tenant_id, slug = new_id(), f"t-{uuid4().hex[:12]}"
        # In one transaction, because thousands of tests wait for this.
        with self._owner.transaction():
            self.sql("INSERT INTO tenants (id, slug, name) VALUES (%s, %s, %s)", [tenant_id, slug, slug])
            self.touch("tenant", tenant_id)
            admin, auditor, user = (self._add_person(tenant_id, role) for role in ("admin", "auditor", "user"))
        await self.refresh()
        return Tenant(tenant_id, slug, admin=admin, auditor=auditor, user=user)

    def show_all(self, tenant: Tenant) -> None:
        """Keep all records of the tenant in the hot window, whatever their age."""
        hot = Jsonb({"hot_retention_days": 36_500})
        self.sql("UPDATE tenants SET retention_policy = %s WHERE id = %s", [hot, tenant.id])

    async def new_person(
        self, tenant_id: UUID, role: str = "user", *, operator: bool = False, mfa_at: float | None = None
    ) -> Person:
        """Create a user without a password, with a session and token like those of a sign-in."""
        person = self._add_person(tenant_id, role, operator=operator, mfa_at=mfa_at)
        await self.refresh()
        return person

    def _add_person(self, tenant_id: UUID, role: str, *, operator: bool = False, mfa_at: float | None = None) -> Person:
        user_id, session_id, email = new_id(), new_id(), f"{role}-{uuid4().hex[:12]}@example.test"
        self.sql(
            "INSERT INTO users (id, tenant_id, email, role, operator) VALUES (%s, %s, %s, %s, %s)",
            [user_id, tenant_id, email, role, operator],
        )
        self.sql(
            "INSERT INTO sessions (id, tenant_id, user_id, expires_at) VALUES (%s, %s, %s, %s)",
            [session_id, tenant_id, user_id, datetime.now(UTC) + timedelta(days=1)],
        )
        self.touch("user", user_id)
        claims: dict[str, Any] = {"sub": str(user_id), "tid": str(tenant_id), "sid": str(session_id)}
        if mfa_at is not None:
            claims["mfa_at"] = mfa_at
        token = self.signed(claims)
        return Person(user_id, email, self.client(token), token, session_id)

    async def require_mfa(self, tenant_id: UUID) -> None:
        """Require a second factor from everybody there, without a grace period."""
        self.sql(
            "UPDATE tenants SET mfa_policy = %s, mfa_policy_changed_at = now() WHERE id = %s",
            [Jsonb({"enforcement_level": "required", "grace_period_hours": 0}), tenant_id],
        )
        self.touch("tenant", tenant_id)
        await self.refresh()

    async def operator(self) -> Person:
        """Create an operator: an admin of the tenant `default` with the operator mark."""
        tenant_id = self.sql("SELECT id FROM tenants WHERE slug = 'default'")[0][0]
        return await self.new_person(tenant_id, "admin", operator=True)

    async def new_m2m(self, tenant_id: UUID | None, *scopes: str, tier: str = "standard") -> httpx2.AsyncClient:
        """Return a client with the token of an OAuth client. The OAuth client has a row, but no known secret."""
        client_id = new_id()
        self.sql(
            "INSERT INTO oauth_clients (id, client_id, tenant_id, name, scopes, secret_digest, rate_limit_tier)"
            " VALUES (%s, %s, %s, 'a machine', %s, %s, %s)",
            [new_id(), client_id, tenant_id, Jsonb(list(scopes)), b"", tier],
        )
        self.touch("oauth_client", client_id)
        await self.refresh()
        claims = {"sub": str(client_id), "token_type": "m2m", "scope": " ".join(scopes), "rate_limit_tier": tier}
        return self.client(self.signed({**claims, **({"tid": str(tenant_id)} if tenant_id else {})}))

    async def new_key(self, person: Person, **body: Any) -> str:
        """Create an API key of the user and return its plain text."""
        answer = await person.client.post("/api/auth/api-keys", json={"description": "a test's key", **body})
        assert answer.status_code == 201, answer.text
        key: str = answer.json()["api_key"]
        return key

    def signed(self, claims: dict[str, Any], *, lifetime: float = 900) -> str:
        """Return a token that is signed like the platform's."""
        now = int(time())
        if self._key is None:
            kid, sealed = self.sql("SELECT kid, sealed_private FROM signing_keys WHERE retired_at IS NULL")[0]
            self._key = jwt.SigningKey.from_pem(self.host.sealer.open(sealed, context=f"signing_key:{kid}".encode()))
        issuer = self.host.issuer
        return jwt.sign({"iss": issuer, "aud": issuer, "iat": now, "exp": now + int(lifetime), **claims}, self._key)

    @asynccontextmanager
    async def listening(self, port: int = 0, *, idle_seconds: int = 5) -> AsyncIterator[str]:
        """Serve the same application on a real socket, like `gatehouse serve`. Yields its URL."""
        http = protocol_of(self.ingress, lambda: self.app.gateway)
        config = uvicorn.Config(
            self.app, port=0, http=http, lifespan="off", log_config=None, access_log=False, ws="none",
            timeout_keep_alive=idle_seconds,
        )  # fmt: skip
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            task = asyncio.create_task(server.serve(sockets=[listener]))
            while not server.started:
                await asyncio.sleep(0.01)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            # The HTTP observer records requests to this URL too, because the HTTP server answers some requests itself.
            http_observer.register(url)
            try:
                yield url
            finally:
                http_observer.unregister(url)
                server.should_exit = True
                await task

    async def add_provider(self, tenant_id: UUID, provider: str, kind: str, *models: str, **config: Any) -> None:
        """Add a provider with models to the catalog, at 1 and 2 USD per million tokens. It is active when this
        returns."""
        self.sql(
            "INSERT INTO providers (tenant_id, id, name, kind, config) VALUES (%s, %s, %s, %s, %s)",
            [tenant_id, provider, provider, kind, Jsonb(config)],
        )
        for model in models:
            self.sql(
                "INSERT INTO model_configs (id, tenant_id, provider, model_id, cost_per_input_token,"
                " cost_per_output_token) VALUES (%s, %s, %s, %s, 0.000001, 0.000002)",
                [new_id(), tenant_id, provider, model],
            )
        self.touch("policy", tenant_id)
        await self.refresh()

    def touch(self, topic: str, key: object) -> None:
        with self._owner.transaction():
            touch(self._owner, topic, str(key))

    async def audit(self, tenant: Tenant | UUID, action: str) -> list[dict[str, Any]]:
        """Return the rows of the tenant's audit events with this action, oldest first."""
        tenant_id = tenant.id if isinstance(tenant, Tenant) else tenant
        async with self.host.database.service() as session:
            rows = await session.execute(
                text("SELECT * FROM audit_events WHERE tenant_id = :tenant AND action = :action ORDER BY sequence"),
                {"tenant": tenant_id, "action": action},
            )
            return [dict(row._mapping) for row in rows]

    def breaks(self, tenant: Tenant) -> list[Break]:
        """Return the positions at which the tenant's audit chain is broken."""
        verifier = Verifier(self.installed.url, self.host.sealer, archive_storage(self.installed.settings))
        try:
            return [gap for chain in verifier.chains(tenant.slug) for gap in verifier.breaks(chain)]
        finally:
            verifier.close()


def _client(app: Platform, credential: str | None = None) -> httpx2.AsyncClient:
    headers = {} if credential is None else {"Authorization": f"Bearer {credential}"}
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://gatehouse.test", headers=headers, timeout=60)
