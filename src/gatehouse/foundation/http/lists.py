"""The three styles of pagination: page, offset and cursor.

A FastAPI dependency reads a window from the query parameters. The window's `apply` limits a `select`, and its
`envelope` builds the response. Each list declares a dependency with its own bounds:

    Window = Annotated[OffsetWindow, Depends(offset_window(default=100, maximum=200))]

A value that is out of bounds is a 422 that identifies the parameter. A cursor that this service did not issue is a 400
that identifies `cursor`.
"""

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec
from fastapi import Depends, Query, Request, Response
from fastapi.dependencies.utils import get_dependant
from fastapi.params import Query as QueryParameter
from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from gatehouse.foundation.errors import BadRequest
from gatehouse.foundation.http.known_parameters import unknown_parameters
from gatehouse.foundation.http.variants import RequestVariant, Variant

#: maximum offset and page number. Every list ends before it, and the resulting offset fits into PostgreSQL's bigint.
_MAX_OFFSET: Final = 1_000_000_000
_MAX_CURSOR_CHARACTERS: Final = 4096
#: Characters of a text to search for.
_MAX_SEARCH_CHARACTERS: Final = 255
#: The header with the number of all matching rows, of lists that answer with a plain array.
TOTAL_COUNT_HEADER: Final = "X-Total-Count"

Row = TypeVar("Row")
Statement = TypeVar("Statement", bound=Select[Any])


class BadCursor(BadRequest):
    code = "invalid_cursor"
    message = "cursor: this list has not issued it. Pass the value of next_cursor back unchanged."


class CursorFiltersChanged(BadRequest):
    code = "invalid_cursor"
    message = "cursor: it belongs to other filters. To change filters, start again without a cursor."


class Window(Protocol):
    """A window in page or offset style."""

    @property
    def limit(self) -> int: ...

    @property
    def offset(self) -> int: ...

    def apply(self, statement: Statement) -> Statement: ...

    def envelope(self, name: str, items: Sequence[Any], total: int) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class PageWindow:
    """A window in page style. `page` counts from 1."""

    page: int
    size: int
    #: the parameter for the size: `page_size` or `per_page`
    size_name: str = "page_size"

    @property
    def limit(self) -> int:
        return self.size

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size

    def apply(self, statement: Statement) -> Statement:
        return statement.limit(self.limit).offset(self.offset)

    def envelope(self, name: str, items: Sequence[Any], total: int) -> dict[str, Any]:
        return {name: items, "total": total, "page": self.page, self.size_name: self.size}


@dataclass(frozen=True, slots=True)
class OffsetWindow:
    limit: int
    offset: int

    def apply(self, statement: Statement) -> Statement:
        return statement.limit(self.limit).offset(self.offset)

    def envelope(self, name: str, items: Sequence[Any], total: int) -> dict[str, Any]:
        return {name: items, "total": total, "limit": self.limit, "offset": self.offset}


@dataclass(frozen=True, slots=True)
class OptionalWindow:
    """A window of a list that returns all rows unless the client sends `limit`."""

    limit: int | None
    offset: int

    def apply(self, statement: Statement) -> Statement:
        return statement.limit(self.limit).offset(self.offset)

    def part(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the window's part of all rows."""
        return rows[self.offset :] if self.limit is None else rows[self.offset : self.offset + self.limit]


def page_window(
    *, default: int = 50, maximum: int = 200, size_name: str = "page_size"
) -> Callable[..., Awaitable[PageWindow]]:
    """Returns the dependency of a list in page style."""

    async def window(
        page: Annotated[int, Query(ge=1, le=_MAX_OFFSET, description="Counts from 1.")] = 1,
        size: Annotated[int, Query(alias=size_name, ge=1, le=maximum, description="Rows a page.")] = default,
    ) -> PageWindow:
        return PageWindow(page, size, size_name)

    return window


def offset_window(*, default: int = 50, maximum: int = 200) -> Callable[..., Awaitable[OffsetWindow]]:
    """Returns the dependency of a list in offset style."""

    async def window(
        limit: Annotated[int, Query(ge=1, le=maximum, description="Rows to return at most.")] = default,
        offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET, description="Rows to skip.")] = 0,
    ) -> OffsetWindow:
        return OffsetWindow(limit, offset)

    return window


def optional_window(*, maximum: int = 200) -> Callable[..., Awaitable[OptionalWindow]]:
    """Return the dependency of a list that returns all rows unless the client sends `limit`."""

    async def window(
        limit: Annotated[
            int | None, Query(ge=1, le=maximum, description="Rows to return at most. Without it, all rows.")
        ] = None,
        offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET, description="Rows to skip.")] = 0,
    ) -> OptionalWindow:
        return OptionalWindow(limit, offset)

    return window


