"""The three styles of pagination: page, offset and cursor.

A FastAPI dependency makes a window from the query: `apply` limits a `select`, `envelope` builds the response. Each list
declares its own dependency with its own bounds:

    Window = Annotated[OffsetWindow, Depends(offset_window(default=100, maximum=200))]

A value out of bounds is a 422 that names the parameter; a cursor that this service did not issue is a 400 that names
`cursor`.
"""

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec
from fastapi import Depends, Query, Request
from fastapi.dependencies.utils import get_dependant
from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import InstrumentedAttribute

from gatehouse.foundation.errors import BadRequest
from gatehouse.foundation.http.middleware.known_parameters import unknown_parameters
from gatehouse.foundation.http.variants import RequestVariant, Variant

#: beyond the end of every list; the resulting offset fits PostgreSQL's bigint
_MAX_OFFSET: Final = 1_000_000_000
_MAX_CURSOR_CHARS: Final = 4096

Row = TypeVar("Row")
Statement = TypeVar("Statement", bound=Select[Any])


class BadCursor(BadRequest):
    code = "invalid_cursor"
    message = "cursor: not one that this list has issued; pass next_cursor back unchanged."


class CursorFiltersChanged(BadRequest):
    code = "invalid_cursor"
    message = "cursor: it belongs to other filters; start again without it to change them."


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


def page_window(
    *, default: int = 50, maximum: int = 200, size_name: str = "page_size"
) -> Callable[..., Awaitable[PageWindow]]:
    """Return the dependency of a list in page style."""

    async def window(
        page: Annotated[int, Query(ge=1, le=_MAX_OFFSET, description="Counts from 1.")] = 1,
        size: Annotated[int, Query(alias=size_name, ge=1, le=maximum, description="Rows a page.")] = default,
    ) -> PageWindow:
        return PageWindow(page, size, size_name)

    return window


def offset_window(*, default: int = 50, maximum: int = 200) -> Callable[..., Awaitable[OffsetWindow]]:
    """Return the dependency of a list in offset style."""

    async def window(
        limit: Annotated[int, Query(ge=1, le=maximum, description="Rows to return at most.")] = default,
        offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET, description="Rows to skip.")] = 0,
    ) -> OffsetWindow:
        return OffsetWindow(limit, offset)

    return window


def by_variant(
    *, a: Callable[..., Awaitable[Window]], b: Callable[..., Awaitable[Window]]
) -> Callable[..., Awaitable[Window]]:
    """Return the dependency of a list whose style depends on the variant. Variant C uses that of A."""

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
    """Return the query parameters of a window's dependency."""
    dependant = get_dependant(path="", call=window)
    return frozenset(field.alias for field in dependant.query_params)


def count_query(statement: Select[Any]) -> Select[int]:
    """Return the query for the number of rows without the window: the envelope's `total`."""
    return select(func.count()).select_from(statement.order_by(None).limit(None).offset(None).subquery())


class _CursorContent(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    position: int
    filters: dict[str, str]


class CursorSigner:
    """Issues signed cursors and verifies them. `key` is a secret of at least 32 bytes, the same in every worker."""

    def __init__(self, key: bytes) -> None:
        if len(key) < 32:
            raise ValueError("a cursor key needs 32 bytes")
        self._key = key
        self._decoder = msgspec.json.Decoder(_CursorContent)

    def issue(self, position: int, filters: Mapping[str, str], *, context: str) -> str:
        """Return a cursor. It is valid only for `context`, which names the list and the tenant."""
        content = msgspec.json.encode(_CursorContent(position, dict(filters)))
        return urlsafe_b64encode(self._mac(content, context) + content).decode().rstrip("=")

    def read(self, cursor: str, *, context: str) -> tuple[int, dict[str, str]]:
        """Return the cursor's position and filters. Raises `BadCursor`."""
        if len(cursor) > _MAX_CURSOR_CHARS:
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
        # The length separates the context from the content: no other split of the same bytes has this MAC.
        prefix = context.encode()
        return hmac.digest(self._key, b"%d:%b" % (len(prefix), prefix) + content, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class CursorWindow:
    """A window in cursor style. `cursor` is unverified."""

    limit: int
    cursor: str | None

    def open(self, signer: CursorSigner, filters: Mapping[str, str | None], *, context: str) -> "OpenCursor":
        """Verifies the cursor. A cursor carries its filters; filters sent with it must be equal or absent. Raises
        `BadCursor`, `CursorFiltersChanged`."""
        sent = {name: value for name, value in filters.items() if value is not None}
        if self.cursor is None:
            return OpenCursor(self.limit, None, sent, signer, context)
        position, cursor_filters = signer.read(self.cursor, context=context)
        if any(cursor_filters.get(name) != value for name, value in sent.items()):
            raise CursorFiltersChanged
        return OpenCursor(self.limit, position, cursor_filters, signer, context)


@dataclass(frozen=True, slots=True)
class OpenCursor:
    """A verified cursor: where the list continues, with its filters. `position` is the last row's value of the ordering
    column, or None at the beginning."""

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
        """Orders by `column`, which must be unique, and selects one row more than the limit, which shows whether there
        are more."""
        if self.position is not None:
            statement = statement.where(column < self.position if descending else column > self.position)
        return statement.order_by(column.desc() if descending else column).limit(self.limit + 1)

    def tail(self, rows: Sequence[Row], *, position: Callable[[Row], int]) -> str:
        """Return the cursor for the rows after these in ascending order, even if there are none yet. A filter `order`
        of `desc` is removed. For lists that only grow at their end, with positions from 1."""
        last = max(map(position, rows[: self.limit]), default=self.position or 0)
        filters = {name: value for name, value in self.filters.items() if (name, value) != ("order", "desc")}
        return self.signer.issue(last, filters, context=self.context)

    def envelope(
        self, name: str, rows: Sequence[Row], *, position: Callable[[Row], int], shown: Callable[[Row], Any]
    ) -> dict[str, Any]:
        """Return the response's body. `rows` is the result of `apply`; `position` returns a row's ordering value,
        `shown` its form in the response."""
        page = rows[: self.limit]
        has_more = len(rows) > self.limit
        next_cursor = self.signer.issue(position(page[-1]), self.filters, context=self.context) if has_more else None
        return {name: [shown(row) for row in page], "next_cursor": next_cursor, "has_more": has_more}


def cursor_window(*, default: int = 50, maximum: int = 500) -> Callable[..., Awaitable[CursorWindow]]:
    """Return the dependency of a list in cursor style."""

    async def window(
        limit: Annotated[int, Query(ge=1, le=maximum, description="Rows to return at most.")] = default,
        cursor: Annotated[str | None, Query(description="`next_cursor` of the answer before, unchanged.")] = None,
    ) -> CursorWindow:
        # Clients that fill in a template send an empty cursor for the first page.
        return CursorWindow(limit, cursor or None)

    return window
