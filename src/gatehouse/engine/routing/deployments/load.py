"""Counts the requests in progress and the tokens of the last minute of each deployment, for this worker."""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Literal, TypeAlias
from zlib import crc32

from gatehouse.engine.ports import Ports
from gatehouse.policy.aliases import Deployment

#: Maximum number of deployments whose load a worker keeps. The least recently used one is dropped.
MAX_DEPLOYMENTS: Final = 10_000
#: Time for which tokens count: a minute and the width of a bucket, so that no period of 60 seconds exceeds the limit.
_WINDOW_SECONDS: Final = 61.0
_BUCKET_SECONDS: Final = 1.0
#: Seconds after which a client may try again if a deployment has no free place (`Retry-After`).
BUSY_SECONDS: Final = 1.0


#: How a request uses an alias: as its model, as a fallback, or to count tokens.
AliasUse: TypeAlias = Literal["named", "fallback", "token_count"]
#: The time at which a bucket begins, and the number of its tokens.
_Bucket: TypeAlias = list[float]


class _Tokens:
    """The tokens of the last minute in buckets of one second."""

    __slots__ = ("_buckets", "used")

    def __init__(self) -> None:
        self._buckets: deque[_Bucket] = deque()
        self.used = 0.0

    def expire(self, now: float) -> None:
        buckets = self._buckets
        while buckets and buckets[0][0] <= now - _WINDOW_SECONDS:
            self.used -= buckets.popleft()[1]

    def add(self, now: float, tokens: float) -> _Bucket:
        """Count the tokens now. Return their bucket."""
        self.used += tokens
        if not self._buckets or now - self._buckets[-1][0] >= _BUCKET_SECONDS:
            self._buckets.append([now, 0.0])
        bucket = self._buckets[-1]
        bucket[1] += tokens
        return bucket

    def reduce(self, bucket: _Bucket, tokens: float) -> None:
        """Count fewer tokens in the bucket. It has no effect once the bucket has expired."""
        if self._buckets and bucket[0] >= self._buckets[0][0]:
            bucket[1] -= tokens
            self.used -= tokens

    def seconds_until(self, room: float, now: float) -> float:
        """Return the seconds until at most `room` tokens are used."""
        used = self.used
        for began, tokens in self._buckets:
            used -= tokens
            if used <= room:
                return max(began + _WINDOW_SECONDS - now, 0.0)
        return _WINDOW_SECONDS


class DeploymentLoad:
    """The load of one deployment in this worker."""

    __slots__ = ("first_worker", "full_until", "in_flight", "shadow_turn", "tokens", "turns")

    def __init__(self, turn: float, key: str) -> None:
        self.in_flight = 0
        #: If a limit cannot be divided equally, some consecutive workers get one more than the others. This number
        #: modulo the number of workers is the number of the first of them. It differs between deployments, so that no
        #: worker is at a disadvantage.
        self.first_worker = crc32(key.encode())
        #: turns gained and not yet used (module `order`), counted separately for each use of the alias
        self.turns: dict[AliasUse, float] = dict.fromkeys(("named", "fallback", "token_count"), turn)
        #: sum of the shares of requests since the last one that was copied to this shadow
        self.shadow_turn = 0.0
        #: monotonic time until which the limit of requests per minute is reached
        self.full_until = 0.0
        self.tokens = _Tokens()


class Place:
    """The place of a request at a deployment, until it is released."""

    __slots__ = ("_load", "_reserved", "deployment")

    def __init__(self, deployment: Deployment, load: DeploymentLoad) -> None:
        self.deployment = deployment
        self._load: DeploymentLoad | None = load
        #: the likely tokens of the attempts, with their buckets
        self._reserved: list[tuple[_Bucket, float]] = []
        load.in_flight += 1

    def reserve(self, tokens: float, now: float) -> None:
        """Count the likely tokens of one attempt."""
        if self._load is not None:
            self._reserved.append((self._load.tokens.add(now, tokens), tokens))

    def cancel_reservation(self) -> None:
        """Undo the last `reserve`, because the attempt is not made."""
        if self._load is not None and self._reserved:
            self._load.tokens.reduce(*self._reserved.pop())

    def release(self, now: float, tokens: int | None = None) -> None:
        """Leave the deployment. `tokens` are the tokens that the request used, or None if they are unknown: then the
        likely tokens remain counted. Further calls have no effect."""
        load, self._load = self._load, None
        if load is None:
            return
        load.in_flight -= 1
        if tokens is None or not self._reserved:
            return
        # A reservation that is too large is reduced in its own bucket, so that the correction expires with it.
        missing = float(tokens)
        for bucket, reserved in reversed(self._reserved):
            kept = min(reserved, missing)
            load.tokens.reduce(bucket, reserved - kept)
            missing -= kept
        if missing:
            load.tokens.add(now, missing)


