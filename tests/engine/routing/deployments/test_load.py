"""The tokens of a deployment in any minute, with reservations that are corrected when requests end."""

import pytest
from tests.engine.routing.deployments.aliases import alias_record, compiled
from tests.support.engine import EngineHarness

from gatehouse.engine.routing.deployments.load import DeploymentLoads, Place

LIMIT = 100_000


class Worker:
    """One deployment with a limit of tokens, in one worker."""

    def __init__(self) -> None:
        harness = EngineHarness()
        self.clock = harness.clock
        self.loads = DeploymentLoads(harness.ports, lambda: 0.5)
        self.deployment = compiled(alias_record("fast", {"provider": "one", "tokens_per_minute": LIMIT})).live[0]

    async def reserve(self, tokens: int) -> Place | None:
        """Return the place of a request, or None if the limit refuses it."""
        place = self.loads.enter(self.deployment)
        assert place is not None
        return place if await self.loads.count(place, tokens) is None else None

    @property
    def used(self) -> float:
        tokens = self.loads.of(self.deployment).tokens
        tokens.expire(self.clock.monotonic())
        return tokens.used

    def release(self, place: Place | None, tokens: int | None) -> None:
        assert place is not None
        place.release(self.clock.monotonic(), tokens)


async def test_a_correction_expires_with_its_reservation() -> None:
    worker = Worker()
    places = [await worker.reserve(10_000) for _ in range(10)]
    assert await worker.reserve(1) is None
    worker.clock.move(50)
    for place in places:
        worker.release(place, 1_000)
    assert worker.used == 10_000
    worker.clock.move(11)
    assert worker.used == 0
    assert [await worker.reserve(10_000) is not None for _ in range(11)] == [True] * 10 + [False]


@pytest.mark.parametrize("tokens", [1_000, 15_000, None])
async def test_a_request_that_ends_after_its_reservation_expired_counts_only_its_excess(tokens: int | None) -> None:
    worker = Worker()
    place = await worker.reserve(10_000)
    worker.clock.move(70)
    assert await worker.reserve(20_000) is not None
    worker.release(place, tokens)
    assert worker.used == 20_000 + max((tokens or 0) - 10_000, 0)


async def test_an_attempt_that_is_not_made_reserves_nothing() -> None:
    worker = Worker()
    place = await worker.reserve(10_000)
    assert place is not None
    worker.clock.move(5)
    assert await worker.loads.count(place, 20_000) is None
    place.cancel_reservation()
    assert worker.used == 10_000
    worker.release(place, 4_000)
    assert worker.used == 4_000
    worker.clock.move(57)
    assert worker.used == 0
