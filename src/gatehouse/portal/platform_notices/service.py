"""Creates notifications from the platform's notices."""

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
    """Creates a notification for each notice about a tenant of an active organization."""
    tenants = {"tenants": list({notice.tenant_id for notice in new.notices})}
    orgs: dict[UUID, OrgId] = {row.tenant_id: row.id for row in await session.execute(_ORGANIZATIONS, tenants)}
    # Sort the notices, so that concurrent requests lock the rows in the same order.
    accepted = sorted(
        (notice for notice in new.notices if notice.tenant_id in orgs), key=lambda notice: notice.subject_id
    )
    for notice in accepted:
        await notify(session, orgs[notice.tenant_id], notice.type, notice.subject_id, notice.message)
    return NoticesTaken(accepted=len(accepted), unknown=len(new.notices) - len(accepted))
