"""The table of SCIM tokens, and the named queries of provisioning."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from psycopg.errors import QueryCanceled
from sqlalchemy import LargeBinary, Select, func, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.access.scim.errors import FilterTooSlow
from gatehouse.platform.access.scim.protocol.messages import ListWindow
from gatehouse.platform.access.users.table import UserRow

R = TypeVar("R", UserRow, GroupRow)


class ScimTokenRow(TenantRow):
    __tablename__ = "scim_tokens"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    description: Mapped[str]
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    created_by: Mapped[UUID | None]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]


async def all_tokens(session: AsyncSession) -> Sequence[ScimTokenRow]:
    query = select(ScimTokenRow).order_by(ScimTokenRow.created_at.desc(), ScimTokenRow.id)
    return (await session.scalars(query)).all()


async def count_tokens(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(ScimTokenRow))).scalar_one()


_SET_TIMEOUT = text("SET LOCAL statement_timeout = '5s'")
_RESET_TIMEOUT = text("SET LOCAL statement_timeout TO DEFAULT")


async def page(session: AsyncSession, row: type[R], matching: Select[R], window: ListWindow) -> tuple[Sequence[R], int]:
    """Return one page of the rows of `matching`, and their total number. The rows are sorted by creation time, so that
    new rows do not move other rows to another page.

    Raises `FilterTooSlow`, because a filter may compare parts of addresses 100 times for each of 100,000 users.
    """
    await session.execute(_SET_TIMEOUT)
    try:
        total = await session.scalar(select(func.count()).select_from(matching.subquery())) or 0
        if not window.count:
            return [], total
        query = matching.order_by(row.created_at, row.id).offset(window.start_index - 1).limit(window.count)
        rows = (await session.scalars(query)).all()
    except OperationalError as error:
        if isinstance(error.orig, QueryCanceled):
            raise FilterTooSlow from None
        raise
    await session.execute(_RESET_TIMEOUT)
    return rows, total


# users ---------------------------------------------------------------------------------------------------------------

_GROUPS_OF = text(
    "SELECT m.user_id, g.id, g.name FROM group_members m JOIN groups g ON g.id = m.group_id"
    " WHERE m.user_id = ANY(:users) ORDER BY g.name, g.id"
)


async def groups_of(session: AsyncSession, users: Sequence[UUID]) -> dict[UUID, list[tuple[UUID, str]]]:
    """Return the ids and names of each user's groups, sorted by name."""
    groups: dict[UUID, list[tuple[UUID, str]]] = {user: [] for user in users}
    if users:
        for row in await session.execute(_GROUPS_OF, {"users": list(users)}):
            groups[row.user_id].append((row.id, row.name))
    return groups


_IS_USERNAME_TAKEN = text("SELECT gatehouse_users_by_username(:name) IS NOT NULL")


async def is_username_taken(session: AsyncSession, username: str) -> bool:
    return bool(await session.scalar(_IS_USERNAME_TAKEN, {"name": username}))


# members -------------------------------------------------------------------------------------------------------------
# The queries change many members at once, because a group may have 100,000 members, and a directory sends thousands in
# one request. Directories do not see service accounts.

_MEMBER_COUNTS = text(
    "SELECT group_id, count(*) AS members FROM group_members WHERE group_id = ANY(:groups) GROUP BY 1"
)
_MEMBERS = text(
    "SELECT m.group_id, json_agg(json_build_object('value', u.id, '$ref', CAST(:base AS text) || '/Users/' || u.id,"
    " 'type', 'User', 'display', coalesce(m.display, u.display_name, u.user_name, u.email))"
    " ORDER BY m.joined_at, u.id)::text"
    " AS members FROM group_members m JOIN users u ON u.id = m.user_id AND u.kind = 'user'"
    " WHERE m.group_id = ANY(:groups) GROUP BY 1"
)
_ADD_MEMBERS = text(
    "INSERT INTO group_members AS m (id, tenant_id, group_id, user_id, display)"
    " SELECT gen_random_uuid(), u.tenant_id, :group, u.id, sent.display"
    " FROM unnest(CAST(:users AS uuid[]), CAST(:displays AS text[])) AS sent (id, display)"
    " JOIN users u ON u.id = sent.id AND u.kind = 'user'"
    " ON CONFLICT (group_id, user_id) DO UPDATE SET display = excluded.display"
    " WHERE m.display IS DISTINCT FROM excluded.display AND excluded.display IS NOT NULL"
    # xmax is 0 for inserted rows; for existing rows it is this transaction, which has locked them.
    " RETURNING user_id, xmax = 0 AS inserted"
)
_LOCK_USERS = text("SELECT id FROM users WHERE id = ANY(:users) AND kind = 'user' FOR KEY SHARE")
_REMOVE_MEMBERS = text("DELETE FROM group_members WHERE group_id = :group AND user_id = ANY(:users) RETURNING user_id")
_REMOVE_OTHER_MEMBERS = text(
    "DELETE FROM group_members m USING users u WHERE m.group_id = :group AND u.id = m.user_id AND u.kind = 'user'"
    " AND NOT m.user_id = ANY(:users) RETURNING m.user_id"
)


async def member_counts(session: AsyncSession, groups: Sequence[UUID]) -> dict[UUID, int]:
    rows = await session.execute(_MEMBER_COUNTS, {"groups": list(groups)})
    return {row.group_id: row.members for row in rows}


async def members_json(session: AsyncSession, groups: Sequence[UUID], base: str) -> dict[UUID, str]:
    """Return each group's members as a JSON array, oldest first. The database renders the array ten times faster than
    this process would."""
    rows = await session.execute(_MEMBERS, {"groups": list(groups), "base": base})
    return {row.group_id: row.members for row in rows}


async def lock_users(session: AsyncSession, users: Iterable[UUID]) -> set[UUID]:
    """Return the ids that are users, locked against deletion until the transaction ends."""
    return set((await session.execute(_LOCK_USERS, {"users": list(users)})).scalars())


async def add_members(session: AsyncSession, group: UUID, users: Mapping[UUID, str | None]) -> set[UUID]:
    """Add members, and return the ids of the new ones. `users` maps ids to the directory's display name, or to None."""
    values = {"group": group, "users": list(users), "displays": list(users.values())}
    return {row.user_id for row in await session.execute(_ADD_MEMBERS, values) if row.inserted}


async def remove_members(session: AsyncSession, group: UUID, users: Iterable[UUID]) -> set[UUID]:
    return await _changed_user_ids(session, _REMOVE_MEMBERS, group, users)


async def keep_members(session: AsyncSession, group: UUID, users: Iterable[UUID]) -> set[UUID]:
    """Remove all other members, and return the ids of the removed ones."""
    return await _changed_user_ids(session, _REMOVE_OTHER_MEMBERS, group, users)


async def _changed_user_ids(session: AsyncSession, statement: Any, group: UUID, users: Iterable[UUID]) -> set[UUID]:
    """Return the ids of the users whose membership changed."""
    return set((await session.execute(statement, {"group": group, "users": list(users)})).scalars())
