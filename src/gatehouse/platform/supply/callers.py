"""Who may call an organization's outposts, and what they may not call: what the replica holds of one organization, read
from the rows. Named cross-tenant queries: each takes its organization."""

from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.wire import CallerRecords, ClientRecord, KeyRecord, UserRecord

_LIMIT: Final = text("SELECT custom_rate_limit_rpm FROM tenants WHERE id = :tenant")
_USERS: Final = text(
    "SELECT id, email, role, is_active,"
    " ARRAY(SELECT group_id FROM group_members m WHERE m.user_id = users.id ORDER BY group_id) AS groups"
    " FROM users WHERE tenant_id = :tenant ORDER BY id"
)
_KEYS: Final = text(
    "SELECT id, user_id, digest, is_enabled, EXTRACT(EPOCH FROM expires_at)::float8 AS expires_at, scopes"
    " FROM api_keys WHERE tenant_id = :tenant ORDER BY id"
)
_CLIENTS: Final = text(
    "SELECT client_id, enabled, scopes FROM oauth_clients WHERE tenant_id = :tenant ORDER BY client_id"
)
_SWITCHED_OFF: Final = text(
    "SELECT id FROM model_configs WHERE tenant_id = :tenant AND kill_switch_disabled_at IS NOT NULL"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> CallerRecords:
    values = {"tenant": tenant_id}
    return CallerRecords(
        custom_rate_limit_rpm=await session.scalar(_LIMIT, values),
        users=tuple(
            UserRecord(id=row.id, email=row.email, role=row.role, active=row.is_active, groups=tuple(row.groups))
            for row in await session.execute(_USERS, values)
        ),
        keys=tuple(
            KeyRecord(
                id=row.id,
                user_id=row.user_id,
                digest=bytes(row.digest),
                enabled=row.is_enabled,
                expires_at=row.expires_at,
                scopes=None if row.scopes is None else tuple(sorted(row.scopes)),
            )
            for row in await session.execute(_KEYS, values)
        ),
        clients=tuple(
            ClientRecord(client_id=row.client_id, enabled=row.enabled, scopes=tuple(sorted(row.scopes)))
            for row in await session.execute(_CLIENTS, values)
        ),
    )


async def switched_off(session: AsyncSession, tenant_id: TenantId) -> frozenset[UUID]:
    """Ids of the models that a kill switch stops."""
    return frozenset((await session.execute(_SWITCHED_OFF, {"tenant": tenant_id})).scalars())
