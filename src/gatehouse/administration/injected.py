"""The transactions of a request, which the parameters of routes use (`request.injected` of platform and portal)."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Generic, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from gatehouse.administration.changes import AuditedChange, RequestOrigin

C = TypeVar("C", bound=AuditedChange[Any])


class RequestTransactions(Generic[C]):
    """Transactions of one request in one organization. Each block is a transaction of its own. So a route can call an
    external system between two blocks, and occupies no database connection meanwhile."""

    def __init__(self, request: Request) -> None:
        self.origin: Final = RequestOrigin.of(request)

    def reading(self) -> AbstractAsyncContextManager[AsyncSession]:
        """Yield a session for reading. It is rolled back at the end of the block."""
        raise NotImplementedError

    def new_change(self, session: AsyncSession) -> C:
        """Return a change in the transaction of the session."""
        raise NotImplementedError

    async def commit(self, change: C) -> None:
        """Commit the change, and announce it to the other parts of the application."""
        raise NotImplementedError

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[C]:
        """Yield a change. It is committed at the end of the block, or rolled back if the block raised an exception."""
        async with self.reading() as session:
            change = self.new_change(session)
            yield change
            await self.commit(change)
