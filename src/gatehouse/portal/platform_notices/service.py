"""The rules of the platform's notices."""

from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.portal.identity import OrgId
from gatehouse.portal.notifications.table import notify
from gatehouse.portal.platform_notices.schemas import NewNotices, NoticesTaken

_ORGANIZATIONS: Final = text(
    "SELECT tenant_id, id FROM organizations WHERE status = 'active' AND tenant_id = ANY(CAST(:tenants AS uuid[]))"
)


async def take(session: AsyncSession, new: NewNotices) -> NoticesTaken:
    """Each becomes its organization's notification."""
    wanted = {"tenants": list({each.tenant_id for each in new.notices})}
    orgs: dict[UUID, OrgId] = {row.tenant_id: row.id for row in await session.execute(_ORGANIZATIONS, wanted)}
    # In one order, as whoever locks several rows must.
    known = sorted((each for each in new.notices if each.tenant_id in orgs), key=lambda each: each.subject_id)
    for each in known:
        await notify(session, orgs[each.tenant_id], each.type, each.subject_id, each.message)
    return NoticesTaken(accepted=len(known), unknown=len(new.notices) - len(known))
