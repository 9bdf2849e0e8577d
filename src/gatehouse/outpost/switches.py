"""What stops requests at once: the outpost's kill switch, those of the bundle, and no bundle at all."""

from gatehouse.engine.candidate import Candidate
from gatehouse.foundation.errors import Refusal, Unavailable
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.bundle import Bundles, NotLoaded
from gatehouse.outpost.state import LocalState


class KillSwitchEngaged(Unavailable):
    """Reference 1, What the service does, 7: it rejects every request."""

    code = "kill_switch_active"
    message = "This outpost's kill switch is engaged: it answers no request until an operator releases it."


class LocalSwitches:
    """The engine's `Switches`. All of it is in this process' memory, so nothing has to be caught up with."""

    def __init__(self, bundles: Bundles, state: LocalState) -> None:
        self._bundles = bundles
        self._state = state

    def closed(self) -> Refusal | None:
        if self._state.stopped:
            return KillSwitchEngaged()
        return NotLoaded() if self._bundles.in_force is None else None

    def switched_off(self, tenant_id: TenantId, candidate: Candidate) -> bool:
        # Asked again right before each attempt's first byte: the outpost's own switch stops what waits, too.
        held = self._bundles.in_force
        return self._state.stopped or held is None or candidate.model.id in held.bundle.switched_off

    def healthy(self, tenant_id: TenantId, provider_id: str) -> bool:
        return True

    async def in_touch(self) -> None:
        return None

    def up_to_date(self) -> bool:
        return True
