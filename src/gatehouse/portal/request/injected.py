"""Parameters of routes: a session that is bound to one organization, a change, and the row that the path names."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Annotated, Final

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration.etags import TheVersions, checks_if_match
from gatehouse.administration.injected import RequestTransactions, row_loader
from gatehouse.portal.change import PortalChange
from gatehouse.portal.errors import PortalOrganizationNotFound
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.identity import OrgId, PortalCaller


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


@checks_if_match
async def _change(session: Session, transactions: _Transactions, versions: TheVersions) -> AsyncIterator[PortalChange]:
    """Yields a change. It is committed after the route has returned and before its response is sent. If the route
    raises an error, it is rolled back."""
    async with transactions.changing_row(session, versions) as change:
        yield change


#: A change in the transaction of `Session`, which is committed once.
Changing = Annotated[PortalChange, Depends(_change, scope="function")]


def changing(
    request: Request, host: PortalHost, org_id: OrgId, caller: PortalCaller | None = None
) -> AbstractAsyncContextManager[PortalChange]:
    """Yields a change in an organization that is not in the path: an organization that is being created, or the
    organization of the caller or of a sign-in. The change is committed at the end of the block."""
    return OrgTransactions(request, host, org_id, caller).changing()


#: `loaded(row_class, parameter, not_found_error)` returns a dependency that loads the row that the path names.
loaded: Final = partial(row_loader, _session)
