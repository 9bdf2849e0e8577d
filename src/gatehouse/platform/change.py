"""A change: the mutation, its audit events, its outgoing events and a new revision, in one transaction.

The services mutate rows and say what they did (`record`, `announce`, `touch`); the commit happens once, after the
route has returned and before its answer is sent. The revision's lock is taken last and held until commit, so
revisions are in the order of commits and whoever follows them misses nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import bound_to
from gatehouse.platform.chain.actions import ACTIONS
from gatehouse.platform.chain.links import AuditEvent
from gatehouse.platform.chain.table import append

#: The tenant of operators; platform-wide clients' events are in its chain.
DEFAULT_TENANT: Final = TenantId(UUID("00000000-0000-7000-8000-000000000001"))

#: PostgreSQL's channel on which workers hear of a new revision.
CHANNEL: Final = "gatehouse_changes"

_NEXT_REVISION = text("UPDATE revision_head SET revision = revision + 1 RETURNING revision")
# In one statement: a directory may change ten thousand members of a group at once.
_ADD_CHANGES = text(
    "INSERT INTO changes (revision, tenant_id, topic, key) SELECT :revision, tenant, topic, key"
    " FROM unnest(CAST(:tenants AS uuid[]), CAST(:topics AS text[]), CAST(:keys AS text[])) AS t (tenant, topic, key)"
)
_ADD_EVENT = text(
    "INSERT INTO outbox (id, tenant_id, event_type, payload) VALUES (:id, :tenant, :type, CAST(:payload AS jsonb))"
)
_NOTIFY = text("SELECT pg_notify(:channel, :revision)")


class Change:
    """One administration request's changes. `caller` is who makes them, None for the system itself."""

    def __init__(
        self,
        session: AsyncSession,
        caller: Caller | None,
        *,
        tenant_id: TenantId | None = None,
        request_id: str | None = None,
        ip: str | None = None,
    ) -> None:
        self.session = session
        self.caller = caller
        self.tenant_id = tenant_id or (caller.tenant_id if caller else None) or DEFAULT_TENANT
        self.request_id = request_id
        self.ip = ip
        #: set by changes after which nothing may go on under the old state: the answer waits for every worker
        self.urgent = False
        self.revision: int | None = None
        self._events: list[AuditEvent] = []
        self._announcements: list[tuple[str, dict[str, Any]]] = []
        self._touched: list[tuple[str, str, TenantId | None]] = []

    def touches(self, topic: str) -> bool:
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
        """Says in the audit chain what was done. `details` are changed fields and the like, never a secret."""
        assert action in ACTIONS, f"{action} is missing in chain/actions.py"
        self._events.append(
            AuditEvent(
                action=action,
                actor_id=self.caller.actor_id if self.caller else None,
                actor_type=self.caller.kind.value if self.caller else "system",
                outcome=outcome,
                resource_type=resource_type,
                resource_id=None if resource_id is None else str(resource_id),
                request_id=self.request_id,
                ip=self.ip,
                target_provider=target_provider,
                target_model=target_model,
                reason=reason,
                # As JSON holds them: the hash is over what the database gives back.
                details=msgspec.to_builtins(details),
            )
        )

    def announce(self, event_type: str, payload: dict[str, Any]) -> None:
        """Puts an event into the outbox, for webhooks and whoever else listens (reference 3, Events)."""
        self._announcements.append((event_type, payload))

    def touch(self, topic: str, key: object, *, urgent: bool = False, tenant_id: TenantId | None = None) -> None:
        """Tells every worker to load this again. `topic` is `policy`, or one of
        `platform.live.queries`; `key` is the row's id, of `policy` the organization's.

        `urgent` where a right was taken away: the answer waits until every live worker has confirmed.
        """
        self._touched.append((topic, str(key), tenant_id or self.tenant_id))
        self.urgent = self.urgent or urgent

    @asynccontextmanager
    async def inside(self, tenant_id: TenantId) -> AsyncIterator["Change"]:
        """A part of this change that is another tenant's: what it records stands in that tenant's chain. For what the
        platform's operators and clients do to an organization; committed with the whole. Of its own tenant it is the
        change itself."""
        if tenant_id == self.tenant_id:
            yield self
            return
        part = Change(self.session, self.caller, tenant_id=tenant_id, request_id=self.request_id, ip=self.ip)
        async with bound_to(self.session, tenant_id):
            yield part
            await part._write()
        self._touched += part._touched
        self.urgent = self.urgent or part.urgent

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """A part of this change that may fail by itself: then nothing of it stays, be it done or said."""
        events, announcements, touched = len(self._events), len(self._announcements), len(self._touched)
        try:
            async with self.session.begin_nested():
                yield
        except BaseException:
            del self._events[events:], self._announcements[announcements:], self._touched[touched:]
            raise

    async def commit(self) -> None:
        """Everything or nothing. Audit first, then the revision: its lock is shared by all tenants, so it is last."""
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
