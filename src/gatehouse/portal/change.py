"""A change: the changed rows, the audit rows and the jobs, in one transaction.

Services change rows and record audit events (`record`). The transaction is committed once, after the route has returned
and before its response is sent.
"""

from typing import Any

import msgspec
import psycopg
from psycopg.types.json import Jsonb
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration.changes import AuditedChange, RequestOrigin
from gatehouse.foundation.ids import new_id
from gatehouse.portal.identity import OrgId, PortalCaller

_RECORD = text(
    "INSERT INTO portal.audit"
    " (id, org_id, actor_type, actor_id, action, resource_type, resource_id, request_id, ip, details) VALUES ("
    ":id, :org, :actor_type, :actor_id, :action, :resource_type, :resource_id, :request_id, :ip,"
    " CAST(:details AS jsonb))"
)


class PortalChange(AuditedChange[PortalCaller]):
    """The changes that one request makes in one organization. `caller` is None if a job of the portal makes them."""

    def __init__(
        self,
        session: AsyncSession,
        org_id: OrgId | None,
        caller: PortalCaller | None = None,
        origin: RequestOrigin | None = None,
    ) -> None:
        super().__init__(session, caller, origin)
        self.org_id = org_id
        self._rows: list[dict[str, Any]] = []

    def record(self, action: str, resource_type: str | None = None, resource_id: object = None, **details: Any) -> None:
        """Records an audit event. `details` contains, for example, the changed fields, but never a secret."""
        self._rows.append(
            {
                "id": new_id(),
                "org": self.org_id,
                **self.audit_fields(action, resource_type, resource_id),
                "details": msgspec.json.encode(details).decode(),
            }
        )

    async def commit(self) -> None:
        """Commits the changed rows and their audit events in one transaction."""
        if self._rows:
            await self.session.flush()
            await self.session.execute(_RECORD, self._rows)
        await self.session.commit()
        self._rows = []


def record_by_hand(
    connection: psycopg.Connection[tuple[object, ...]],
    action: str,
    resource_type: str,
    resource_id: object,
    **details: Any,
) -> None:
    """Records the audit event of an operator's command, in the connection's transaction. `details` never contains a
    secret."""
    connection.execute(
        "INSERT INTO portal.audit (id, actor_type, action, resource_type, resource_id, details)"
        " VALUES (%s, 'system', %s, %s, %s, %s)",
        [new_id(), action, resource_type, str(resource_id), Jsonb(details)],
    )
