"""Connections, each as the role that its work needs.

    app      administration: owns nothing, sees one tenant's rows at a time (row-level security)
    service  named queries that are cross-tenant by nature: credentials, policies, the drain of the journal
    owner    migrations

All three come from `DATABASE_URL`; how they get their role is in `roles`. Where the login itself must own nothing,
`DATABASE_OWNER_URL` holds the owner's.
"""

import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from sqlalchemy import event, text
from sqlalchemy.engine.interfaces import DBAPIConnection, ExceptionContext
from sqlalchemy.exc import DisconnectionError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import APP_ROLE, SERVICE_ROLE
from gatehouse.foundation.storage.tenant_session import TenantSession

# Who acts is asked with it, in the same transaction: row-level security is only for the application's role.
_BIND = text(
    "SELECT set_config('gatehouse.tenant', :tenant, true), set_config('gatehouse.operator', :operator, true),"
    " current_user"
)


def sqlalchemy_url(url: str) -> str:
    """The URL in SQLAlchemy's form, whichever of PostgreSQL's two schemes it has."""
    return "postgresql+psycopg://" + url.split("://", 1)[1]


class Database:
    """A worker's connections. Nothing connects before it is used, so a dead database does not stop a start.

    `schema` is where names without one are looked up, `sessions` the kind that asks for one tenant's rows alone.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        schema: str | None = None,
        sessions: type[Session] = TenantSession,
    ) -> None:
        self.url = url
        self.schema = schema
        self._app = _engine(url, APP_ROLE, pool_size, schema)
        self._service = _engine(url, SERVICE_ROLE, 4, schema)
        # Alone: a crowd of other queries must not keep a worker from hearing what was switched off.
        self._feed = _engine(url, SERVICE_ROLE, 1, schema)
        self._app_sessions = async_sessionmaker(self._app, expire_on_commit=False, sync_session_class=sessions)
        self._service_sessions = async_sessionmaker(self._service, expire_on_commit=False)
        self._feed_sessions = async_sessionmaker(self._feed, expire_on_commit=False)
        self.pool_size = pool_size

    @asynccontextmanager
    async def tenant(self, tenant_id: TenantId, *, operator: bool = False) -> AsyncIterator[AsyncSession]:
        """One transaction that sees this tenant's rows alone. Rolled back unless committed.

        `operator` opens the few tables that operators manage across tenants.
        """
        async with self._app_sessions() as session:
            await _bind(session, tenant_id, operator)
            yield session

    @asynccontextmanager
    async def service(self) -> AsyncIterator[AsyncSession]:
        """One transaction as the service role. For named cross-tenant queries only."""
        async with self._service_sessions() as session:
            yield session

    @asynccontextmanager
    async def feed(self) -> AsyncIterator[AsyncSession]:
        """The same on a connection that the change feed has for itself."""
        async with self._feed_sessions() as session:
            yield session

    @asynccontextmanager
    async def at_once(self) -> AsyncIterator[AsyncConnection]:
        """As the service role; each statement is a transaction of its own. So the locks that it takes are gone when it
        is done, and do not wait for this process to hear of it."""
        async with self._service.connect() as connection:
            yield await connection.execution_options(isolation_level="AUTOCOMMIT")

    async def service_connection(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        """A connection of its own, outside the pool and in autocommit: for LISTEN."""
        return await roles.connect_async(
            self.url, SERVICE_ROLE, schema=self.schema, autocommit=True, connect_timeout=5, application_name="gatehouse"
        )

    def available_connections(self) -> int:
        """How many more administration requests could get a connection now."""
        pool = self._app.pool
        assert isinstance(pool, QueuePool)
        return self.pool_size - pool.checkedout()

    async def close(self) -> None:
        await self._app.dispose()
        await self._service.dispose()
        await self._feed.dispose()


@asynccontextmanager
async def bound_to(session: AsyncSession, tenant_id: TenantId) -> AsyncIterator[None]:
    """Lets a session see another tenant's rows, and those alone, for the time of a block in its transaction."""
    before, operator = session.info["tenant_id"], session.info["operator"]
    await session.flush()
    await _bind(session, tenant_id, operator=False)
    yield
    # Not after an error: that transaction is over.
    await session.flush()
    await _bind(session, before, operator)


async def _bind(session: AsyncSession, tenant_id: TenantId, operator: bool) -> None:
    """Raises `WrongRole`, whatever took the role away: without it the session would see every tenant's rows."""
    bound = await session.execute(_BIND, {"tenant": str(tenant_id), "operator": "on" if operator else "off"})
    try:
        roles.check(APP_ROLE, bound.one())
    except roles.WrongRole:
        # Nobody else gets that connection.
        await session.invalidate()
        raise
    session.info.update(tenant_id=tenant_id, operator=operator)


def _engine(url: str, role: str, pool_size: int, schema: str | None) -> AsyncEngine:
    engine = create_async_engine(
        sqlalchemy_url(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=5,
        # An error's text goes into logs: what was written (a password's hash) must not.
        hide_parameters=True,
        connect_args=roles.parameters(url, connect_timeout=5, application_name="gatehouse"),
    )
    roles.act_as(engine, role, schema)
    event.listen(engine.sync_engine, "checkout", _alive)
    event.listen(engine.sync_engine, "handle_error", _was_silent)
    return engine


def _was_silent(context: ExceptionContext) -> BaseException | None:
    """The driver counts a transaction that the database ended, for its owner was silent, as a fault of the program. It
    is a lost connection."""
    if isinstance(context.original_exception, psycopg.errors.IdleInTransactionSessionTimeout):
        return OperationalError(context.statement, None, context.original_exception, hide_parameters=True)
    return None


def _alive(connection: DBAPIConnection, _record: object, _proxy: object) -> None:
    """A server that was restarted leaves dead connections in the pool. One shows without being asked, which would cost
    each transaction a round trip: something is there to be read that nobody has asked for, a last word or the end."""
    driver = connection.driver_connection
    assert isinstance(driver, psycopg.AsyncConnection)
    if driver.closed or _readable(driver.fileno()):
        raise DisconnectionError


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
