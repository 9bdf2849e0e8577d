"""Parameters of routes: a session that is bound to one organization, a change, and the row that the path names."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration.changes import RequestOrigin, load_row
from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.storage.rows import Row
from gatehouse.portal.change import PortalChange
from gatehouse.portal.errors import PortalOrganizationNotFound
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.identity import OrgId, PortalCaller

R = TypeVar("R", bound=Row)


async def _session(request: Request, host: TheHost) -> AsyncIterator[AsyncSession]:
    """Yields a session that is bound to the caller's organization. The caller has been checked before, because routes
    declare it first."""
    caller: PortalCaller = request.scope["state"]["caller"]
    if caller.org_id is None:
        # The organization in the path is not an id.
        raise PortalOrganizationNotFound
    async with host.database.tenant(caller.org_id) as session:
        yield session


#: A session for reads. It is one transaction, which is rolled back at the end.
Session = Annotated[AsyncSession, Depends(_session, scope="function")]


async def _change(request: Request, session: Session, host: TheHost) -> AsyncIterator[PortalChange]:
    """Yields a change. It is committed after the route has returned and before its response is sent. If the route
    raises an error, it is rolled back."""
    caller: PortalCaller = request.scope["state"]["caller"]
    change = PortalChange(session, caller.org_id, caller, RequestOrigin.of(request))
    yield change
    await commit(change, host)


#: A change in the transaction of `Session`, which is committed once.
Changing = Annotated[PortalChange, Depends(_change, scope="function")]


@asynccontextmanager
async def changing(
    request: Request, host: PortalHost, org_id: OrgId, caller: PortalCaller | None = None
) -> AsyncIterator[PortalChange]:
    """Yields a change in an organization that the path does not name, such as a new one, or the one of a sign-in. The
    change is committed at the end of the block."""
    async with host.database.tenant(org_id) as session:
        change = PortalChange(session, org_id, caller, RequestOrigin.of(request))
        yield change
        await commit(change, host)


async def commit(change: PortalChange, host: PortalHost) -> None:
    await change.commit()
    host.token_statuses.invalidate()
    host.jobs.wake()


def loaded(row: type[R], parameter: str, missing: type[NotFound]) -> Callable[..., Any]:
    """Returns a dependency that loads the row whose id is in a path parameter, and raises `missing` if the organization
    has no such row. A request that may change the row locks it, so that concurrent changes are serialized."""
    key = row.id  # type: ignore[attr-defined]

    async def load(session: Session, request: Request, row_id: Annotated[PathId, Path(alias=parameter)]) -> Row:
        return await load_row(session, row, key, row_id, missing, lock=request.method not in {"GET", "HEAD"})

    return load
