"""Sessions at MCP servers of the older revision. Each belongs to one caller: organization, user and credential. At a
server that needs an account of the user, it also belongs to the connection of this account, because the user may
connect another one.

An agent of the older revision receives a session id with a MAC that covers its caller. Every worker can continue the
session, but only for this caller. The newer revision has no sessions: for its agents, each worker keeps one session for
each caller.
"""

from collections import OrderedDict
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.engine.exchange import Identified
from gatehouse.engine.mcp import upstream
from gatehouse.engine.mcp.messages import IDENTITY, LEGACY
from gatehouse.engine.mcp.upstream import Result, Target, UpstreamFailed
from gatehouse.engine.ports import Ports
from gatehouse.foundation.identity import TenantId
from gatehouse.policy.mcp import McpServerRecord

#: Maximum number of sessions that a worker keeps. If there are more, the least recently used one of the organization
#: with the most sessions is forgotten, so an organization cannot make the sessions of a smaller one be forgotten.
_MAX_SESSIONS: Final = 10_000
_IDLE_SECONDS: Final = 30 * 60.0


class _Kept(msgspec.Struct):
    #: None if the server has no sessions
    session_id: str | None
    #: monotonic time of the last use
    used: float


def owner(x: Identified, server: McpServerRecord, connection_id: UUID | None = None) -> bytes:
    """Return the caller, server and connection that a session is bound to. The server's address is included, so that a
    session id is never sent to another server."""
    caller = x.caller
    parts = (
        x.policy.tenant_id, caller.kind, caller.user_id, caller.api_key_id, caller.client_id, caller.grant_id,
        caller.session_id, server.id, server.url, *(() if connection_id is None else (connection_id,)),
    )  # fmt: skip
    return msgspec.json.encode([None if part is None else str(part) for part in parts])


def _owner(x: Identified, target: Target) -> bytes:
    return owner(x, target.record, target.connection_id)


async def initialize(target: Target) -> Result:
    """Begin a conversation with a server of the older revision. Raises `UpstreamFailed`, and the errors of the gate."""
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": IDENTITY}
    result = await upstream.request(target, "initialize", params)
    if result.value.get("protocolVersion") != LEGACY:
        raise UpstreamFailed("unsupported_revision")
    await upstream.notify(target, "notifications/initialized", session_id=result.session_id)
    return result


class UpstreamSessions:
    """The sessions of one worker."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        #: by organization
        self._kept: dict[TenantId, OrderedDict[bytes, _Kept]] = {}
        self._count = 0

    async def begin(self, x: Identified, target: Target) -> str | None:
        """Begin a session, and return its id for the agent, or None if the server has no sessions. Raises
        `UpstreamFailed`, and the errors of the gate."""
        begun = (await initialize(target)).session_id
        return None if begun is None else self._ports.owned_ids.session_id(_owner(x, target), begun)

    def read(self, x: Identified, target: Target, public_id: str) -> str | None:
        """Return the server's id of an agent's session. None if the gateway has not issued `public_id`, or if it
        belongs to another caller."""
        return self._ports.owned_ids.read_session_id(_owner(x, target), public_id)

    async def kept(self, x: Identified, target: Target) -> str | None:
        """Return the session that this worker keeps for the caller. Begin one if there is none. Returns None if the
        server has no sessions. Raises `UpstreamFailed`, and the errors of the gate."""
        key, now = _owner(x, target), self._ports.clock.monotonic()
        tenant_id = x.policy.tenant_id
        entry = self._get(tenant_id, key)
        if entry is None or entry.used + _IDLE_SECONDS < now:
            begun = (await initialize(target)).session_id
            current = self._get(tenant_id, key)
            # If a concurrent call has begun a session meanwhile, all calls of the caller use that session.
            if current is None or current is entry:
                current = _Kept(begun, now)
            entry = current
        entry.used = now
        self._put(tenant_id, key, entry)
        return entry.session_id

    def forget(self, x: Identified, target: Target, session_id: str | None) -> None:
        """Forget this session of the caller. A newer session, begun by a concurrent call, is kept."""
        key, tenant_id = _owner(x, target), x.policy.tenant_id
        entry = self._get(tenant_id, key)
        if entry is not None and entry.session_id == session_id:
            self._remove(tenant_id, key)

    def _get(self, tenant_id: TenantId, key: bytes) -> _Kept | None:
        own = self._kept.get(tenant_id)
        return None if own is None else own.get(key)

    def _put(self, tenant_id: TenantId, key: bytes, entry: _Kept) -> None:
        """Keep a session as the most recently used one of its organization."""
        own = self._kept.setdefault(tenant_id, OrderedDict())
        self._count += key not in own
        own[key] = entry
        own.move_to_end(key)
        while self._count > _MAX_SESSIONS:
            largest = max(self._kept, key=lambda one: len(self._kept[one]))
            self._remove(largest, next(iter(self._kept[largest])))

    def _remove(self, tenant_id: TenantId, key: bytes) -> None:
        own = self._kept[tenant_id]
        del own[key]
        self._count -= 1
        if not own:
            del self._kept[tenant_id]
