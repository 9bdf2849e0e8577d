"""The table of API keys and its named queries."""

from datetime import date, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Computed, LargeBinary, Select, Uuid, any_, func, literal, literal_column, select, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.lists import OffsetWindow, OptionalWindow, containing, count_query, sorted_by
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.users.table import MAX_INDEXED_MATCHES, SHOWN_NAME, SORTED_NAME, UserRow
from gatehouse.platform.records.spend.table import keys_by_cost


class ApiKeyRow(TenantRow):
    __tablename__ = "api_keys"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID]
    key_prefix: Mapped[str]
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    description: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    last_used: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    is_enabled: Mapped[bool]
    scopes: Mapped[list[str] | None] = mapped_column(JSONB)
    disabled_by: Mapped[str | None]
    created_by: Mapped[UUID | None]
    #: the day of `last_used` in UTC, or the first day of year 1; an index for sorting contains it
    last_used_day: Mapped[date] = mapped_column(Computed("COALESCE(last_used::date, '0001-01-01')"), deferred=True)


async def by_digest(session: AsyncSession, digest: bytes) -> ApiKeyRow | None:
    return (await session.scalars(select(ApiKeyRow).where(ApiKeyRow.digest == digest))).one_or_none()


class ListedKey(NamedTuple):
    """A key with the fields of its user that a list shows."""

    key: ApiKeyRow
    user_active: bool
    user_name: str


class PageOfIds(NamedTuple):
    """The query of a page of a list, and the number of all keys of the list."""

    query: Select[UUID]
    total: int


#: If at least this many keys match, and the page begins before this position, the keys are read in the order of their
#: costs. Otherwise, all matching keys are sorted by cost.
_MANY_KEYS: Final = 10_000

_WITH: Final = text("SELECT gatehouse_api_keys_with(:part, :max_rows)")
_ORDERS: Final[dict[str, Any]] = {
    "description": func.lower(ApiKeyRow.description),
    "owner": SORTED_NAME,
    "created_at": ApiKeyRow.created_at,
    "last_used": (
        ApiKeyRow.last_used_day,
        func.coalesce(ApiKeyRow.last_used, literal_column("'-infinity'::timestamptz")),
    ),
    "expires_at": func.coalesce(ApiKeyRow.expires_at, literal_column("'infinity'::timestamptz")),
}


async def page_of_ids(
    session: AsyncSession,
    window: OffsetWindow | OptionalWindow,
    *,
    search: str | None = None,
    user_id: UUID | None = None,
    enabled: bool | None = None,
    sort: str = "-created_at",
    max_total: int | None = None,
) -> PageOfIds:
    """Return a page of the ids of the tenant's keys that match the filters. `search` is a part of the description or of
    the key's first characters. Without `user_id`, it can also be a part of the owner's address or name. Counting stops
    at `max_total`."""
    query = select(ApiKeyRow.id)
    ids: list[UUID] | None = None
    if search and user_id is None:
        ids = await session.scalar(_WITH, {"part": search, "max_rows": MAX_INDEXED_MATCHES})
    is_scanned = bool(search) and user_id is None and ids is None
    if is_scanned or sort.endswith("owner"):
        query = query.join(UserRow, UserRow.id == ApiKeyRow.user_id)
    if is_scanned:
        fields = (UserRow.email, UserRow.username, UserRow.display_name)
        query = containing(query, search, ApiKeyRow.description, ApiKeyRow.key_prefix, *fields)
    if ids is not None:
        query = query.where(ApiKeyRow.id == any_(literal(ids, ARRAY(Uuid))))
    if user_id is not None:
        query = query.where(ApiKeyRow.user_id == user_id)
        query = containing(query, search, ApiKeyRow.description, ApiKeyRow.key_prefix)
    if enabled is not None:
        query = query.where(ApiKeyRow.is_enabled.is_(enabled))
    total = await count_keys(session, query, max_total)
    if not sort.endswith("month_cost_usd"):
        return PageOfIds(window.apply(sorted_by(query, sort, _ORDERS, unique=ApiKeyRow.id)), total)
    max_rows = None
    if window.limit is not None and window.offset < _MANY_KEYS and total >= min(_MANY_KEYS, max_total or _MANY_KEYS):
        max_rows = window.offset + window.limit
    tenant_id, descending = session.info["tenant_id"], sort.startswith("-")
    ordered = keys_by_cost(tenant_id, query, first_day_of_month(), descending=descending, max_rows=max_rows)
    return PageOfIds(window.apply(ordered), total)


def first_day_of_month() -> date:
    return utc_now().date().replace(day=1)


async def listed(session: AsyncSession, query: Select[UUID]) -> list[ListedKey]:
    """Return the keys of a query of ids, in its order. Only the ids are sorted, and only these keys are joined with
    their users."""
    ids = (await session.scalars(query)).all()
    keys = (
        select(ApiKeyRow, UserRow.is_active, SHOWN_NAME)
        .join(UserRow, UserRow.id == ApiKeyRow.user_id)
        .where(ApiKeyRow.id == any_(literal(ids, ARRAY(Uuid))))
    )
    by_id = {key.id: ListedKey(key, active, name) for key, active, name in await session.execute(keys)}
    return [by_id[key_id] for key_id in ids if key_id in by_id]


async def with_user(session: AsyncSession, key: ApiKeyRow) -> ListedKey:
    """Return the key with the fields of its user that a list shows."""
    query = select(UserRow.is_active, SHOWN_NAME).where(UserRow.id == key.user_id)
    active, name = (await session.execute(query)).one()
    return ListedKey(key, active, name)


async def count_keys(session: AsyncSession, query: Select[UUID], most: int | None = None) -> int:
    """Return the number of keys of a query, at most `most`."""
    return (await session.execute(count_query(query, most))).scalar_one()


async def count_keys_of_user(session: AsyncSession, user_id: UUID) -> int:
    query = select(func.count()).select_from(ApiKeyRow).where(ApiKeyRow.user_id == user_id)
    return (await session.execute(query)).scalar_one()
