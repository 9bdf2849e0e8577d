"""Which groups' overrides hold for whom: named queries."""

from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.access.users.table import UserRow

_GROUP = text("SELECT 1 FROM groups WHERE id = :group")
_MEMBERSHIPS = text("SELECT group_id FROM group_members WHERE user_id = :user ORDER BY group_id")


async def group_exists(session: AsyncSession, group_id: UUID) -> bool:
    return (await session.execute(_GROUP, {"group": group_id})).first() is not None


async def groups_of(session: AsyncSession, user_id: UUID) -> tuple[UUID, ...] | None:
    """None: the tenant has no such user."""
    if await session.get(UserRow, user_id) is None:
        return None
    return tuple((await session.execute(_MEMBERSHIPS, {"user": user_id})).scalars())
