"""Parameters of routes: a session that is bound to one organization, a change, and the row that the path names."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration.changes import load_row
from gatehouse.administration.etags import READ_METHODS
from gatehouse.administration.injected import RequestTransactions
from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.storage.rows import Row
from gatehouse.portal.change import PortalChange
from gatehouse.portal.errors import PortalOrganizationNotFound
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.identity import OrgId, PortalCaller

R = TypeVar("R", bound=Row)


class OrgTransactions(RequestTransactions[PortalChange]):
    """Transactions in an organization. `caller` is None while an invitation is accepted."""

    def __init__(self, request: Request, host: PortalHost, org_id: OrgId, caller: PortalCaller | None = None) -> None:
        super().__init__(request)
        self._host = host
        self._org_id = org_id
        self._caller = caller

    def reading(self) -> AbstractAsyncContextManager[AsyncSession]:
        return self._host.database.tenant(self._org_id)

    def new_change(self, session: AsyncSession) -> PortalChange:
        return PortalChange(session, self._org_id, self._caller, self.origin)

    async def commit(self, change: PortalChange) -> None:
        await change.commit()
        self._host.token_statuses.invalidate()
        self._host.jobs.wake()


async def _org_transactions(request: Request, host: TheHost) -> OrgTransactions:
    """Returns transactions in the caller's organization. The caller has been checked before, because routes declare it
    first."""
    caller: PortalCaller = request.scope["state"]["caller"]
    if caller.org_id is None:
        # The organization in the path is not an id.
        raise PortalOrganizationNotFound
    return OrgTransactions(request, host, caller.org_id, caller)


_Transactions = Annotated[OrgTransactions, Depends(_org_transactions)]


async def _session(transactions: _Transactions) -> AsyncIterator[AsyncSession]:
    async with transactions.reading() as session:
        yield session


#: A session for reads. It is one transaction, which is rolled back at the end.
Session = Annotated[AsyncSession, Depends(_session, scope="function")]


async def _change(session: Session, transactions: _Transactions) -> AsyncIterator[PortalChange]:
    """Yields a change. It is committed after the route has returned and before its response is sent. If the route
    raises an error, it is rolled back."""
    change = transactions.new_change(session)
    yield change
    await transactions.commit(change)


#: A change in the transaction of `Session`, which is committed once.
Changing = Annotated[PortalChange, Depends(_change, scope="function")]


def changing(
    request: Request, host: PortalHost, org_id: OrgId, caller: PortalCaller | None = None
) -> AbstractAsyncContextManager[PortalChange]:
    """Yields a change in an organization that is not in the path: an organization that is being created, or the
    organization of the caller or of a sign-in. The change is committed at the end of the block."""
    return OrgTransactions(request, host, org_id, caller).changing()


def loaded(row_class: type[R], parameter: str, not_found_error: type[NotFound]) -> Callable[..., Any]:
    """Returns a dependency that loads the row whose id is in a path parameter. The dependency raises `not_found_error`
    if the organization has no such row. The row is locked if the request can change it, so that concurrent changes are
    serialized."""
    id_column = row_class.id  # type: ignore[attr-defined]

    async def load(session: Session, request: Request, row_id: Annotated[PathId, Path(alias=parameter)]) -> Row:
        lock = request.method not in READ_METHODS
        return await load_row(session, row_class, id_column, row_id, not_found_error, lock=lock)

    return load
