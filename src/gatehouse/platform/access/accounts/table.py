"""Named queries of accounts, in the organization that a registration belongs to."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.organization.allowed_domains.table import DomainRow


async def default_group(session: AsyncSession, domain: str) -> GroupRow | None:
    """The group that who registers with an address of this domain becomes a member of, locked."""
    query = (
        select(GroupRow)
        .join(DomainRow, DomainRow.default_group_id == GroupRow.id)
        .where(DomainRow.domain == domain)
        .with_for_update(of=GroupRow)
    )
    return (await session.scalars(query)).one_or_none()