def search_parameter(description: str) -> QueryParameter:
    """Return the declaration of a list's parameter `search`."""
    parameter: QueryParameter = Query(max_length=_MAX_SEARCH_CHARACTERS, pattern=r"^[^\x00]*$", description=description)
    return parameter


def sort_parameter() -> QueryParameter:
    """Return the declaration of a list's parameter `sort`. Its values are the names of `sorted_by`'s columns, with and
    without a leading minus."""
    parameter: QueryParameter = Query(description="The field to sort by. A leading `-` sorts in descending order.")
    return parameter


def containing(
    statement: Statement, search: str | None, *columns: ColumnElement[Any] | InstrumentedAttribute[Any]
) -> Statement:
    """Select rows in which one of the columns contains `search`, regardless of case."""
    if not search:
        return statement
    return statement.where(or_(*(column.icontains(search, autoescape=True) for column in columns)))


def max_total_parameter() -> QueryParameter:
    """Return the declaration of a list's parameter `max_total`, for lists with very many rows."""
    parameter: QueryParameter = Query(
        ge=1,
        le=_MAX_OFFSET,
        description="Counting stops at this number of matching rows. The total is exact if it is less. Without it, all"
        " matching rows are counted, which takes time in very long lists.",
    )
    return parameter


def sorted_by(
    statement: Statement, sort: str, columns: Mapping[str, Any], *, unique: InstrumentedAttribute[Any]
) -> Statement:
    """Sort by the column of `sort`, or by its columns if it is a tuple. Empty values of a mapped column come last;
    other expressions must not be null. `unique` orders rows with equal values, in the same direction."""
    descending = sort.startswith("-")
    column = columns[sort.removeprefix("-")]
    order = column if isinstance(column, tuple) else (column,)
    return statement.order_by(*(_ordered(part, descending=descending) for part in (*order, unique)))


def _ordered(column: Any, *, descending: bool) -> ColumnElement[Any]:
    ordered: ColumnElement[Any] = column.desc() if descending else column.asc()
    # An index can supply the order only without NULLS LAST, which matters for long lists.
    may_be_null = isinstance(column, InstrumentedAttribute) and column.expression.nullable
    return ordered.nulls_last() if may_be_null else ordered


async def windowed(
    session: AsyncSession, statement: Select[Any], window: OptionalWindow, response: Response
) -> Sequence[Any]:
    """Return the window's rows of a query of one entity, and set the header with the number of all rows."""
    total = (await session.execute(count_query(statement))).scalar_one()
    response.headers[TOTAL_COUNT_HEADER] = str(total)
    return (await session.scalars(window.apply(statement))).all()


def by_variant(
    *, a: Callable[..., Awaitable[Window]], b: Callable[..., Awaitable[Window]]
) -> Callable[..., Awaitable[Window]]:
    """Returns the dependency of a list whose style depends on the variant. Variant C has the style of variant A."""

    names_of_a, names_of_b = _parameters(a), _parameters(b)

    async def window(
        request: Request,
        variant: RequestVariant,
        of_a: Annotated[Any, Depends(a)],
        of_b: Annotated[Any, Depends(b)],
    ) -> Window:
        accepted, others = (names_of_b, names_of_a) if variant is Variant.B else (names_of_a, names_of_b)
        if unknown := sorted((others - accepted) & request.query_params.keys()):
            raise unknown_parameters(unknown, accepted)
        chosen: Window = of_b if variant is Variant.B else of_a
        return chosen

    return window


def _parameters(window: Callable[..., Awaitable[Window]]) -> frozenset[str]:
    """Returns the query parameters of a window's dependency."""
    dependant = get_dependant(path="", call=window)
    return frozenset(field.alias for field in dependant.query_params)


def count_query(statement: Select[Any], most: int | None = None) -> Select[int]:
    """Returns the query for the envelope's `total`: the number of rows of `statement` without the window, at most
    `most` if it is not None."""
    return select(func.count()).select_from(statement.order_by(None).limit(most).offset(None).subquery())


