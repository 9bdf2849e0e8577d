"""The base class of the clients of the tiers: it adds a time budget, a limit of waiting texts, and a cache."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn

import msgspec

from gatehouse.detection.documents.output import Reading
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import TierFailed, TierName
from gatehouse.detection.service.cache import Cache, key
from gatehouse.detection.service.tiers import Failure, TierState
from gatehouse.foundation.deadlines import Deadlines

TIERS: Final[tuple[TierName, ...]] = ("ner", "llm")
#: Time for which `health` reports a failure. A later request that succeeds ends it.
_REPORTED_SECONDS: Final = 60.0
#: Maximum number of texts of one message, so that a long request does not block the event loop.
_MAX_MESSAGE_TEXTS: Final = 256
#: Additional time to wait for the message that reading a file has timed out.
_ON_ITS_WAY_SECONDS: Final = 0.5


class Health(msgspec.Struct, frozen=True):
    """The health of a tier. `waiting` is the number of texts in its queue, or None if unknown. `cause` is an error
    message that may contain paths of local files."""

    status: Literal["healthy", "degraded", "unknown"]
    detail: str
    waiting: int | None = None
    cause: str | None = None


class TierRequest:
    """A request to a tier. `take` is called with each answer as it arrives and caches it. If a request times out, its
    repetition therefore needs less time."""

    def __init__(self, texts: list[str], take: Callable[[int, Any], None]) -> None:
        self.texts = texts
        self._take = take
        self._left = len(texts)
        #: completes when the request ends; the result is the failure, or None if all texts have an answer
        self.over: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()

    def complete(self, result: Mapping[int, Any] | Failure) -> None:
        if self.over.done():
            return
        if isinstance(result, str):
            self.over.set_result(result)
            return
        for index, answer in result.items():
            self._take(index, answer)
        self._left -= len(result)
        if not self._left:
            self.over.set_result(None)


class TierDetectors(ABC):
    """Implements the engine's port `Detectors` for one event loop."""

    def __init__(self, *, budget: float, queue: int, on_failure: Callable[[TierFailed], None] | None = None) -> None:
        """`budget` is the timeout of a request in seconds. `queue` is the maximum number of texts that wait for a
        tier."""
        self._deadlines = Deadlines(budget)
        self._queue = queue
        self._on_failure = on_failure
        self._cache = Cache()
        self._waiting: dict[TierName, int] = dict.fromkeys(TIERS, 0)
        #: for each tier, the reason and the monotonic time of the last failure
        self._trouble: dict[str, tuple[str, float]] = {}

    async def entities(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        """Return the findings of the entities tier for each text, including findings of `labels`. Raises `TierFailed`
        if the tier fails or the time budget is used up."""
        return [list(findings) for findings in await self._answers("ner", texts, labels)]

    async def semantic(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        """Return the score of every label for each text. Raises `TierFailed` if the tier fails or the time budget is
        used up."""
        return [dict(scores) for scores in await self._answers("llm", texts, labels)]

    async def document(self, data: bytes, *, declared_as_text: bool, seconds: float) -> Reading:
        """Return the content of a file. `seconds` is the maximum time for waiting and reading together. Raises
        `TierFailed` if reading fails or this time is exceeded."""
        readings: list[Reading] = []
        request = TierRequest([""], lambda _, reading: readings.append(reading))
        try:
            async with asyncio.timeout(seconds + _ON_ITS_WAY_SECONDS):
                deadline = time.monotonic() + seconds
                await self._read(data, declared_as_text=declared_as_text, deadline=deadline, request=request)
        except TimeoutError:
            self._failed(TierFailed("documents", "timeout"))
        except TierFailed as failed:
            self._failed(failed)
        return readings[0]

    def waiting(self, tier: TierName) -> int:
        """Return the number of texts of a tier that wait for an answer."""
        return self._waiting[tier]

    async def health(self) -> dict[TierName, Health]:
        """Return the health of each tier. Takes at most about a second."""
        states = await self._states()
        return {tier: self._health(tier, None if states is None else states[tier]) for tier in TIERS}

    @abstractmethod
    async def _ask(self, tier: TierName, request: TierRequest, labels: Sequence[str], deadline: float) -> None:
        """Send a request to a tier and wait until all texts have an answer. Raises `TierFailed`."""

    @abstractmethod
    async def _read(self, data: bytes, *, declared_as_text: bool, deadline: float, request: TierRequest) -> None:
        """Send a file and wait until it has been read. Raises `TierFailed`."""

    @abstractmethod
    async def _states(self) -> dict[TierName, TierState] | None:
        """Return the states of the tiers, or None if there is no answer."""

    def _unreachable(self) -> Health:
        """Return the health of a tier whose process cannot be reached."""
        return Health("unknown", "not running")

    async def _answers(self, tier: TierName, texts: Sequence[str], labels: Sequence[str]) -> list[Any]:
        answers: list[Any] = []
        try:
            with self._deadlines.one():
                deadline = time.monotonic() + self._deadlines.seconds
                for start in range(0, len(texts), _MAX_MESSAGE_TEXTS):
                    if start:
                        # If all answers are cached, nothing else here would let other tasks run.
                        await asyncio.sleep(0)
                    answers += await self._of_part(tier, texts[start : start + _MAX_MESSAGE_TEXTS], labels, deadline)
        except TimeoutError:
            self._failed(TierFailed(tier, "timeout"))
        except TierFailed as failed:
            self._failed(failed)
        return answers

    async def _of_part(self, tier: TierName, texts: Sequence[str], labels: Sequence[str], deadline: float) -> list[Any]:
        keys = [key(tier, labels, text) for text in texts]
        answers = {cache_key: self._cache.get(cache_key) for cache_key in keys}
        missing = {cache_key: text for cache_key, text in zip(keys, texts, strict=True) if answers[cache_key] is None}
        if missing:
            places = list(missing)

            def take(index: int, answer: Any) -> None:
                answers[places[index]] = answer
                self._cache.put(places[index], answer)

            await self._ask_within_queue(tier, TierRequest(list(missing.values()), take), labels, deadline)
        return [answers[cache_key] for cache_key in keys]

    async def _ask_within_queue(
        self, tier: TierName, request: TierRequest, labels: Sequence[str], deadline: float
    ) -> None:
        texts = request.texts
        waiting = self._waiting[tier]
        if waiting and waiting + len(texts) > self._queue:
            raise TierFailed(tier, "overloaded")
        self._waiting[tier] += len(texts)
        try:
            await self._ask(tier, request, labels, deadline)
        finally:
            self._waiting[tier] -= len(texts)
        self._trouble.pop(tier, None)

    def _failed(self, failed: TierFailed) -> NoReturn:
        self._trouble[failed.tier] = (failed.reason, time.monotonic())
        if self._on_failure is not None:
            self._on_failure(failed)
        raise failed from None

    def _health(self, tier: TierName, state: TierState | None) -> Health:
        now = self._unreachable() if state is None else Health("healthy", state.phase, state.waiting)
        if state is not None and state.phase == "unusable":
            now = Health("degraded", "the model cannot be loaded", state.waiting, state.detail)
        reason, since = self._trouble.get(tier, ("", 0.0))
        if reason and now.status != "degraded" and time.monotonic() - since < _REPORTED_SECONDS:
            return Health("degraded", f"the last request failed: {reason}", now.waiting)
        return now
