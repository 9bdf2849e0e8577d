"""Leaves a provider alone for a while after it failed several times in a row, so that nobody waits for it in vain."""

from collections import OrderedDict
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import Clock

#: failures in a row that open a circuit
THRESHOLD: Final = 5
#: seconds that it stays open; then one request tries
COOLING: Final = 10.0
#: circuits kept at most: those that failed last
_KEPT: Final = 10_000


class _Circuit(msgspec.Struct):
    failures: int = 0
    #: monotonic time until which nobody tries
    open_until: float = 0.0


class Circuits:
    """This worker's view. A circuit is a tenant's provider: credentials and limits are the tenant's own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failing: OrderedDict[tuple[UUID, str], _Circuit] = OrderedDict()

    def closed(self, tenant_id: UUID, provider_id: str) -> bool:
        """Whether to try. Of those that ask when the time is up, only the first is told yes."""
        if not self._failing:
            return True
        circuit = self._failing.get((tenant_id, provider_id))
        if circuit is None or circuit.failures < THRESHOLD:
            return True
        now = self._clock.monotonic()
        if now < circuit.open_until:
            return False
        circuit.open_until = now + COOLING
        return True

    def resting(self, tenant_id: UUID, provider_id: str) -> bool:
        """Whether it is left alone now. Asking changes nothing: for whoever chooses among providers."""
        if not self._failing:
            return False
        circuit = self._failing.get((tenant_id, provider_id))
        return circuit is not None and circuit.failures >= THRESHOLD and self._clock.monotonic() < circuit.open_until

    def succeeded(self, tenant_id: UUID, provider_id: str) -> None:
        if self._failing:
            self._failing.pop((tenant_id, provider_id), None)

    def failed(self, tenant_id: UUID, provider_id: str) -> None:
        circuit = self._failing.setdefault((tenant_id, provider_id), _Circuit())
        circuit.failures += 1
        if circuit.failures >= THRESHOLD:
            circuit.open_until = self._clock.monotonic() + COOLING
        if len(self._failing) > _KEPT:
            self._failing.popitem(last=False)
