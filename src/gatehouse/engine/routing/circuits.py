"""Circuit breakers: a target that failed several times in a row is not called for a while, so that requests do not wait
for it in vain.

There are two kinds. The circuit of a model counts failed answers (5xx, timeouts, incomplete answers). The circuit of a
provider counts connections that could not be established. Refusals of the request itself (4xx) count in neither.
"""

from collections import OrderedDict
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import Clock
from gatehouse.policy.catalog import Candidate

#: Maximum number of circuits that are kept. Those that failed last are kept.
MAX_CIRCUITS: Final = 10_000


class CircuitKey(NamedTuple):
    """The key of a circuit. `model` is None for the circuit of the provider's connections. Each tenant has its own
    circuits, because credentials and limits belong to a tenant. A deployment that specifies a credential has its own
    circuit."""

    tenant_id: UUID
    provider: str
    model: str | None = None
    credential: str | None = None

    @classmethod
    def of(cls, tenant_id: UUID, candidate: Candidate) -> "CircuitKey":
        """Return the key of the candidate's circuit."""
        return cls(tenant_id, candidate.provider.id, candidate.model.model_id, candidate.credential)

    @property
    def connections(self) -> "CircuitKey":
        return CircuitKey(self.tenant_id, self.provider)


class OpenCircuit(msgspec.Struct, frozen=True):
    """An open circuit. It is `half_open` when its time is up: the next request, or the one in progress, probes the
    target."""

    model: str | None
    state: Literal["open", "half_open"]
    failures: int
    #: label of the credential if the circuit is that of a deployment that specifies one
    credential: str | None = None


class _Circuit(msgspec.Struct):
    failures: int = 0
    #: monotonic time before which no request tries the target
    open_until: float = 0.0
    #: whether a request is probing the target
    probing: bool = False


class Circuits:
    """The circuits of one worker. For every attempt that `may_try` allows, the caller calls exactly one of `succeeded`,
    `failed`, `not_connected`, `refused` and `released`."""

    def __init__(self, clock: Clock, failures: int = 5, seconds: float = 10.0) -> None:
        """Create closed circuits. `failures` consecutive failures open a circuit for `seconds`."""
        self._clock = clock
        self._failures = failures
        self._seconds = seconds
        self._failing: OrderedDict[CircuitKey, _Circuit] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of circuits that are kept, open or not."""
        return len(self._failing)

    def may_try(self, key: CircuitKey) -> bool:
        """Return whether a model may be called now. Once the time of an open circuit is up, one request at a time may
        call it."""
        if not self._failing:
            return True
        now = self._clock.monotonic()
        circuits = [circuit for circuit in map(self._failing.get, (key, key.connections)) if circuit is not None]
        tripped = [circuit for circuit in circuits if circuit.failures >= self._failures]
        if any(circuit.probing or now < circuit.open_until for circuit in tripped):
            return False
        for circuit in tripped:
            circuit.probing = True
        return True

    def is_open(self, key: CircuitKey) -> bool:
        """Return whether the circuit of the model or of its provider is open. Does not change any state."""
        if not self._failing:
            return False
        now = self._clock.monotonic()
        for circuit in map(self._failing.get, (key, key.connections)):
            if circuit is not None and circuit.failures >= self._failures and now < circuit.open_until:
                return True
        return False

    def succeeded(self, key: CircuitKey) -> None:
        if self._failing:
            self._failing.pop(key, None)
            self._failing.pop(key.connections, None)

    def failed(self, key: CircuitKey) -> None:
        """Count a failure of a model over an established connection: an error, a timeout or an incomplete answer."""
        if self._failing:
            self._failing.pop(key.connections, None)
        self._count(key)

    def not_connected(self, key: CircuitKey) -> None:
        """Count a connection that was not established. Such a failure tells nothing about the model."""
        self._release(key)
        self._count(key.connections)

    def refused(self, key: CircuitKey) -> None:
        """Record that the provider refused the request or its sender. The connection works, and the answer tells
        nothing about the model."""
        if self._failing:
            self._release(key)
            self._failing.pop(key.connections, None)

    def released(self, key: CircuitKey) -> None:
        """End an attempt that has no result, because the client disconnected or the call was not made."""
        if self._failing:
            self._release(key)
            self._release(key.connections)

    def open_of(self, tenant_id: UUID) -> dict[str, list[OpenCircuit]]:
        """Return a tenant's open circuits by provider. Scans the circuits of all tenants."""
        now = self._clock.monotonic()
        by_provider: dict[str, list[OpenCircuit]] = {}
        for key, circuit in self._failing.items():
            if key.tenant_id == tenant_id and circuit.failures >= self._failures:
                state: Literal["open", "half_open"] = "open" if now < circuit.open_until else "half_open"
                by_provider.setdefault(key.provider, []).append(
                    OpenCircuit(key.model, state, circuit.failures, key.credential)
                )
        return by_provider

    def count_open(self, *, connections: bool) -> int:
        """Return the number of open and half-open circuits of providers' connections (`connections`) or of models."""
        return sum(
            circuit.failures >= self._failures and (key.model is None) is connections
            for key, circuit in self._failing.items()
        )

    def _count(self, key: CircuitKey) -> None:
        circuit = self._failing.setdefault(key, _Circuit())
        self._failing.move_to_end(key)
        circuit.failures += 1
        circuit.probing = False
        if circuit.failures >= self._failures:
            circuit.open_until = self._clock.monotonic() + self._seconds
        if len(self._failing) > MAX_CIRCUITS:
            self._failing.popitem(last=False)

    def _release(self, key: CircuitKey) -> None:
        circuit = self._failing.get(key)
        if circuit is not None:
            circuit.probing = False
