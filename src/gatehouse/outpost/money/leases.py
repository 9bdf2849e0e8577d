"""Divides a month's budget among peers, so that all peers together never spend more than the limit.

All peers begin the month with equal parts. A peer whose share is too small requests an amount from another peer. The
other peer stores its reduced share before it responds. If the response is lost, the request is repeated with the same
id, and has the same response. So an amount is always deducted from the giver before the receiver adds it. An amount
that is lost in transfer is lost to both.

The division of a month does not change when the list of peers changes during the month. An outpost without a stored
month claims its part from its peers (`Claim`). They grant one claim to each of the peers that share the month. A claim
is refused if the outpost has lost its disk, has joined during the month, or divides by another number of peers. Such an
outpost begins the month without a part, and spends only amounts that peers give to it.

An outpost may learn only after the beginning of the month that its claim is refused. Then it gives up its part. It also
requests an amount from its peers that is equal to what it has already spent. Otherwise the peers would spend the same
amount again. If two outposts refuse each other's claims, the earlier claim is valid.

Months never begin again: if the clock is set back, the last month that has begun stays the current one.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID, uuid4

import msgspec

from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost import durable_files

#: A pair of amounts: nano USD, requests.
Pair: TypeAlias = tuple[int, int]
ZERO: Final[Pair] = (0, 0)


class LeaseLimits(NamedTuple):
    """The limits of a month for all peers together. None is unlimited."""

    nano_usd: int | None
    requests: int | None


class Claim(msgspec.Struct, frozen=True):
    """A claim to a part of a month's limit. `month` is the beginning of the month as Unix time. `parts` is the number
    of outposts that divide the limit, and `place` is the index of this outpost among them, or None if it is unknown.
    `nonce` distinguishes claims of the same outpost. `made` is the Unix time of the claim."""

    month: int
    nonce: UUID
    parts: int
    place: int | None = None
    made: float = 0.0


class Transfer(msgspec.Struct, frozen=True):
    """The last amounts that this outpost has given to one peer."""

    id: UUID
    amounts: Pair


class Month(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one month. `owns` is whether this outpost has a part of the limit, or None before the month has
    begun. `received` and `given` are the sums of the amounts from and to peers. `claims` are the granted claims by
    outpost. `asking` maps the address of a peer to the id of a request without a response. `last` is the last transfer
    to each peer."""

    claim: Claim
    owns: bool | None = None
    received: Pair = ZERO
    given: Pair = ZERO
    claims: dict[UUID, Claim] = {}
    asking: dict[str, UUID] = {}
    last: dict[UUID, Transfer] = {}


