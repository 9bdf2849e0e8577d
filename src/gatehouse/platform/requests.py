"""What a route gets handed: a session bound to the caller's tenant, a change to make, the row that the path names."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Depends, Path, Request
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.storage.rows import Row
from gatehouse.platform.change import DEFAULT_TENANT, Change
from gatehouse.platform.live.nodes import wait_for
from gatehouse.platform.ports import TheHost

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


async def _change(request: Request, session: Session, host: TheHost) -> AsyncIterator[Change]:
    """Committed when the route has returned, before its answer is sent; rolled back when it raised."""
    state = request.scope["state"]
    change = Change(session, state["caller"], request_id=state["request_id"], ip=state["client_address"])
    yield change
    await commit(change, host)


async def commit(change: Change, host: TheHost) -> None:
    """Commits, and after an urgent change waits until every live worker has confirmed it (two seconds at most)."""
    await change.commit()
    if change.urgent and change.revision is not None:
        await wait_for(host.database, change.revision)


#: For changing: the same session, committed once.
Changing = Annotated[Change, Depends(_change, scope="function")]


def loaded(row: type[R], parameter: str, missing: type[NotFound], *, column: str = "id") -> Callable[..., Any]:
    """A dependency: the caller's tenant's row that a path parameter names. Absent or another tenant's is `missing`.

    Locked for change where the request can change it: two changes at once are one after the other.
    """
    key = getattr(row, column)

    async def load(session: Session, request: Request, wanted: Annotated[UUID, Path(alias=parameter)]) -> Row:
        query = select(row).where(key == wanted)
        if request.method not in {"GET", "HEAD"}:
            query = query.with_for_update()
        found = (await session.scalars(query)).one_or_none()
        if found is None:
            raise missing
        return found

    return load
