"""Circuit breakers: what failed several times in a row is left alone for a while, so that nobody waits for it in vain.

There are two kinds. A model's circuit counts answers that fail (5xx, time-outs, answers that break off). A provider's
counts connections that are not established. A refusal of the request itself (4xx) is counted by neither.
"""

from collections import OrderedDict
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import Clock

#: circuits kept at most: those that failed last
MOST: Final = 10_000


class Key(NamedTuple):
    """Of a circuit. `model` is None for the provider's connections. Credentials and limits are the tenant's own, so
    that each tenant has circuits of its own."""

    tenant_id: UUID
    provider: str
    model: str | None = None

    @property
    def connections(self) -> "Key":
        return Key(self.tenant_id, self.provider)


class OpenCircuit(msgspec.Struct, frozen=True):
    """`half_open`: its time is up, and the next request or the one in progress finds out."""

    model: str | None
    state: Literal["open", "half_open"]
    failures: int


class _Circuit(msgspec.Struct):
    failures: int = 0
    #: monotonic time until which nobody tries
    open_until: float = 0.0
    #: whether a request is finding out whether it works again
    probing: bool = False


class Circuits:
    """This worker's view. Every try that `may_try` allows ends in exactly one of `succeeded`, `failed`,
    `not_connected`, `refused` and `released`."""

    def __init__(self, clock: Clock, failures: int = 5, seconds: float = 10.0) -> None:
        """`failures` in a row open a circuit, for so many `seconds`."""
        self._clock = clock
        self._failures = failures
        self._seconds = seconds
        self._failing: OrderedDict[Key, _Circuit] = OrderedDict()

    def __len__(self) -> int:
        """Circuits that are kept, open or not."""
        return len(self._failing)

    def may_try(self, key: Key) -> bool:
        """Whether to call a model now. Once the time of an open circuit is up, only one request at a time may."""
        if not self._failing:
            return True
        now = self._clock.monotonic()
        circuits = [circuit for circuit in map(self._failing.get, (key, key.connections)) if circuit is not None]
        due = [circuit for circuit in circuits if circuit.failures >= self._failures]
        if any(circuit.probing or now < circuit.open_until for circuit in due):
            return False
        for circuit in due:
            circuit.probing = True
        return True

    def is_open(self, key: Key) -> bool:
        """Whether the model or its provider is left alone now. Changes nothing: for choosing among models."""
        if not self._failing:
            return False
        now = self._clock.monotonic()
        for circuit in map(self._failing.get, (key, key.connections)):
            if circuit is not None and circuit.failures >= self._failures and now < circuit.open_until:
                return True
        return False

    def succeeded(self, key: Key) -> None:
        if self._failing:
            self._failing.pop(key, None)
            self._failing.pop(key.connections, None)

    def failed(self, key: Key) -> None:
        """The model was asked over a good connection, and answered with a fault, too late or not to the end."""
        if self._failing:
            self._failing.pop(key.connections, None)
        self._count(key)

    def not_connected(self, key: Key) -> None:
        """There was no connection, so that nothing is known of the model."""
        self._release(key)
        self._count(key.connections)

    def refused(self, key: Key) -> None:
        """The provider has answered, and refused the request or its sender: there is a connection, and nothing is known
        of the model."""
        if self._failing:
            self._release(key)
            self._failing.pop(key.connections, None)

    def released(self, key: Key) -> None:
        """Nothing was found out: the client left, or the call was never made."""
        if self._failing:
            self._release(key)
            self._release(key.connections)

    def open_of(self, tenant_id: UUID) -> dict[str, list[OpenCircuit]]:
        """By provider; looks at all that are kept."""
        now = self._clock.monotonic()
        by_provider: dict[str, list[OpenCircuit]] = {}
        for key, circuit in self._failing.items():
            if key.tenant_id == tenant_id and circuit.failures >= self._failures:
                state: Literal["open", "half_open"] = "open" if now < circuit.open_until else "half_open"
                by_provider.setdefault(key.provider, []).append(OpenCircuit(key.model, state, circuit.failures))
        return by_provider

    def count_open(self, *, connections: bool) -> int:
        """Circuits that are open or half open, of providers' connections or of models."""
        return sum(
            circuit.failures >= self._failures and (key.model is None) is connections
            for key, circuit in self._failing.items()
        )

    def _count(self, key: Key) -> None:
        circuit = self._failing.setdefault(key, _Circuit())
        self._failing.move_to_end(key)
        circuit.failures += 1
        circuit.probing = False
        if circuit.failures >= self._failures:
            circuit.open_until = self._clock.monotonic() + self._seconds
        if len(self._failing) > MOST:
            self._failing.popitem(last=False)

    def _release(self, key: Key) -> None:
        circuit = self._failing.get(key)
        if circuit is not None:
            circuit.probing = False
