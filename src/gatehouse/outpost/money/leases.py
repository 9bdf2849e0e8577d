"""Division of a month's budget among peers, so that all of them together never spend more than its limit.

All peers begin the month with equal parts. A peer that has too little requests more from another one, which stores its
smaller share before it answers. A request whose answer was lost is repeated with the same id, and gets the same answer.
So an amount is always deducted from the giver before the receiver adds it, and an amount that is lost on the way is
lost to both.

A month keeps its division, whatever happens to the list of peers meanwhile. An outpost without a record of a month
claims its part from its peers (`Claim`); they grant a claim once to each of the peers that share the month. An outpost
whose claim is refused (its disk was lost, it joined in the middle of the month, it divides by another number) begins
with no part, and spends only what peers give it. An outpost that learns of the refusal later gives its part up then,
and requests what it has already spent of it, because that amount is missing at the others. If two outposts refuse each
other, the later claim is void.

A month that has begun is not followed by an earlier one: a clock that is set back begins no month again.
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

#: Amounts: nano USD, requests.
Pair: TypeAlias = tuple[int, int]
ZERO: Final[Pair] = (0, 0)


class LeaseLimits(NamedTuple):
    """A month's limits for all peers together; None is unlimited."""

    nano_usd: int | None
    requests: int | None


class Claim(msgspec.Struct, frozen=True):
    """A claim to a part of a month. `month` is its beginning as Unix time, `parts` the number of peers that divide the
    limit, and `place` this outpost's index among them, where it is known. `nonce` distinguishes claims of the same
    outpost; `made` is the claim's Unix time."""

    month: int
    nonce: UUID
    parts: int
    place: int | None = None
    made: float = 0.0


class Transfer(msgspec.Struct, frozen=True):
    """The last amounts that were given to one peer."""

    id: UUID
    amounts: Pair


class Month(msgspec.Struct, frozen=True, kw_only=True):
    """`owns` is whether this outpost has a part of the limit; None until the month has begun. `asking` maps a
    peer's address to the id of a request that it has not answered; `last` is the last transfer to each peer."""

    claim: Claim
    owns: bool | None = None
    received: Pair = ZERO
    given: Pair = ZERO
    claims: dict[UUID, Claim] = {}
    asking: dict[str, UUID] = {}
    last: dict[UUID, Transfer] = {}


class Leases:
    """One outpost's shares, stored in a file. Raises `BadSettings` if it cannot be read."""

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
        """Returns whether the month has begun. `start` is always the month's beginning as Unix time."""
        return self._of(start).owns is not None

    def owns(self, start: int) -> bool:
        """Returns whether a part of the limit is this outpost's own."""
        return self._of(start).owns is True

    def claim(self, start: int) -> Claim | None:
        """Returns the stored claim to the month, or None."""
        month = self._months.get(start)
        return None if month is None else month.claim

    def share(self, start: int, limits: LeaseLimits) -> tuple[int | None, int | None]:
        """Returns the nano USD and requests that this outpost may spend in the month; None is unlimited. May be
        negative."""
        month = self._of(start)
        return _share(month, limits.nano_usd, 0), _share(month, limits.requests, 1)

    async def prepare(self, start: int) -> Claim:
        """Returns the claim that is shown to peers, stored. Raises `OSError`."""
        async with self._turn:
            month = self._of(start)
            if start not in self._months:
                await self._save_then_apply(start, month)
            return month.claim

    async def begin(self, start: int, *, owns: bool) -> None:
        """Begins the month, and forgets earlier months. Raises `OSError`; the month has then not begun."""
        async with self._turn:
            month = self._of(start)
            if month.owns is None:
                for ended in [month_start for month_start in self._months if month_start < start]:
                    del self._months[ended]
                await self._save_then_apply(start, msgspec.structs.replace(month, owns=owns))
                self.latest = max(self.latest, start)

    async def give_up(self, start: int) -> None:
        """Gives up this outpost's own part, which belongs to another one. Stored when this returns. Raises
        `OSError`."""
        async with self._turn:
            month = self._of(start)
            if month.owns:
                self._months[start] = msgspec.structs.replace(month, owns=False)
                self._unsaved = True
            if self._unsaved:
                await self._save(self._months)

    async def grant(self, peer_id: UUID, claim: Claim) -> bool:
        """Returns whether a peer may begin a month with a part of its own. Raises `OSError`."""
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
        """Returns the amounts given, from what is `unused` here now: what is requested, and up to half of the available
        amount in advance. Stored when this returns. Raises `OSError`; the same transfer is then requested again."""
        async with self._turn:
            month = self._of(start)
            last = month.last.get(peer_id)
            if last is None or last.id != transfer:
                available = unused()
                amounts = _part(available[0], requested[0]), _part(available[1], requested[1])
                if amounts == ZERO:
                    return ZERO
                last = Transfer(transfer, amounts)
                # Deducted before the write: the amounts must not be spent here meanwhile.
                self._months[start] = msgspec.structs.replace(
                    month, given=_plus(month.given, amounts), last={**month.last, peer_id: last}
                )
                self._unsaved = True
            if self._unsaved:
                await self._save(self._months)
            return last.amounts

    async def ask(self, start: int, address: str) -> UUID:
        """Returns the id of a request to a peer: the one that it has not answered yet, or a new, stored one. Raises
        `OSError`."""
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
        """Adds the amounts of a peer's answer to `ask`. Stored when this returns. Raises `OSError`; the peer is then
        asked again."""
        async with self._turn:
            month = self._of(start)
            if month.asking.get(address) == transfer:
                asking = {
                    other_address: pending
                    for other_address, pending in month.asking.items()
                    if other_address != address
                }
                received = _plus(month.received, amounts)
                await self._save_then_apply(start, msgspec.structs.replace(month, asking=asking, received=received))

    def waiting(self, start: int) -> tuple[str, ...]:
        """Returns the addresses of peers that have not answered a request."""
        return tuple(self._of(start).asking)

    def _of(self, start: int) -> Month:
        return self._months.get(start) or Month(claim=Claim(start, uuid4(), self._parts, self._place, time.time()))

    async def _save_then_apply(self, start: int, changed: Month) -> None:
        """Stores the month before it applies: amounts only grow once they are stored."""
        await self._save({**self._months, start: changed})
        self._months[start] = changed

    async def _save(self, months: dict[int, Month]) -> None:
        writing = asyncio.ensure_future(asyncio.to_thread(self._write, self._path, _encode(months)))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # The thread still writes; the next write must not run at the same time.
            await asyncio.wait([writing])
            raise
        self._unsaved = False


def _share(month: Month, limit: int | None, metric: int) -> int | None:
    if limit is None:
        return None
    own = 0
    if month.owns:
        parts, place = month.claim.parts, month.claim.place
        # The remainder goes to the first peer, if the places are known.
        own = limit // parts + (limit % parts if place == 0 else 0)
    # After a limit was lowered, amounts given under the former limit could exceed the limit of all peers.
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
        raise BadSettings(f"{path} cannot be read ({error}): it says what this outpost may spend") from None
    try:
        return {month.claim.month: month for month in msgspec.json.decode(document, type=list[Month])}
    except msgspec.DecodeError as error:
        raise BadSettings(f"{path} cannot be read ({error}); remove it to begin the month anew") from None
