"""The three ways a list is read in parts (reference 1, Paginated read-back lists).

Each is a window that a FastAPI dependency makes from the query: `apply` narrows a `select`, `envelope` builds the
answer. Bounds belong to the list, so each list makes its own dependency:

    Window = Annotated[OffsetWindow, Depends(offset_window(default=100, maximum=200))]

A value out of bounds is 422 naming the parameter; a cursor that this service did not issue is 400 naming `cursor`.
"""

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec
from fastapi import Depends, Query, Request
from fastapi.dependencies.utils import get_dependant
from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import InstrumentedAttribute

from gatehouse.foundation.errors import BadRequest
from gatehouse.foundation.http.known_parameters import unknown_parameters
from gatehouse.foundation.http.variants import RequestVariant, Variant

#: Far beyond any list, and small enough that an offset fits PostgreSQL's bigint.
_FARTHEST: Final = 1_000_000_000
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
    """What lists of page and offset style have in common."""

    @property
    def limit(self) -> int: ...

    @property
    def offset(self) -> int: ...

    def apply(self, statement: Statement) -> Statement: ...

    def envelope(self, name: str, items: Sequence[Any], total: int) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class PageWindow:
    """`page` counts from 1."""

    page: int
    size: int
    #: what the caller calls the size: `page_size`, or `per_page`
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


def page_window(*, default: int = 50, maximum: int = 200, size_name: str = "page_size") -> Callable[..., PageWindow]:
    """The dependency of a list in page style."""

    def window(
        page: Annotated[int, Query(ge=1, le=_FARTHEST, description="Counts from 1.")] = 1,
        size: Annotated[int, Query(alias=size_name, ge=1, le=maximum, description="Rows a page.")] = default,
    ) -> PageWindow:
        return PageWindow(page, size, size_name)

    return window


def offset_window(*, default: int = 50, maximum: int = 200) -> Callable[..., OffsetWindow]:
    """The dependency of a list in offset style."""

    def window(
        limit: Annotated[int, Query(ge=1, le=maximum, description="Rows to return at most.")] = default,
        offset: Annotated[int, Query(ge=0, le=_FARTHEST, description="Rows to skip.")] = 0,
    ) -> OffsetWindow:
        return OffsetWindow(limit, offset)

    return window


def by_variant(*, a: Callable[..., Window], b: Callable[..., Window]) -> Callable[..., Window]:
    """The dependency of a list whose style follows the variant (C pages as A does)."""

    names_of_a, names_of_b = _parameters(a), _parameters(b)

    def window(
        request: Request,
        variant: RequestVariant,
        of_a: Annotated[Any, Depends(a)],
        of_b: Annotated[Any, Depends(b)],
    ) -> Window:
        mine, others = (names_of_b, names_of_a) if variant is Variant.B else (names_of_a, names_of_b)
        if unknown := sorted((others - mine) & request.query_params.keys()):
            raise unknown_parameters(unknown, mine)
        chosen: Window = of_b if variant is Variant.B else of_a
        return chosen

    return window


def _parameters(window: Callable[..., Window]) -> frozenset[str]:
    """The query parameters of a window's dependency."""
    dependant = get_dependant(path="", call=window)
    return frozenset(field.alias for field in dependant.query_params)


def counted(statement: Select[Any]) -> Select[int]:
    """How many rows a statement has without its window: the envelope's `total`."""
    return select(func.count()).select_from(statement.order_by(None).limit(None).offset(None).subquery())


