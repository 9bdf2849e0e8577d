"""Refuses requests while the outpost's kill switch is engaged or no bundle is active, and calls of models, MCP
servers and tools that the bundle switches off."""

from uuid import UUID

from gatehouse.foundation.errors import Refusal, Unavailable
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.policy.bundle import BundleStore, NotLoaded
from gatehouse.outpost.state import LocalState
from gatehouse.policy.catalog import Candidate


class KillSwitchEngaged(Unavailable):
    """The outpost's kill switch rejects every request (docs/outposts.md, "Operators' calls")."""

    code = "kill_switch_active"
    message = "This outpost's kill switch is engaged. Requests are refused until an operator releases it."


class LocalSwitches:
    """Implements the engine's `Switches`. All state is in the memory of this process, so it is always up to date."""

    def __init__(self, bundles: BundleStore, state: LocalState) -> None:
        self._bundles = bundles
        self._state = state

    def closed(self) -> Refusal | None:
        if self._state.stopped:
            return KillSwitchEngaged()
        return NotLoaded() if self._bundles.in_force is None else None

    def switched_off(self, tenant_id: TenantId, candidate: Candidate) -> bool:
        # This method is also called before the first byte of each attempt, so that the kill switch stops requests that
        # have been waiting.
        in_force = self._bundles.in_force
        return self._state.stopped or in_force is None or candidate.model.id in in_force.bundle.switched_off

    def mcp_stopped(self, *ids: UUID) -> bool:
        # A call that has been waiting may be for a server or tool of an earlier bundle.
        in_force = self._bundles.in_force
        return self._state.stopped or in_force is None or not in_force.mcp_callable.issuperset(ids)

    def healthy(self, tenant_id: TenantId, provider_id: str) -> bool:
        return True

    async def in_touch(self) -> None:
        return None

    def up_to_date(self) -> bool:
        return True
