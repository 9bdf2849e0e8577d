"""A change: a mutation, its audit events, its outgoing events and a new revision, in one transaction.

Services mutate rows and call `record`, `announce` and `touch`. The transaction is committed once, after the route has
returned and before its response is sent. The lock of the revision is taken last and kept until the commit. So revisions
are in the order of their commits, and a reader that follows them misses none.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration.changes import AuditedChange, RequestOrigin
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import bound_to
from gatehouse.platform.changes.chain.actions import ACTIONS
from gatehouse.platform.changes.chain.links import AuditEvent
from gatehouse.platform.changes.chain.table import append

#: The operators' tenant. Its audit chain also contains the events of platform-wide clients.
DEFAULT_TENANT: Final = TenantId(UUID("00000000-0000-7000-8000-000000000001"))

#: PostgreSQL NOTIFY channel that announces a new revision to the workers.
CHANNEL: Final = "gatehouse_changes"

_NEXT_REVISION = text("UPDATE revision_head SET revision = revision + 1 RETURNING revision")
# One statement inserts all rows, because a SCIM directory may change ten thousand members of a group at once.
_ADD_CHANGES = text(
    "INSERT INTO changes (revision, tenant_id, topic, key) SELECT :revision, tenant, topic, key"
    " FROM unnest(CAST(:tenants AS uuid[]), CAST(:topics AS text[]), CAST(:keys AS text[])) AS t (tenant, topic, key)"
)
_ADD_EVENT = text(
    "INSERT INTO outbox (id, tenant_id, event_type, payload) VALUES (:id, :tenant, :type, CAST(:payload AS jsonb))"
)
_NOTIFY = text("SELECT pg_notify(:channel, :revision)")


class Change(AuditedChange[Caller]):
    """The changes of one administration request. `caller` is the actor, or None for the system."""

    def __init__(
        self,
        session: AsyncSession,
        caller: Caller | None,
        origin: RequestOrigin | None = None,
        *,
        tenant_id: TenantId | None = None,
    ) -> None:
        super().__init__(session, caller, origin)
        self.tenant_id = tenant_id or (caller.tenant_id if caller else None) or DEFAULT_TENANT
        #: set by changes that revoke a right: the response then waits until every worker has applied them
        self.urgent = False
        self.revision: int | None = None
        self._events: list[AuditEvent] = []
        self._announcements: list[tuple[str, dict[str, Any]]] = []
        self._touched: list[tuple[str, str, TenantId | None]] = []

    def touches(self, topic: str) -> bool:
        """Return whether `touch` was called with this topic."""
        return any(touched == topic for touched, _, _ in self._touched)

    def record(
        self,
        action: str,
        resource_type: str | None = None,
        resource_id: object = None,
        *,
        outcome: str = "success",
        reason: str | None = None,
        target_provider: str | None = None,
        target_model: str | None = None,
        **details: Any,
    ) -> None:
        """Add an event to the audit chain. `details` are the changed fields and similar facts. They must never contain
        a secret."""
        assert action in ACTIONS, f"{action} is missing from chain/actions.py"
        self._events.append(
            AuditEvent(
                **self.audit_fields(action, resource_type, resource_id),
                outcome=outcome,
                target_provider=target_provider,
                target_model=target_model,
                reason=reason,
                # Converted to JSON types, because the hash must cover the details as the database returns them.
                details=msgspec.to_builtins(details),
            )
        )

    def announce(self, event_type: str, payload: dict[str, Any]) -> None:
        """Put an event into the outbox, for webhooks and SIEM targets (docs/webhooks.md)."""
        self._announcements.append((event_type, payload))

    def touch(self, topic: str, key: object, *, urgent: bool = False, tenant_id: TenantId | None = None) -> None:
        """Notify every worker to reload a row. `topic` is `policy` or a topic of `platform.live.replica.queries`. `key`
        is the id of the row, or for `policy` the id of the organization.

        Pass `urgent` if a right was revoked: the response then waits until every live worker has confirmed the change.
        """
        self._touched.append((topic, str(key), tenant_id or self.tenant_id))
        self.urgent = self.urgent or urgent

    @asynccontextmanager
    async def inside(self, tenant_id: TenantId) -> AsyncIterator["Change"]:
        """Yield a part of this change that belongs to another tenant, and whose events are recorded in that tenant's
        chain. It is used when operators and clients of the platform act on an organization. The part is committed with
        the whole change. For the change's own tenant, yields the change itself."""
        if tenant_id == self.tenant_id:
            yield self
            return
        part = Change(self.session, self.caller, self.origin, tenant_id=tenant_id)
        async with bound_to(self.session, tenant_id):
            yield part
            await part._write()
        self._touched += part._touched
        self.urgent = self.urgent or part.urgent

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Run a part of this change in a savepoint. On an exception, only the mutations and events of this part are
        undone."""
        events, announcements, touched = len(self._events), len(self._announcements), len(self._touched)
        try:
            async with self.session.begin_nested():
                yield
        except BaseException:
            del self._events[events:], self._announcements[announcements:], self._touched[touched:]
            raise

    async def commit(self) -> None:
        """Commit all of the change or nothing. The revision is assigned last, because all tenants share its lock."""
        await self._write()
        if self._touched:
            await self.session.flush()
            self.revision = (await self.session.execute(_NEXT_REVISION)).scalar_one()
            topics, keys, tenants = map(list, zip(*dict.fromkeys(self._touched), strict=True))
            values = {"revision": self.revision, "topics": topics, "keys": keys, "tenants": tenants}
            await self.session.execute(_ADD_CHANGES, values)
            await self.session.execute(_NOTIFY, {"channel": CHANNEL, "revision": str(self.revision)})
        await self.session.commit()
        self._events, self._announcements, self._touched = [], [], []

    async def _write(self) -> None:
        if self._events:
            await self.session.flush()
            await append(self.session, self.tenant_id, self._events)
        for event_type, payload in self._announcements:
            values = {
                "id": new_id(),
                "tenant": self.tenant_id,
                "type": event_type,
                "payload": msgspec.json.encode(payload).decode(),
            }
            await self.session.execute(_ADD_EVENT, values)
