"""SCIM tokens' rows, and the named queries of provisioning."""

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
from gatehouse.platform.access.scim.errors import TooMany
from gatehouse.platform.access.scim.reading import Window
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


_BOUND = text("SET LOCAL statement_timeout = '5s'")
_UNBOUND = text("SET LOCAL statement_timeout TO DEFAULT")


async def page(session: AsyncSession, row: type[R], fitting: Select[R], window: Window) -> tuple[Sequence[R], int]:
    """What is in the window of all that is `fitting`, and how many those are. In the order in which they were made: who
    comes later moves nobody to another page.

    Raises `TooMany`: a filter may compare a hundred times with parts of addresses, in a hundred thousand users.
    """
    await session.execute(_BOUND)
    try:
        total = await session.scalar(select(func.count()).select_from(fitting.subquery())) or 0
        if not window.count:
            return [], total
        query = fitting.order_by(row.created_at, row.id).offset(window.start_index - 1).limit(window.count)
        found = (await session.scalars(query)).all()
    except OperationalError as error:
        if isinstance(error.orig, QueryCanceled):
            raise TooMany from None
        raise
    await session.execute(_UNBOUND)
    return found, total


# users ---------------------------------------------------------------------------------------------------------------

_GROUPS_OF = text(
    "SELECT m.user_id, g.id, g.name FROM group_members m JOIN groups g ON g.id = m.group_id"
    " WHERE m.user_id = ANY(:users) ORDER BY g.name, g.id"
)


async def groups_of(session: AsyncSession, users: Sequence[UUID]) -> dict[UUID, list[tuple[UUID, str]]]:
    """Ids and names of the groups of each user, by name."""
    found: dict[UUID, list[tuple[UUID, str]]] = {user: [] for user in users}
    if users:
        for row in await session.execute(_GROUPS_OF, {"users": list(users)}):
            found[row.user_id].append((row.id, row.name))
    return found


_NAMESAKES = text("SELECT gatehouse_users_by_username(:name) IS NOT NULL")


async def username_taken(session: AsyncSession, username: str) -> bool:
    return bool(await session.scalar(_NAMESAKES, {"name": username}))


# members -------------------------------------------------------------------------------------------------------------
# Set by set: a group may have a hundred thousand members, and a directory sends thousands at once. Service accounts are
# no members that a directory could know.

_SIZES = text("SELECT group_id, count(*) AS members FROM group_members WHERE group_id = ANY(:groups) GROUP BY 1")
_MEMBERS = text(
    "SELECT m.group_id, json_agg(json_build_object('value', u.id, '$ref', CAST(:base AS text) || '/Users/' || u.id,"
    " 'type', 'User', 'display', coalesce(m.display, u.display_name, u.user_name, u.email))"
    " ORDER BY m.joined_at, u.id)::text"
    " AS members FROM group_members m JOIN users u ON u.id = m.user_id AND u.kind = 'user'"
    " WHERE m.group_id = ANY(:groups) GROUP BY 1"
)
_ADD = text(
    "INSERT INTO group_members AS m (id, tenant_id, group_id, user_id, display)"
    " SELECT gen_random_uuid(), u.tenant_id, :group, u.id, given.display"
    " FROM unnest(CAST(:users AS uuid[]), CAST(:displays AS text[])) AS given (id, display)"
    " JOIN users u ON u.id = given.id AND u.kind = 'user'"
    " ON CONFLICT (group_id, user_id) DO UPDATE SET display = excluded.display"
    " WHERE m.display IS DISTINCT FROM excluded.display AND excluded.display IS NOT NULL"
    # Of those that were there already, xmax names the transaction that has locked them: this one.
    " RETURNING user_id, xmax = 0 AS came"
)
_PEOPLE = text("SELECT id FROM users WHERE id = ANY(:users) AND kind = 'user' FOR KEY SHARE")
_REMOVE = text("DELETE FROM group_members WHERE group_id = :group AND user_id = ANY(:users) RETURNING user_id")
_KEEP = text(
    "DELETE FROM group_members m USING users u WHERE m.group_id = :group AND u.id = m.user_id AND u.kind = 'user'"
    " AND NOT m.user_id = ANY(:users) RETURNING m.user_id"
)


async def sizes(session: AsyncSession, groups: Sequence[UUID]) -> dict[UUID, int]:
    rows = await session.execute(_SIZES, {"groups": list(groups)})
    return {row.group_id: row.members for row in rows}


async def members_json(session: AsyncSession, groups: Sequence[UUID], base: str) -> dict[UUID, str]:
    """Each group's members as a JSON array, oldest first; made by the database, which takes a tenth of the time."""
    rows = await session.execute(_MEMBERS, {"groups": list(groups), "base": base})
    return {row.group_id: row.members for row in rows}


async def people(session: AsyncSession, users: Iterable[UUID]) -> set[UUID]:
    """Those of the ids that are users', who then cannot be removed before the transaction ends."""
    return set((await session.execute(_PEOPLE, {"users": list(users)})).scalars())


async def add_members(session: AsyncSession, group: UUID, users: Mapping[UUID, str | None]) -> set[UUID]:
    """`users` with what the directory calls each, or None."""
    values = {"group": group, "users": list(users), "displays": list(users.values())}
    return {row.user_id for row in await session.execute(_ADD, values) if row.came}


async def remove_members(session: AsyncSession, group: UUID, users: Iterable[UUID]) -> set[UUID]:
    return await _changed(session, _REMOVE, group, users)


async def keep_members(session: AsyncSession, group: UUID, users: Iterable[UUID]) -> set[UUID]:
    """Removes all but these."""
    return await _changed(session, _KEEP, group, users)


async def _changed(session: AsyncSession, statement: Any, group: UUID, users: Iterable[UUID]) -> set[UUID]:
    """Who was not a member before and is now, or the other way round."""
    return set((await session.execute(statement, {"group": group, "users": list(users)})).scalars())