class _CursorContent(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    position: int
    filters: dict[str, str]


class CursorSigner:
    """Issues and verifies signed cursors. `key` is a secret of at least 32 bytes, which all workers share."""

    def __init__(self, key: bytes) -> None:
        if len(key) < 32:
            raise ValueError("a cursor key needs 32 bytes")
        self._key = key
        self._decoder = msgspec.json.Decoder(_CursorContent)

    def issue(self, position: int, filters: Mapping[str, str], *, context: str) -> str:
        """Returns a cursor. It is valid only for `context`, which identifies the list and the tenant."""
        content = msgspec.json.encode(_CursorContent(position, dict(filters)))
        return urlsafe_b64encode(self._mac(content, context) + content).decode().rstrip("=")

    def read(self, cursor: str, *, context: str) -> tuple[int, dict[str, str]]:
        """Returns the cursor's position and filters. Raises `BadCursor`."""
        if len(cursor) > _MAX_CURSOR_CHARACTERS:
            raise BadCursor
        try:
            raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        except (binascii.Error, ValueError):
            raise BadCursor from None
        mac, content = raw[:32], raw[32:]
        if not hmac.compare_digest(mac, self._mac(content, context)):
            raise BadCursor
        try:
            decoded = self._decoder.decode(content)
        except msgspec.MsgspecError:
            raise BadCursor from None
        return decoded.position, decoded.filters

    def _mac(self, content: bytes, context: str) -> bytes:
        # The length marks the end of the context, so that no other context and content have the same bytes.
        prefix = context.encode()
        return hmac.digest(self._key, b"%d:%b" % (len(prefix), prefix) + content, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class CursorWindow:
    """A window in cursor style. `cursor` is not verified yet."""

    limit: int
    cursor: str | None

    def open(self, signer: CursorSigner, filters: Mapping[str, str | None], *, context: str) -> "OpenCursor":
        """Returns the verified cursor. A cursor contains the filters of its list. A filter that is sent with the cursor
        must have the same value as in the cursor. Raises `BadCursor`, `CursorFiltersChanged`."""
        query_filters = {name: value for name, value in filters.items() if value is not None}
        if self.cursor is None:
            return OpenCursor(self.limit, None, query_filters, signer, context)
        position, cursor_filters = signer.read(self.cursor, context=context)
        if any(cursor_filters.get(name) != value for name, value in query_filters.items()):
            raise CursorFiltersChanged
        return OpenCursor(self.limit, position, cursor_filters, signer, context)


@dataclass(frozen=True, slots=True)
class OpenCursor:
    """A verified cursor: the position at which the list continues, and the list's filters. `position` is the last row's
    value in the ordering column, or None at the beginning of the list."""

    limit: int
    position: int | None
    filters: dict[str, str]
    signer: CursorSigner
    context: str

    def apply(
        self,
        statement: Statement,
        column: ColumnElement[int] | InstrumentedAttribute[int],
        *,
        descending: bool = False,
    ) -> Statement:
        """Returns the statement ordered by `column`, which must be unique. It selects one row more than `limit`: this
        row shows whether the list has another page."""
        if self.position is not None:
            statement = statement.where(column < self.position if descending else column > self.position)
        return statement.order_by(column.desc() if descending else column).limit(self.limit + 1)

    def tail(self, rows: Sequence[Row], *, position: Callable[[Row], int]) -> str:
        """Returns the cursor for the rows after `rows` in ascending order, even if there are no such rows yet. The
        cursor's filters lack `order` if its value is `desc`. For lists that grow only at their end, with positions from
        1."""
        last = max(map(position, rows[: self.limit]), default=self.position or 0)
        filters = {name: value for name, value in self.filters.items() if (name, value) != ("order", "desc")}
        return self.signer.issue(last, filters, context=self.context)

    def envelope(
        self, name: str, rows: Sequence[Row], *, position: Callable[[Row], int], shown: Callable[[Row], Any]
    ) -> dict[str, Any]:
        """Returns the response's body. `rows` are the rows of the statement that `apply` returned. `position` returns a
        row's value in the ordering column, and `shown` returns a row's form in the response."""
        page = rows[: self.limit]
        has_more = len(rows) > self.limit
        next_cursor = self.signer.issue(position(page[-1]), self.filters, context=self.context) if has_more else None
        return {name: [shown(row) for row in page], "next_cursor": next_cursor, "has_more": has_more}


def cursor_window(*, default: int = 50, maximum: int = 500) -> Callable[..., Awaitable[CursorWindow]]:
    """Returns the dependency of a list in cursor style."""

    async def window(
        limit: Annotated[int, Query(ge=1, le=maximum, description="Rows to return at most.")] = default,
        cursor: Annotated[str | None, Query(description="`next_cursor` of the answer before, unchanged.")] = None,
    ) -> CursorWindow:
        # Clients that build the URL from a template send an empty cursor for the first page.
        return CursorWindow(limit, cursor or None)

    return window
