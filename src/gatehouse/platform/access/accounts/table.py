"""Named queries of accounts inside an organization."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.organization.allowed_domains.table import DomainRow


async def default_group(session: AsyncSession, domain: str) -> GroupRow | None:
    """Return the group that users who register with this domain join, locked; None if there is none."""
    query = (
        select(GroupRow)
        .join(DomainRow, DomainRow.default_group_id == GroupRow.id)
        .where(DomainRow.domain == domain)
        .with_for_update(of=GroupRow)
    )
    return (await session.scalars(query)).one_or_none()
