"""Queries of groups and memberships, which determine the overrides that apply."""

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.access.groups.table import GroupRow, MemberRow
from gatehouse.platform.access.users.table import UserRow


async def group_exists(session: AsyncSession, group_id: UUID) -> bool:
    return await session.get(GroupRow, group_id) is not None


async def groups_of(session: AsyncSession, user_id: UUID) -> tuple[UUID, ...] | None:
    """Return the ids of the user's groups, or None if the tenant has no such user."""
    if await session.get(UserRow, user_id) is None:
        return None
    query = select(MemberRow.group_id).where(MemberRow.user_id == user_id).order_by(MemberRow.group_id)
    return tuple((await session.scalars(query)).all())