class Leases:
    """The shares of one outpost. They are stored in a file. Raises `BadSettings` if the file cannot be read."""

    def __init__(
        self,
        path: Path,
        *,
        parts: int,
        place: int | None = None,
        write: Callable[[Path, bytes], None] = durable_files.write,
    ) -> None:
        self._path = path
        self._parts, self._place = parts, place
        self._write = write
        self._turn = asyncio.Lock()
        self._months = _read(path)
        #: Beginning of the last month that has begun.
        self.latest = max((start for start, month in self._months.items() if month.owns is not None), default=0)
        #: whether the file is older than the months in memory
        self._unsaved = False

    def begun(self, start: int) -> bool:
        """Returns whether the month has begun. In all methods `start` is the beginning of the month as Unix time."""
        return self._of(start).owns is not None

    def owns(self, start: int) -> bool:
        """Returns whether this outpost has a part of the limit."""
        return self._of(start).owns is True

    def claim(self, start: int) -> Claim | None:
        """Returns the stored claim to the month, or None."""
        month = self._months.get(start)
        return None if month is None else month.claim

    def share(self, start: int, limits: LeaseLimits) -> tuple[int | None, int | None]:
        """Returns the nano USD and the requests that this outpost may spend in the month. None is unlimited. The values
        may be negative."""
        month = self._of(start)
        return _share(month, limits.nano_usd, 0), _share(month, limits.requests, 1)

    async def prepare(self, start: int) -> Claim:
        """Stores this outpost's claim to the month, if it is not stored yet, and returns it. Raises `OSError`."""
        async with self._turn:
            month = self._of(start)
            if start not in self._months:
                await self._save_then_apply(start, month)
            return month.claim

    async def begin(self, start: int, *, owns: bool) -> None:
        """Begins the month, and deletes earlier months. Raises `OSError`: then the month has not begun."""
        async with self._turn:
            month = self._of(start)
            if month.owns is None:
                for ended in [month_start for month_start in self._months if month_start < start]:
                    del self._months[ended]
                await self._save_then_apply(start, msgspec.structs.replace(month, owns=owns))
                self.latest = max(self.latest, start)

    async def give_up(self, start: int) -> None:
        """Gives up this outpost's part, because it belongs to another outpost. The change is stored when this method
        returns. Raises `OSError`."""
        async with self._turn:
            month = self._of(start)
            if month.owns:
                self._months[start] = msgspec.structs.replace(month, owns=False)
                self._unsaved = True
            if self._unsaved:
                await self._save(self._months)

    async def grant(self, peer_id: UUID, claim: Claim) -> bool:
        """Decides about the claim of a peer. Returns whether the peer may begin the month with a part of the limit.
        Raises `OSError`."""
        async with self._turn:
            month = self._of(claim.month)
            granted = month.claims.get(peer_id)
            if granted is not None:
                return granted.nonce == claim.nonce
            own = month.claim
            places = {own.place, *(granted_claim.place for granted_claim in month.claims.values())} - {None}
            if claim.parts != own.parts or claim.place in places or len(month.claims) >= own.parts - 1:
                return False
            await self._save_then_apply(
                claim.month, msgspec.structs.replace(month, claims={**month.claims, peer_id: claim})
            )
            return True

    async def give(
        self, start: int, peer_id: UUID, transfer: UUID, requested: Pair, unused: Callable[[], Pair]
    ) -> Pair:
        """Gives amounts to a peer and returns them. `unused` returns the amounts that this outpost can give. Of nano
        USD and of requests, the peer receives the requested amount or half of the available amount, whichever is
        larger, but not more than is available. The change is stored when this method returns.

        Raises `OSError`. The peer then requests the same transfer again.
        """
        async with self._turn:
            month = self._of(start)
            last = month.last.get(peer_id)
            if last is None or last.id != transfer:
                available = unused()
                amounts = _part(available[0], requested[0]), _part(available[1], requested[1])
                if amounts == ZERO:
                    return ZERO
                last = Transfer(transfer, amounts)
                # Deduct the amounts before the write, so that they are not spent here meanwhile.
                self._months[start] = msgspec.structs.replace(
                    month, given=_plus(month.given, amounts), last={**month.last, peer_id: last}
                )
                self._unsaved = True
            if self._unsaved:
                await self._save(self._months)
            return last.amounts

    async def ask(self, start: int, address: str) -> UUID:
        """Returns the id for a request to a peer: the id of the request without a response, else a new id, which is
        stored. Raises `OSError`."""
        async with self._turn:
            month = self._of(start)
            transfer = month.asking.get(address)
            if transfer is None:
                transfer = uuid4()
                await self._save_then_apply(
                    start, msgspec.structs.replace(month, asking={**month.asking, address: transfer})
                )
            return transfer

    async def receive(self, start: int, address: str, transfer: UUID, amounts: Pair) -> None:
        """Adds the amounts of a peer's response to the request with the id `transfer`. The change is stored when this
        method returns. Raises `OSError`: then the request is repeated."""
        async with self._turn:
            month = self._of(start)
            if month.asking.get(address) == transfer:
                asking = {
                    peer_address: pending for peer_address, pending in month.asking.items() if peer_address != address
                }
                received = _plus(month.received, amounts)
                await self._save_then_apply(start, msgspec.structs.replace(month, asking=asking, received=received))

    def waiting(self, start: int) -> tuple[str, ...]:
        """Returns the addresses of peers that have not responded to a request."""
        return tuple(self._of(start).asking)

    def _of(self, start: int) -> Month:
        return self._months.get(start) or Month(claim=Claim(start, uuid4(), self._parts, self._place, time.time()))

    async def _save_then_apply(self, start: int, changed: Month) -> None:
        """Stores the month before it applies in memory, so that a share only increases after it has been stored."""
        await self._save({**self._months, start: changed})
        self._months[start] = changed

    async def _save(self, months: dict[int, Month]) -> None:
        writing = asyncio.ensure_future(asyncio.to_thread(self._write, self._path, _encode(months)))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # The thread still writes, and the next write must not run at the same time.
            await asyncio.wait([writing])
            raise
        self._unsaved = False


def _share(month: Month, limit: int | None, metric: int) -> int | None:
    if limit is None:
        return None
    own = 0
    if month.owns:
        parts, place = month.claim.parts, month.claim.place
        # The first outpost has the remainder of the division, if the places are known.
        own = limit // parts + (limit % parts if place == 0 else 0)
    # After the limit has been lowered, the amounts that were received under the former limit could exceed it.
    return min(limit, own + month.received[metric] - month.given[metric])


def _part(available: int, requested: int) -> int:
    return max(0, min(available, max(requested, available // 2))) if requested > 0 else 0


def _plus(first: Pair, second: Pair) -> Pair:
    return first[0] + second[0], first[1] + second[1]


def _encode(months: dict[int, Month]) -> bytes:
    return msgspec.json.encode(list(months.values()))


def _read(path: Path) -> dict[int, Month]:
    try:
        document = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadSettings(f"{path} cannot be read ({error}): it contains the amounts this outpost may spend") from None
    try:
        return {month.claim.month: month for month in msgspec.json.decode(document, type=list[Month])}
    except msgspec.DecodeError as error:
        raise BadSettings(f"{path} cannot be read ({error}); remove it to begin the month again") from None
