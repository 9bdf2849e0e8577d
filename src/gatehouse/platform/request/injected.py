"""Dependencies of routes: a session of the caller's tenant, a change, and the row that the path names."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.storage.rows import Row
from gatehouse.platform.changes.change import DEFAULT_TENANT, Change
from gatehouse.platform.live import models
from gatehouse.platform.live.nodes import Propagation, wait_until_confirmed
from gatehouse.platform.request.etags import READ_METHODS, TheVersions
from gatehouse.platform.request.ports import Host, TheHost

R = TypeVar("R", bound=Row)


async def _tenant_session(request: Request, host: TheHost) -> AsyncIterator[AsyncSession]:
    """Yield a session of the caller's tenant. The caller is already authorized, because routes declare it first."""
    caller: Caller = request.scope["state"]["caller"]
    # A platform-wide client has no tenant, so it acts in the tenant of the operators.
    operator = caller.operator or caller.tenant_id is None
    async with host.database.tenant(caller.tenant_id or DEFAULT_TENANT, operator=operator) as session:
        yield session


#: A session for reading: one transaction, rolled back at the end.
Session = Annotated[AsyncSession, Depends(_tenant_session, scope="function")]


async def _change(request: Request, session: Session, host: TheHost, versions: TheVersions) -> AsyncIterator[Change]:
    """Yield a change. It is committed after the route has returned and before its response is sent. If the route raised
    an exception, the change is rolled back."""
    state = request.scope["state"]
    change = Change(session, state["caller"], request_id=state["request_id"], ip=state["client_address"])
    # The version is not checked where the row is loaded, because the caller's right to see the row is checked in
    # between.
    versions.require()
    yield change
    missing = await models.load_ahead(change, host.detectors)
    await commit(change, host)
    versions.changed()
    if missing:
        state["response_headers"]["X-Gateway-Warning"] = models.WARNING.format(" and ".join(missing))


@asynccontextmanager
async def changing(
    request: Request, host: Host, tenant_id: TenantId, caller: Caller | None = None
) -> AsyncIterator[Change]:
    """Yield a change in a tenant that no credential of the request names, for example at sign-in.

    The change is committed at the end of the block. So slow work, such as hashing a password, can be done before the
    block, when no connection is occupied. `caller` may be set on the change later, once the caller is identified.
    """
    state = request.scope["state"]
    async with host.database.tenant(tenant_id) as session:
        change = Change(
            session, caller, tenant_id=tenant_id, request_id=state["request_id"], ip=state["client_address"]
        )
        yield change
        await commit(change, host)


async def commit(change: Change, host: TheHost) -> Propagation | None:
    """Commit, and after an urgent change wait at most two seconds until every live worker has confirmed it.

    Returns the propagation of an urgent change. A route that returns the propagation commits by itself; the later
    commit of `Changing` then does nothing.
    """
    await change.commit()
    if not change.urgent or change.revision is None:
        return None
    change.urgent = False
    return await wait_until_confirmed(host.database, change.revision)


#: A change in the same session. It is committed once.
Changing = Annotated[Change, Depends(_change, scope="function")]


class SplitTransactions:
    """Separate transactions for a route that calls an external system between them. So an external system that hangs
    does not occupy a database connection."""

    def __init__(self, request: Request, host: TheHost) -> None:
        state = request.scope["state"]
        self.caller: Caller = state["caller"]
        self.tenant_id = self.caller.tenant_id or DEFAULT_TENANT
        self._request_id: str = state["request_id"]
        self._ip: str = state["client_address"]
        self._host = host

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncSession]:
        """Yield a session for reading. It is rolled back at the end of the block."""
        operator = self.caller.operator or self.caller.tenant_id is None
        async with self._host.database.tenant(self.tenant_id, operator=operator) as session:
            yield session

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[Change]:
        """Yield a change. It is committed at the end of the block, or rolled back if the block raised an exception."""
        async with self.reading() as session:
            change = Change(session, self.caller, request_id=self._request_id, ip=self._ip)
            yield change
            await commit(change, self._host)


async def _split_transactions(request: Request, host: TheHost) -> SplitTransactions:
    return SplitTransactions(request, host)


InSplitTransactions = Annotated[SplitTransactions, Depends(_split_transactions)]


def loaded(
    row: type[R], parameter: str, missing: type[NotFound], *, column: str = "id", part: str = ""
) -> Callable[..., Any]:
    """Return a dependency that loads the row that a path parameter names, from the caller's tenant. The dependency
    raises `missing` if the row does not exist or belongs to another tenant.

    The row is locked if the request can change it. So concurrent changes are serialized, and a change whose `If-Match`
    names another version is refused with 412. The response has the row's `ETag` if the path ends with the parameter, or
    with the parameter and `part`.
    """
    key = getattr(row, column)

    async def load(
        session: Session, request: Request, versions: TheVersions, row_id: Annotated[PathId, Path(alias=parameter)]
    ) -> Row:
        if row_id is None:
            raise missing
        query = select(row).where(key == row_id)
        if request.method not in READ_METHODS:
            query = query.with_for_update()
        record = (await session.scalars(query)).one_or_none()
        if record is None:
            raise missing
        versions.about(record, parameter, part=part)
        return record

    return load
