"""What may be spent here (decisions 9)."""

from collections.abc import Sequence
from uuid import UUID

from gatehouse.engine.ports import Reserved
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.errors import Refusal
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.outpost.state import LocalState
from gatehouse.policy.budgets import Budget, Taking


class Reservation:
    """See `engine.ports.Reserved`."""

    __slots__ = ("periods",)

    def __init__(self, periods: tuple[tuple[UUID, int], ...]) -> None:
        self.periods = periods

    def headers(self) -> dict[str, str]:
        return {}


class LocalSpend:
    """The engine's `Spend`."""

    def __init__(self, settings: OutpostSettings, state: LocalState, clock: Clock) -> None:
        self._settings = settings
        self._state = state
        self._clock = clock

    def exhausted(self, budgets: Sequence[Budget]) -> Refusal | None:
        return None

    async def reserve(self, budgets: Sequence[Budget], taking: Taking, *, enforced: bool) -> Reserved:
        return Reservation(())

    def settle(self, reserved: Reserved, spent: Taking | None) -> None:
        return None
