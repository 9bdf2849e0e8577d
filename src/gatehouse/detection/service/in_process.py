"""The tiers in threads of the own process: for commands, which end with them, and tests. Nothing ends a hung model."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from gatehouse.detection.models import TierFailed, TierName
from gatehouse.detection.service.detectors import Asked, TierDetectors
from gatehouse.detection.service.tiers import Failure, Job, Models, Tiers, TierState


class InProcessDetectors(TierDetectors):
    def __init__(
        self, load: Models, *, budget: float, queue: int, on_failure: Callable[[TierFailed], None] | None = None
    ) -> None:
        super().__init__(budget=budget, queue=queue, on_failure=on_failure)
        self._tiers = Tiers(load, queue=queue, hung_after=budget)

    async def _ask(self, tier: TierName, asked: Asked, labels: Sequence[str], deadline: float) -> None:
        loop = asyncio.get_running_loop()

        def tell(result: dict[int, Any] | Failure) -> None:
            loop.call_soon_threadsafe(asked.told, result)

        job = Job[Any](asked.texts, labels, deadline, tell)
        if tier == "ner":
            self._tiers.entities.submit(job)
        else:
            self._tiers.semantic.submit(job)
        if failure := await asked.over:
            raise TierFailed(tier, failure)

    async def _states(self) -> dict[TierName, TierState]:
        return self._tiers.states()
