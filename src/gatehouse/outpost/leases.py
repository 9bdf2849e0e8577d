"""How a month's budget is divided among peers, so that all together never spend more than its limit.

Each begins the month with the same part. Whoever has too little asks another, who writes its smaller share down before
it answers; an answer that was lost is asked for again by its id, and is then the same one. So what is given is always
less here before it is more there, and what gets lost on the way is lost to both.

A month goes on as it began, whatever happens to the list of peers meanwhile. An outpost that has no record of a month
says to its peers that it begins it (`Claim`); they grant that once to each of those that share it. Whoever is refused
(its disk was lost, it came in the midst of the month, it divides by another number) begins with nothing, and lives on
what it is given. Whoever hears that only later gives its part up then, and asks for what it has spent of it: that is
missing here. Of two who refuse each other the later one is wrong.

A month that has begun is not followed by a former one: a clock that goes back makes nothing anew.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID, uuid4

import msgspec

from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost import kept

#: nano USD, requests
Pair: TypeAlias = tuple[int, int]
ZERO: Final[Pair] = (0, 0)


class Limits(NamedTuple):
    """Of a month, all peers together; None: without end."""

    nano_usd: int | None
    requests: int | None


class Claim(msgspec.Struct, frozen=True):
    """`month` is its beginning in Unix time, `parts` among how many the limit is divided, `place` who of them this is,
    where that is known. `nonce` tells one beginning from another of the same outpost; `made` is when, as Unix time."""

    month: int
    nonce: UUID
    parts: int
    place: int | None = None
    made: float = 0.0


class Given(msgspec.Struct, frozen=True):
    id: UUID
    amounts: Pair


class Month(msgspec.Struct, frozen=True, kw_only=True):
    """`owns`: whether a part of the limit is this outpost's; None: not begun. `asking` are ids by the address of whom
    they were sent to, without an answer yet; `last` is what each peer was given last."""

    claim: Claim
    owns: bool | None = None
    received: Pair = ZERO
    given: Pair = ZERO
    claims: dict[UUID, Claim] = {}
    asking: dict[str, UUID] = {}
    last: dict[UUID, Given] = {}


class Leases:
    """One outpost's, kept in a file. Raises `BadSettings` where that cannot be read."""

    def __init__(
        self,
        path: Path,
        *,
        parts: int,
        place: int | None = None,
        write: Callable[[Path, bytes], None] = kept.write,
    ) -> None:
        self._path = path
        self._parts, self._place = parts, place
        self._write = write
        self._turn = asyncio.Lock()
        self._months = _read(path)
        #: the last month that has begun
        self.latest = max((start for start, month in self._months.items() if month.owns is not None), default=0)
        #: whether the file is older than what is in memory
        self._behind = False

    def begun(self, start: int) -> bool:
        """`start` is always the month's beginning, as Unix time."""
        return self._of(start).owns is not None

    def owns(self, start: int) -> bool:
        """Whether a part of the limit is this outpost's own."""
        return self._of(start).owns is True

    def claim(self, start: int) -> Claim | None:
        """None while there is none that is kept."""
        month = self._months.get(start)
        return None if month is None else month.claim

    def share(self, start: int, limits: Limits) -> tuple[int | None, int | None]:
        """What this outpost may spend in the month, of dollars and requests; None: without end. May be below zero."""
        month = self._of(start)
        return _share(month, limits.nano_usd, 0), _share(month, limits.requests, 1)

    async def prepare(self, start: int) -> Claim:
        """To be shown to peers. Raises `OSError`."""
        async with self._turn:
            month = self._of(start)
            if start not in self._months:
                await self._grow(start, month)
            return month.claim

    async def begin(self, start: int, *, owns: bool) -> None:
        """Raises `OSError`, and the month has not begun. A month that is over is forgotten."""
        async with self._turn:
            month = self._of(start)
            if month.owns is None:
                for over in [each for each in self._months if each < start]:
                    del self._months[over]
                await self._grow(start, msgspec.structs.replace(month, owns=owns))
                self.latest = max(self.latest, start)

    async def give_up(self, start: int) -> None:
        """This outpost's own part is somebody else's. Kept when this returns. Raises `OSError`."""
        async with self._turn:
            month = self._of(start)
            if month.owns:
                self._months[start] = msgspec.structs.replace(month, owns=False)
                self._behind = True
            if self._behind:
                await self._keep(self._months)

    async def grant(self, asker: UUID, claim: Claim) -> bool:
        """Whether a peer may begin a month with a part of its own. Raises `OSError`."""
        async with self._turn:
            month = self._of(claim.month)
            known = month.claims.get(asker)
            if known is not None:
                return known.nonce == claim.nonce
            own = month.claim
            places = {own.place, *(each.place for each in month.claims.values())} - {None}
            if claim.parts != own.parts or claim.place in places or len(month.claims) >= own.parts - 1:
                return False
            await self._grow(claim.month, msgspec.structs.replace(month, claims={**month.claims, asker: claim}))
            return True

    async def give(self, start: int, asker: UUID, transfer: UUID, wanted: Pair, unused: Callable[[], Pair]) -> Pair:
        """What is given, of what is `unused` here now: as much as is wanted, and half of the rest ahead. Kept when
        this returns. Raises `OSError`; the same transfer is then asked for again."""
        async with self._turn:
            month = self._of(start)
            last = month.last.get(asker)
            if last is None or last.id != transfer:
                free = unused()
                amounts = _part(free[0], wanted[0]), _part(free[1], wanted[1])
                if amounts == ZERO:
                    return ZERO
                last = Given(transfer, amounts)
                # Less here at once: what is being written must not be spent meanwhile.
                self._months[start] = msgspec.structs.replace(
                    month, given=_plus(month.given, amounts), last={**month.last, asker: last}
                )
                self._behind = True
            if self._behind:
                await self._keep(self._months)
            return last.amounts

    async def ask(self, start: int, address: str) -> UUID:
        """The id to ask a peer with: the one whose answer is still to come, or a new one, kept. Raises `OSError`."""
        async with self._turn:
            month = self._of(start)
            transfer = month.asking.get(address)
            if transfer is None:
                transfer = uuid4()
                await self._grow(start, msgspec.structs.replace(month, asking={**month.asking, address: transfer}))
            return transfer

    async def receive(self, start: int, address: str, transfer: UUID, amounts: Pair) -> None:
        """A peer's answer to `ask`. Kept when this returns. Raises `OSError`; the peer is then asked again."""
        async with self._turn:
            month = self._of(start)
            if month.asking.get(address) == transfer:
                asking = {other: each for other, each in month.asking.items() if other != address}
                received = _plus(month.received, amounts)
                await self._grow(start, msgspec.structs.replace(month, asking=asking, received=received))

    def waiting(self, start: int) -> tuple[str, ...]:
        """Addresses that have not answered what they were asked for."""
        return tuple(self._of(start).asking)

    def _of(self, start: int) -> Month:
        return self._months.get(start) or Month(claim=Claim(start, uuid4(), self._parts, self._place, time.time()))

    async def _grow(self, start: int, changed: Month) -> None:
        """More only when it is kept."""
        await self._keep({**self._months, start: changed})
        self._months[start] = changed

    async def _keep(self, months: dict[int, Month]) -> None:
        writing = asyncio.ensure_future(asyncio.to_thread(self._write, self._path, _encode(months)))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # Whoever waited is gone; the next must not write beside it.
            await asyncio.wait([writing])
            raise
        self._behind = False


def _share(month: Month, limit: int | None, metric: int) -> int | None:
    if limit is None:
        return None
    own = 0
    if month.owns:
        parts, place = month.claim.parts, month.claim.place
        # What cannot be divided goes to the first of them, where everybody's place is known.
        own = limit // parts + (limit % parts if place == 0 else 0)
    # Where the limit was lowered: what one has given by the former one would be more than all may spend.
    return min(limit, own + month.received[metric] - month.given[metric])


def _part(free: int, wanted: int) -> int:
    return max(0, min(free, max(wanted, free // 2))) if wanted > 0 else 0


def _plus(one: Pair, other: Pair) -> Pair:
    return one[0] + other[0], one[1] + other[1]


def _encode(months: dict[int, Month]) -> bytes:
    return msgspec.json.encode(list(months.values()))


def _read(path: Path) -> dict[int, Month]:
    try:
        document = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadSettings(f"{path} cannot be read ({error}): it says what this outpost may spend") from None
    try:
        return {month.claim.month: month for month in msgspec.json.decode(document, type=list[Month])}
    except msgspec.DecodeError as error:
        raise BadSettings(f"{path} cannot be read ({error}); remove it to begin the month anew") from None
