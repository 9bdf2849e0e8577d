"""Connections have their role or are refused, with a real PostgreSQL."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from functools import partial
from uuid import uuid4

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError
from structlog.testing import capture_logs
from tests.support.platform import RunningPlatform, Tenant
from tests.support.relay import relay

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.storage.roles import APP_ROLE, SERVICE_ROLE, WrongRole

WHO = text("SELECT current_user")


@pytest.fixture
async def database(platform: RunningPlatform) -> AsyncIterator[Database]:
    database = Database(platform.installed.url, pool_size=1)
    yield database
    await database.close()


@pytest.fixture
def stranger(platform: RunningPlatform) -> str:
    """Yields the URL of a login without both roles."""
    name = f"stranger_{uuid4().hex}"
    platform.sql(f"CREATE ROLE {name} LOGIN")
    return platform.installed.url.replace("postgres:@", f"{name}@")


async def test_sessions_keep_their_role_over_rollbacks(database: Database, tenant: Tenant) -> None:
    for _ in range(2):
        async with database.tenant(TenantId(tenant.id)) as session:
            assert (await session.execute(WHO)).scalar() == APP_ROLE
            await session.rollback()
            assert (await session.execute(WHO)).scalar() == APP_ROLE
        for opened in (database.service(), database.feed()):
            async with opened as session:
                assert (await session.execute(WHO)).scalar() == SERVICE_ROLE


async def test_every_other_kind_of_connection_has_its_role_too(database: Database) -> None:
    async with await database.service_connection() as listening:
        assert await (await listening.execute("SELECT current_user")).fetchone() == (SERVICE_ROLE,)
    with roles.connect(database.url, SERVICE_ROLE) as connection:
        connection.rollback()
        assert connection.execute("SELECT current_user").fetchone() == (SERVICE_ROLE,)
    configure = partial(roles.become_async, role=SERVICE_ROLE)
    pool = AsyncConnectionPool(database.url, min_size=1, open=False, configure=configure)
    async with pool, pool.connection() as pooled:
        assert await (await pooled.execute("SELECT current_user")).fetchone() == (SERVICE_ROLE,)


async def test_client_and_server_detect_a_lost_connection_within_half_a_minute(platform: RunningPlatform) -> None:
    """By default a system detects a lost peer after two hours, and the locks of the peer's session last as long."""
    with relay(platform.host.settings.gatehouse_home / "postgres" / ".s.PGSQL.5432") as relay_port:
        database = Database(relay_port.url)
        async with database.service() as session:
            raw = (await (await session.connection()).get_raw_connection()).driver_connection
            assert isinstance(raw, psycopg.AsyncConnection)
            assert keepalive(raw.fileno()) == (1, 15, 5, 3, 30_000)
            # The test's server uses a Unix socket. There the settings are accepted and have no effect.
            query = "SELECT name FROM pg_settings WHERE name LIKE 'tcp_%' AND source = 'session'"
            assert len((await session.execute(text(query))).all()) == 4
        await database.close()
        # Settings in the URL take precedence.
        with roles.connect(f"{relay_port.url}?keepalives_idle=60", SERVICE_ROLE) as connection:
            assert keepalive(connection.fileno()) == (1, 60, 5, 3, 30_000)


def keepalive(descriptor: int) -> tuple[int, ...]:
    with socket.socket(fileno=os.dup(descriptor)) as own:
        expected = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        on = own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        return on, *(own.getsockopt(socket.IPPROTO_TCP, option) for option in expected)


async def test_a_session_without_its_role_fails_and_its_connection_is_closed(
    database: Database, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, "_logged_roles", set())
    with capture_logs() as lines:
        for _ in range(2):
            async with database.tenant(TenantId(tenant.id)) as session:
                # A pooler that resets connections between transactions does the same.
                await session.execute(text("RESET ROLE"))
                await session.commit()
            with pytest.raises(WrongRole, match="cannot act as gatehouse_app"):
                async with database.tenant(TenantId(tenant.id)):
                    raise AssertionError("it went on")
    assert [line["event"] for line in lines] == ["database.wrong_role"]
    async with database.tenant(TenantId(tenant.id)) as session:
        assert (await session.execute(WHO)).scalar() == APP_ROLE


async def test_an_idle_transaction_is_ended_and_its_locks_are_released(database: Database, tenant: Tenant) -> None:
    lock = text("SELECT pg_advisory_xact_lock(20261122)")
    async with database.tenant(TenantId(tenant.id)) as silent:
        # Other sessions wait at most this time for a worker that lost its connection during a change. The test uses
        # less.
        assert (await silent.execute(text("SHOW idle_in_transaction_session_timeout"))).scalar() == "15s"
        await silent.execute(text("SET LOCAL idle_in_transaction_session_timeout = '500ms'"))
        await silent.execute(lock)
        async with asyncio.timeout(20), database.service() as waiting:
            await waiting.execute(lock)
        with pytest.raises(OperationalError):
            await silent.execute(WHO)
    async with database.tenant(TenantId(tenant.id)) as session:
        assert (await session.execute(WHO)).scalar() == APP_ROLE


async def test_a_login_without_the_roles_gets_no_session(stranger: str, tenant: Tenant) -> None:
    database = Database(stranger, pool_size=1)
    try:
        for _ in range(2):
            with pytest.raises(OperationalError, match="cannot act as gatehouse_app"):
                async with database.tenant(TenantId(tenant.id)):
                    raise AssertionError("it went on")
            with pytest.raises(OperationalError, match="cannot act as gatehouse_service"):
                async with database.service() as session:
                    await session.execute(WHO)
        with pytest.raises(WrongRole):
            await database.service_connection()
        with pytest.raises(WrongRole):
            roles.connect(stranger, SERVICE_ROLE, autocommit=True)
    finally:
        await database.close()


async def test_an_errors_text_has_no_parameters(database: Database, tenant: Tenant) -> None:
    with pytest.raises(IntegrityError) as raised:
        async with database.tenant(TenantId(tenant.id)) as session:
            await session.execute(
                text("INSERT INTO users (id, tenant_id, email, role, password_hash) VALUES (:id, :t, 'a', 'king', :h)"),
                {"id": uuid4(), "t": tenant.id, "h": "$argon2id$v=19$secret"},
            )
    assert "$argon2id" not in str(raised.value)


async def test_administration_reads_nothing_of_other_tenants_in_tables_without_a_tenant(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    platform.sql("INSERT INTO revocations VALUES (%s, 'session', now(), now() + interval '1 hour')", [uuid4()])
    refused = (
        "SELECT args FROM jobs",
        "DELETE FROM jobs",
        "SELECT * FROM journal_positions",
        "SELECT entry FROM open_streams",
        "SELECT sealed_private FROM signing_keys",
        "DELETE FROM revocations",
        "DELETE FROM changes",
        "DELETE FROM audit_events",
        "UPDATE audit_events SET action = 'x'",
        "INSERT INTO platform_state (key, value) VALUES ('x', '1')",
        "INSERT INTO nodes (id, name, pid, host) VALUES (gen_random_uuid(), 'x', 1, 'x')",
    )
    with roles.connect(platform.installed.url, APP_ROLE, autocommit=True) as connection:
        connection.execute("SELECT set_config('gatehouse.tenant', %s, false)", [str(tenant.id)])
        for query in refused:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(query.encode())
        seen = connection.execute("SELECT DISTINCT tenant_id FROM changes").fetchall()
    assert set(seen) <= {(tenant.id,)}
