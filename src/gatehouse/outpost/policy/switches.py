"""Refuses requests at once: the outpost's kill switch, the bundle's switched-off models, and a missing bundle."""

from gatehouse.foundation.errors import Refusal, Unavailable
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.policy.bundle import BundleStore, NotLoaded
from gatehouse.outpost.state import LocalState
from gatehouse.policy.records import Candidate


class KillSwitchEngaged(Unavailable):
    """The outpost's kill switch rejects every request (docs/outposts.md, "Operators' calls")."""

    code = "kill_switch_active"
    message = "This outpost's kill switch is engaged: it answers no request until an operator releases it."


class LocalSwitches:
    """Implements the engine's `Switches`. All state is in this process's memory, so it is always up to date."""

    def __init__(self, bundles: BundleStore, state: LocalState) -> None:
        self._bundles = bundles
        self._state = state

    def closed(self) -> Refusal | None:
        if self._state.stopped:
            return KillSwitchEngaged()
        return NotLoaded() if self._bundles.in_force is None else None

    def switched_off(self, tenant_id: TenantId, candidate: Candidate) -> bool:
        # Also called right before each attempt's first byte, so that the kill switch stops waiting requests too.
        in_force = self._bundles.in_force
        return self._state.stopped or in_force is None or candidate.model.id in in_force.bundle.switched_off

    def healthy(self, tenant_id: TenantId, provider_id: str) -> bool:
        return True

    async def in_touch(self) -> None:
        return None

    def up_to_date(self) -> bool:
        return True