class _Carried(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    position: int
    filters: dict[str, str]


class CursorSigner:
    """Makes cursors and believes only its own. `key` is a secret of at least 32 bytes, the same in every worker."""

    def __init__(self, key: bytes) -> None:
        if len(key) < 32:
            raise ValueError("a cursor key needs 32 bytes")
        self._key = key
        self._decoder = msgspec.json.Decoder(_Carried)

    def issue(self, position: int, filters: Mapping[str, str], *, context: str) -> str:
        """`context` names list and tenant: a cursor is good for nothing else."""
        carried = msgspec.json.encode(_Carried(position, dict(filters)))
        return urlsafe_b64encode(self._mac(carried, context) + carried).decode().rstrip("=")

    def read(self, cursor: str, *, context: str) -> tuple[int, dict[str, str]]:
        """The position and the filters that it carries. Raises `BadCursor`."""
        if len(cursor) > _MAX_CURSOR_CHARS:
            raise BadCursor
        try:
            raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        except (binascii.Error, ValueError):
            raise BadCursor from None
        mac, carried = raw[:32], raw[32:]
        if not hmac.compare_digest(mac, self._mac(carried, context)):
            raise BadCursor
        try:
            found = self._decoder.decode(carried)
        except msgspec.MsgspecError:
            raise BadCursor from None
        return found.position, found.filters

    def _mac(self, carried: bytes, context: str) -> bytes:
        # The length keeps a context from borrowing bytes of what follows it.
        prefix = context.encode()
        return hmac.digest(self._key, b"%d:%b" % (len(prefix), prefix) + carried, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class CursorWindow:
    """`cursor` is as the caller sent it, not yet believed."""

    limit: int
    cursor: str | None

    def open(self, signer: CursorSigner, filters: Mapping[str, str | None], *, context: str) -> "OpenCursor":
        """Filters are applied once and kept while paging: a cursor brings its own, and those sent beside it must be
        the same or absent. Raises `BadCursor`, `CursorFiltersChanged`."""
        sent = {name: value for name, value in filters.items() if value is not None}
        if self.cursor is None:
            return OpenCursor(self.limit, None, sent, signer, context)
        position, kept = signer.read(self.cursor, context=context)
        if any(kept.get(name) != value for name, value in sent.items()):
            raise CursorFiltersChanged
        return OpenCursor(self.limit, position, kept, signer, context)


@dataclass(frozen=True, slots=True)
class OpenCursor:
    """Where to go on, with which filters. `position` is the last row's value of the ordering column, or None."""

    limit: int
    position: int | None
    filters: dict[str, str]
    signer: CursorSigner
    context: str

    def apply(self, statement: Statement, column: ColumnElement[int] | InstrumentedAttribute[int]) -> Statement:
        """Ascending by `column`, which must be unique; one row more than asked for tells whether there is more."""
        if self.position is not None:
            statement = statement.where(column > self.position)
        return statement.order_by(column).limit(self.limit + 1)

    def tail(self, rows: Sequence[Row], *, position: Callable[[Row], int]) -> str:
        """The cursor of what comes after these rows, whether there is anything yet or not. For lists that only grow at
        their end: positions count from 1."""
        kept = rows[: self.limit]
        last = position(kept[-1]) if kept else self.position or 0
        return self.signer.issue(last, self.filters, context=self.context)

    def envelope(
        self, name: str, rows: Sequence[Row], *, position: Callable[[Row], int], shown: Callable[[Row], Any]
    ) -> dict[str, Any]:
        """`rows` are what `apply` selected; `position` gives a row's ordering value, `shown` its wire form."""
        kept = rows[: self.limit]
        has_more = len(rows) > self.limit
        following = self.signer.issue(position(kept[-1]), self.filters, context=self.context) if has_more else None
        return {name: [shown(row) for row in kept], "next_cursor": following, "has_more": has_more}


def cursor_window(*, default: int = 50, maximum: int = 500) -> Callable[..., CursorWindow]:
    """The dependency of a list in cursor style."""

    def window(
        limit: Annotated[int, Query(ge=1, le=maximum, description="Rows to return at most.")] = default,
        cursor: Annotated[str | None, Query(description="`next_cursor` of the answer before, unchanged.")] = None,
    ) -> CursorWindow:
        # A template fills in nothing for the first page.
        return CursorWindow(limit, cursor or None)

    return window
