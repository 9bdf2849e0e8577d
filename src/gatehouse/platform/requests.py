"""What a route gets handed: a session bound to the caller's tenant, a change to make, the row that the path names."""

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
from gatehouse.platform.change import DEFAULT_TENANT, Change
from gatehouse.platform.live import models
from gatehouse.platform.live.nodes import Propagation, wait_for
from gatehouse.platform.ports import Host, TheHost
from gatehouse.platform.versions import READING, TheVersions

R = TypeVar("R", bound=Row)


async def _tenant_session(request: Request, host: TheHost) -> AsyncIterator[AsyncSession]:
    """Bound to the caller's tenant. The caller was judged before: routes name it first."""
    caller: Caller = request.scope["state"]["caller"]
    # A platform-wide client has no tenant: it acts where operators act.
    operator = caller.operator or caller.tenant_id is None
    async with host.database.tenant(caller.tenant_id or DEFAULT_TENANT, operator=operator) as session:
        yield session


#: For reading: one transaction, rolled back at the end.
Session = Annotated[AsyncSession, Depends(_tenant_session, scope="function")]


async def _change(request: Request, session: Session, host: TheHost, versions: TheVersions) -> AsyncIterator[Change]:
    """Committed when the route has returned, before its answer is sent; rolled back when it raised."""
    state = request.scope["state"]
    change = Change(session, state["caller"], request_id=state["request_id"], ip=state["client_address"])
    # Here, and not where the row is loaded: whether it is the caller's to see was judged in between.
    versions.require()
    yield change
    missing = await models.load_ahead(change, host.detectors)
    await commit(change, host)
    versions.changed()
    if missing:
        state["told"]["X-Gateway-Warning"] = models.WARNING.format(" and ".join(missing))


@asynccontextmanager
async def changing(
    request: Request, host: Host, tenant_id: TenantId, caller: Caller | None = None
) -> AsyncIterator[Change]:
    """A change in a tenant that the caller's credential does not name: signing in, and the like.

    Committed at the end of the block, so that slow work (a password's hash) can be done before it, without holding a
    connection. `caller` may be set on the change once it is known who it is.
    """
    state = request.scope["state"]
    async with host.database.tenant(tenant_id) as session:
        change = Change(
            session, caller, tenant_id=tenant_id, request_id=state["request_id"], ip=state["client_address"]
        )
        yield change
        await commit(change, host)


async def commit(change: Change, host: TheHost) -> Propagation | None:
    """Commits, and after an urgent change waits until every live worker has confirmed it (two seconds at most).

    The answer is how far an urgent change has come. A route that shows it commits by itself; the commit that follows
    it then finds nothing left to do.
    """
    await change.commit()
    if not change.urgent or change.revision is None:
        return None
    change.urgent = False
    return await wait_for(host.database, change.revision)


#: For changing: the same session, committed once.
Changing = Annotated[Change, Depends(_change, scope="function")]


class Apart:
    """For a route that asks the outside world in the middle: what it reads and what it changes are transactions of
    their own, so that a provider that hangs holds no connection to the database."""

    def __init__(self, request: Request, host: TheHost) -> None:
        state = request.scope["state"]
        self.caller: Caller = state["caller"]
        self.tenant_id = self.caller.tenant_id or DEFAULT_TENANT
        self._request_id: str = state["request_id"]
        self._ip: str = state["client_address"]
        self._host = host

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncSession]:
        operator = self.caller.operator or self.caller.tenant_id is None
        async with self._host.database.tenant(self.tenant_id, operator=operator) as session:
            yield session

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[Change]:
        """Committed at the end of the block, rolled back when it raised."""
        async with self.reading() as session:
            change = Change(session, self.caller, request_id=self._request_id, ip=self._ip)
            yield change
            await commit(change, self._host)


InParts = Annotated[Apart, Depends(Apart)]


def loaded(
    row: type[R], parameter: str, missing: type[NotFound], *, column: str = "id", part: str = ""
) -> Callable[..., Any]:
    """A dependency: the caller's tenant's row that a path parameter names. Absent or another tenant's is `missing`.

    Locked for change where the request can change it: two changes at once are one after the other, and one that names
    another version in `If-Match` is 412. The answer carries the row's `ETag` where the path ends with the parameter, or
    with a `part` of the row behind it.
    """
    key = getattr(row, column)

    async def load(
        session: Session, request: Request, versions: TheVersions, wanted: Annotated[PathId, Path(alias=parameter)]
    ) -> Row:
        if wanted is None:
            raise missing
        query = select(row).where(key == wanted)
        if request.method not in READING:
            query = query.with_for_update()
        found = (await session.scalars(query)).one_or_none()
        if found is None:
            raise missing
        versions.about(found, parameter, part=part)
        return found

    return load
