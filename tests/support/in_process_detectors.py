"""Runs the tiers in threads of the current process, for tests. A model that hangs is not ended."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from gatehouse.detection.documents.readers import Readers, ReaderUnavailable
from gatehouse.detection.models import TierFailed, TierName
from gatehouse.detection.service.detectors import TierDetectors, TierRequest
from gatehouse.detection.service.tiers import Failure, TierJob, TierModels, Tiers, TierState


class InProcessDetectors(TierDetectors):
    def __init__(
        self, load: TierModels, *, budget: float, queue: int, on_failure: Callable[[TierFailed], None] | None = None
    ) -> None:
        super().__init__(budget=budget, queue=queue, on_failure=on_failure)
        self._tiers = Tiers(load, queue=queue, hung_after=budget)
        self._readers = Readers()

    async def stop(self) -> None:
        await self._readers.stop()

    async def _ask(self, tier: TierName, request: TierRequest, labels: Sequence[str], deadline: float) -> None:
        loop = asyncio.get_running_loop()

        def on_result(result: dict[int, Any] | Failure) -> None:
            loop.call_soon_threadsafe(request.complete, result)

        job = TierJob[Any](request.texts, labels, deadline, on_result)
        if tier == "ner":
            self._tiers.entities.submit(job)
        else:
            self._tiers.semantic.submit(job)
        try:
            if failure := await request.over:
                raise TierFailed(tier, failure)
        finally:
            job.cancel()

    async def _read(self, data: bytes, *, declared_as_text: bool, deadline: float, request: TierRequest) -> None:
        try:
            reading = await self._readers.read(data, declared_as_text=declared_as_text, deadline=deadline)
        except ReaderUnavailable as error:
            raise TierFailed("documents", error.reason) from None
        request.complete({0: reading})

    async def _states(self) -> dict[TierName, TierState]:
        return self._tiers.states()