class DeploymentLoads:
    """The loads of one worker's deployments.

    Each worker admits its part of a limit (`Ports.workers`). The parts differ by at most one, and their sum is the
    limit. While the host's counters are shared, requests per minute are counted for all workers together instead."""

    def __init__(self, ports: Ports, random: Callable[[], float]) -> None:
        """Create the loads. `random` returns numbers from 0 to 1."""
        self._ports = ports
        self._clock = ports.clock
        self._random = random
        self._loads: OrderedDict[str, DeploymentLoad] = OrderedDict()

    def __len__(self) -> int:
        return len(self._loads)

    def of(self, deployment: Deployment) -> DeploymentLoad:
        load = self._loads.get(deployment.key)
        if load is None:
            # Each worker starts at a random turn, so that a few requests to many workers are also spread.
            load = self._loads[deployment.key] = DeploymentLoad(self._random(), deployment.key)
            if len(self._loads) > MAX_DEPLOYMENTS:
                self._loads.popitem(last=False)
        self._loads.move_to_end(deployment.key)
        return load

    def is_full(self, deployment: Deployment, tokens: int) -> bool:
        """Return whether the deployment has no room for a request with this number of tokens."""
        load, now = self.of(deployment), self._clock.monotonic()
        if deployment.requests_per_minute is not None and now < load.full_until:
            return True
        return self._lacks_place(deployment, load) or self._lacks_tokens(deployment, load, tokens, now)

    def enter(self, deployment: Deployment) -> Place | None:
        """Return a place at the deployment, or None if its maximum number of requests is in progress."""
        load = self.of(deployment)
        return None if self._lacks_place(deployment, load) else Place(deployment, load)

    async def count(self, place: Place, tokens: int) -> float | None:
        """Count one attempt of the request against the limits per minute. Return None if it is admitted, else the
        seconds until there may be room."""
        deployment = place.deployment
        load, now = self.of(deployment), self._clock.monotonic()
        if self._lacks_tokens(deployment, load, tokens, now):
            limit = self._part(deployment.tokens_per_minute or 0, load)
            return load.tokens.seconds_until(limit - tokens, now)
        if deployment.tokens_per_minute is not None:
            # Reserved before the wait below, so that concurrent requests do not exceed the limit together.
            place.reserve(tokens, now)
        if deployment.requests_per_minute is None:
            return None
        limit = deployment.requests_per_minute
        part = self._part(limit, load)
        taken = await self._ports.counters.take(f"deployment:{deployment.key}", limit, own_limit=part)
        if taken.allowed:
            return None
        if deployment.tokens_per_minute is not None:
            place.cancel_reservation()
        if taken.rate.limit == 0:
            # The workers do not share their counters now, and this worker has no part of the limit. When the client
            # tries again, the counters may be shared, or the request may reach a worker that has a part.
            return BUSY_SECONDS
        load.full_until = now + taken.retry_after
        return float(taken.retry_after)

    def _lacks_place(self, deployment: Deployment, load: DeploymentLoad) -> bool:
        limit = deployment.max_concurrent_requests
        return limit is not None and load.in_flight >= self._part(limit, load)

    def _lacks_tokens(self, deployment: Deployment, load: DeploymentLoad, tokens: int, now: float) -> bool:
        if deployment.tokens_per_minute is None:
            return False
        load.tokens.expire(now)
        return load.tokens.used + tokens > self._part(deployment.tokens_per_minute, load)

    def _part(self, limit: int, load: DeploymentLoad) -> int:
        """Return this worker's part of a limit. A limit below the number of workers leaves 0 for some of them."""
        workers = self._ports.workers
        if workers == 1:
            return limit
        share, rest = divmod(limit, workers)
        has_more = (self._ports.worker - load.first_worker) % workers < rest
        return share + 1 if has_more else share
