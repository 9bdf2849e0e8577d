"""What the parameters of routes are made of (`request.injected` of platform and portal): the transactions of a request,
and the row that the path names."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Depends, Path
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from gatehouse.administration.changes import AuditedChange, RequestOrigin, load_row
from gatehouse.administration.etags import READ_METHODS, TheVersions, Versions, without_version
from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.storage.rows import Row

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

    @asynccontextmanager
    async def changing_row(self, session: AsyncSession, versions: Versions) -> AsyncIterator[C]:
        """Yield a change in the session. It is committed at the end of the block. Raises `PreconditionFailed` if the
        request names another version of its row."""
        change = self.new_change(session)
        # The version is checked here, and not where the row is loaded, because the right to see the row is checked
        # between the two.
        versions.require()
        yield change
        await self.commit(change)
        versions.changed()


def row_loader(
    session_dependency: Callable[..., Any],
    row_class: type[Row],
    parameter: str,
    not_found_error: type[NotFound],
    *,
    column: str = "id",
    part: str = "",
) -> Callable[..., Any]:
    """Return a dependency that loads the row of the caller's organization with the value of a path parameter in
    `column`. The dependency raises `not_found_error` if the row does not exist or belongs to another organization.

    The row is locked if the request can change it, so that concurrent changes are serialized. A change with another
    version in `If-Match` is refused with 412. The response has the row's `ETag` if the path ends with the parameter, or
    with the parameter and `part`.
    """
    key_column = getattr(row_class, column)

    async def load(
        request: Request,
        versions: TheVersions,
        row_id: Annotated[PathId, Path(alias=parameter)],
        session: AsyncSession = Depends(session_dependency, scope="function"),
    ) -> Row:
        lock = request.method not in READ_METHODS
        record = await load_row(session, row_class, key_column, row_id, not_found_error, lock=lock)
        versions.about(record, parameter, part=part)
        return record

    return load if hasattr(row_class, "updated_at") else without_version(load)
