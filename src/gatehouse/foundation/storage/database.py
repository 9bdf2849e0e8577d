"""Connection pools, each with the role that its work needs.

    app      administration: owns nothing, sees one tenant's rows at a time (row-level security)
    service  named queries that are cross-tenant by nature: credentials, policies, the drain of the journal
    owner    migrations

All three use the login in `DATABASE_URL`, and `roles` sets the role. If this login must own nothing, set
`DATABASE_OWNER_URL` to a URL with the owner's login.
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
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria
from sqlalchemy.pool import QueuePool

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import APP_ROLE, SERVICE_ROLE
from gatehouse.foundation.storage.rows import TenantRow


class TenantSession(Session):
    """A session that adds the condition `tenant_id = info["tenant_id"]` to each query. For plain SQL it adds nothing,
    so only row-level security applies."""


@event.listens_for(TenantSession, "do_orm_execute")
def _only_own_rows(state: ORMExecuteState) -> None:
    if not (state.is_select or state.is_update or state.is_delete):
        return
    tenant_id = state.session.info["tenant_id"]
    state.statement = state.statement.options(
        with_loader_criteria(TenantRow, lambda row: row.tenant_id == tenant_id, include_aliases=True)
    )


# The statement also returns the current role, because row-level security applies only to the application's role.
_BIND = text(
    "SELECT set_config('gatehouse.tenant', :tenant, true), set_config('gatehouse.operator', :operator, true),"
    " current_user"
)


def sqlalchemy_url(url: str) -> str:
    """Returns the URL in SQLAlchemy's form. Accepts both URL schemes of PostgreSQL."""
    return "postgresql+psycopg://" + url.split("://", 1)[1]


class Database:
    """The connections of a process. They are opened at first use, so that a process can start while the database is
    unavailable.

    `schema` is the search path. `sessions` is the class of sessions that select only the rows of one tenant.
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
        # The change feed and the leases of jobs have a pool of their own, so that other queries do not delay them.
        self._feed = _engine(url, SERVICE_ROLE, 1, schema)
        self._app_sessions = async_sessionmaker(self._app, expire_on_commit=False, sync_session_class=sessions)
        self._service_sessions = async_sessionmaker(self._service, expire_on_commit=False)
        self._feed_sessions = async_sessionmaker(self._feed, expire_on_commit=False)
        self.pool_size = pool_size

    @asynccontextmanager
    async def tenant(self, tenant_id: TenantId, *, operator: bool = False) -> AsyncIterator[AsyncSession]:
        """Opens a transaction that sees only this tenant's rows. It is rolled back unless committed.

        `operator` gives access to the few tables that operators manage across tenants.
        """
        async with self._app_sessions() as session:
            await _bind(session, tenant_id, operator)
            yield session

    @asynccontextmanager
    async def service(self) -> AsyncIterator[AsyncSession]:
        """Opens a transaction as the service role, only for named cross-tenant queries."""
        async with self._service_sessions() as session:
            yield session

    @asynccontextmanager
    async def feed(self) -> AsyncIterator[AsyncSession]:
        """Opens a transaction as the service role on the connection of the change feed and of the leases of jobs."""
        async with self._feed_sessions() as session:
            yield session

    @asynccontextmanager
    async def at_once(self) -> AsyncIterator[AsyncConnection]:
        """Opens a connection as the service role in autocommit. Each statement is a transaction of its own, so its
        locks are released immediately and not after another round trip."""
        async with self._service.connect() as connection:
            yield await connection.execution_options(isolation_level="AUTOCOMMIT")

    async def service_connection(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        """Returns a connection for LISTEN, outside the pools and in autocommit."""
        return await roles.connect_async(
            self.url, SERVICE_ROLE, schema=self.schema, autocommit=True, connect_timeout=5, application_name="gatehouse"
        )

    def available_connections(self) -> int:
        """Returns the number of connections for administration that are free now."""
        pool = self._app.pool
        assert isinstance(pool, QueuePool)
        return self.pool_size - pool.checkedout()

    async def close(self) -> None:
        await self._app.dispose()
        await self._service.dispose()
        await self._feed.dispose()


@asynccontextmanager
async def bound_to(session: AsyncSession, tenant_id: TenantId) -> AsyncIterator[None]:
    """Binds a session to another tenant during a block. The transaction continues."""
    previous_tenant, operator = session.info["tenant_id"], session.info["operator"]
    await session.flush()
    await _bind(session, tenant_id, operator=False)
    yield
    # After an error the transaction has ended, so this is not in a `finally` block.
    await session.flush()
    await _bind(session, previous_tenant, operator)


async def _bind(session: AsyncSession, tenant_id: TenantId, operator: bool) -> None:
    """Binds a session to a tenant. Raises `WrongRole` if the connection has lost its role, because the session would
    then see the rows of all tenants."""
    result = await session.execute(_BIND, {"tenant": str(tenant_id), "operator": "on" if operator else "off"})
    try:
        roles.check(APP_ROLE, result.one())
    except roles.WrongRole:
        # Do not return the connection to the pool.
        await session.invalidate()
        raise
    session.info.update(tenant_id=tenant_id, operator=operator)


def _engine(url: str, role: str, pool_size: int, schema: str | None) -> AsyncEngine:
    engine = create_async_engine(
        sqlalchemy_url(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=5,
        # The text of errors is logged, and must not contain parameters such as a password's hash.
        hide_parameters=True,
        connect_args=roles.parameters(url, connect_timeout=5, application_name="gatehouse"),
    )
    roles.act_as(engine, role, schema)
    event.listen(engine.sync_engine, "checkout", _check_alive)
    event.listen(engine.sync_engine, "handle_error", _as_lost_connection)
    return engine


def _as_lost_connection(context: ExceptionContext) -> BaseException | None:
    """Converts the driver's error for a transaction that PostgreSQL has ended because it was idle. The error becomes an
    `OperationalError`, because it is a lost connection and not a fault of the program."""
    if isinstance(context.original_exception, psycopg.errors.IdleInTransactionSessionTimeout):
        return OperationalError(context.statement, None, context.original_exception, hide_parameters=True)
    return None


def _check_alive(connection: DBAPIConnection, _record: object, _proxy: object) -> None:
    """Raises `DisconnectionError` if the server has closed the connection, for example at a restart. Then the socket is
    readable without a query: it has a final message or the end of the stream. Unlike a ping, this test costs no round
    trip for each transaction."""
    driver = connection.driver_connection
    assert isinstance(driver, psycopg.AsyncConnection)
    if driver.closed or _readable(driver.fileno()):
        raise DisconnectionError


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
