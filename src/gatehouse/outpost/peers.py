"""The other outposts that share this one's budget (decisions 9): each tells the others once a second, and at once where
it matters, whether its kill switch is engaged, what it has spent, and which bundle it has; and asks them for part of
their share of the month.

No peer is needed for a start: what one does not say is not waited for. A bundle is signed for one outpost alone, so
that peers share the news of a newer one, not the bundle.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from uuid import UUID

import aiohttp
import msgspec
import structlog

from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.tasks import wanted
from gatehouse.outpost.budget import LocalSpend
from gatehouse.outpost.identity import Identity
from gatehouse.outpost.leases import ZERO, Claim, Leases, Pair
from gatehouse.outpost.platform import unreached
from gatehouse.outpost.proof import Proof
from gatehouse.outpost.state import LocalState

T = TypeVar("T")

log = structlog.get_logger(__name__)

#: Seconds between two talks with a peer, and for its answer.
_PAUSE: Final = 1.0
_PATIENCE: Final = 2.0
#: Seconds for a peer's answer while a request waits, and for those of all together.
_BRIEF: Final = 0.5
_TOGETHER: Final = 1.0
#: Seconds for which it is believed that nobody has anything to give.
_BELIEVED: Final = 0.5
#: Seconds after which a peer that says nothing is taken for gone, when an operator releases the kill switch.
_GONE: Final = 10.0
MOST_BYTES: Final = 64 * 1024
#: In the answer: proves whose it is.
PROOF: Final = "X-Peer-Token"


class PeerAway(Exception):
    """It cannot be reached, or has no answer now; says which."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What peers tell each other. `stopped`: its own kill switch, not that of another. `spent` and `free` are of the
    month that began at `month`. `granted`: the answer to a claim."""

    id: UUID
    stopped: bool
    version: int = 0
    month: int
    spent: Pair = ZERO
    free: Pair = ZERO
    claim: Claim | None = None
    granted: bool | None = None


class Wanted(msgspec.Struct, frozen=True):
    month: int
    transfer: UUID
    amounts: Pair


class Part(msgspec.Struct, frozen=True):
    amounts: Pair

    def __post_init__(self) -> None:
        if min(self.amounts) < 0:
            raise ValueError("it gives less than nothing")


class Peer:
    """One that is known by its address. `heard` is Unix time; `fault`: why it gives no answer, while it does not."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.id: UUID | None = None
        self.heard: float | None = None
        self.fault: str | None = None
        self.told: Told | None = None
        self.wake = asyncio.Event()
        #: one question for part of its share at a time
        self.asking = asyncio.Lock()


class Peers:
    """One outpost's; also the `Sharing` of its budget. Used between `start` and `stop`."""

    def __init__(
        self,
        outpost_id: UUID,
        addresses: Sequence[str],
        *,
        proof: Proof | None,
        identity: Identity | None,
        leases: Leases,
        spend: LocalSpend,
        state: LocalState,
        version: Callable[[], int],
        newer: Callable[[], None],
    ) -> None:
        """`version`: of the bundle in force. `newer` is called when a peer has a newer one."""
        self._outpost_id = outpost_id
        self.all = [Peer(address) for address in addresses]
        self._proof = proof
        self._identity = identity
        self._leases = leases
        self._spend = spend
        self._state = state
        self._version = version
        self._newer = newer
        self._session: aiohttp.ClientSession | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._beginning: asyncio.Task[None] | None = None
        self._obtaining: asyncio.Task[bool] | None = None
        self._empty_until = 0.0
        #: when each was heard last, monotonic
        self._heard_at: dict[UUID, float] = {}
        state.present = self.present

    def start(self) -> None:
        work = [self._watch(peer) for peer in self.all]
        self._tasks = [asyncio.create_task(each, name="peer") for each in (*work, self._turn())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._session is not None:
            await self._session.close()

    def tell(self) -> None:
        """Something has changed that the others should hear at once."""
        for peer in self.all:
            peer.wake.set()

    def present(self, peer_id: str) -> bool:
        """Whether it was heard of late, so that its word still counts."""
        heard = self._heard_at.get(UUID(peer_id))
        return heard is not None and time.monotonic() - heard < _GONE

    async def begin(self, start: int) -> None:
        # What is under way may be another month's.
        while not self._leases.begun(start):
            if self._beginning is None or self._beginning.done():
                self._beginning = asyncio.create_task(self._begin(start), name="budget's month")
            await asyncio.shield(self._beginning)

    async def obtain(self, start: int) -> bool:
        if self.empty(start):
            return False
        if self._obtaining is None or self._obtaining.done():
            self._obtaining = asyncio.create_task(self._obtain(start), name="budget's share")
        try:
            async with asyncio.timeout(_TOGETHER):
                return await asyncio.shield(self._obtaining)
        except TimeoutError:
            return False

    def empty(self, start: int) -> bool:
        return not self.all or time.monotonic() < self._empty_until

    def spent(self, start: int) -> Pair:
        usd = requests = 0
        for peer in self.all:
            if peer.told is not None and peer.told.month == start:
                usd, requests = usd + peer.told.spent[0], requests + peer.told.spent[1]
        return usd, requests

    def has_verified(self, token: str) -> bool:
        assert self._proof is not None
        return self._proof.has_verified(token)

    def proven(self, token: str) -> UUID:
        """Whose token it is. Raises `NoPeer`."""
        assert self._proof is not None
        return self._proof.verified(token)

    def token(self, peer_id: UUID) -> str:
        assert self._proof is not None
        return self._proof.token(peer_id)

    async def heard(self, peer_id: UUID, told: Told) -> Told:
        """What a peer has said, and the answer. Raises `OSError`."""
        granted = await self._take(peer_id, told)
        return msgspec.structs.replace(self._telling(), granted=granted)

    async def give(self, peer_id: UUID, wanted: Wanted) -> Part:
        """What a peer asks for, or as much of it as there is. Raises `OSError`."""
        month = wanted.month
        if month != self._spend.month().start:
            return Part(ZERO)
        # Nothing was given before that would not be asked for again.
        unused = lambda: self._spend.unused(month)  # noqa: E731
        given = await self._leases.give(month, peer_id, wanted.transfer, wanted.amounts, unused)
        if given != ZERO:
            log.info("outpost.share_given", peer=str(peer_id), nano_usd=given[0], requests=given[1])
        return Part(given)

    async def _begin(self, start: int) -> None:
        claim = await self._leases.prepare(start)
        answers = await asyncio.gather(*(self._talk(peer, _TOGETHER) for peer in self.all), return_exceptions=True)
        refused = any(isinstance(each, Told) and self._wrong(claim, each) for each in answers)
        await self._leases.begin(start, owns=not refused)
        if refused:
            log.warning("outpost.month_without_share", parts=claim.parts)

    def _wrong(self, claim: Claim, told: Told) -> bool:
        """Whether a peer has refused the claim that has made its own before: one of two has to be right."""
        other = told.claim
        if told.granted is not False or other is None or other.month != claim.month:
            return False
        return (other.made, told.id) < (claim.made, self._outpost_id)

    async def _reconsider(self, told: Told) -> None:
        """Gives a part up that was begun without having reached whoever would have refused it. Raises `OSError`."""
        start = self._spend.month().start
        claim = self._leases.claim(start)
        if claim is not None and self._leases.owns(start) and self._wrong(claim, told):
            log.warning("outpost.month_without_share", parts=claim.parts)
            await self._leases.give_up(start)

    async def _make_good(self, start: int) -> None:
        """Asks for what is spent beyond the share, as after a limit was lowered, or a part given up: the others must
        not spend it once more."""
        usd, requests = self._spend.wanted(start)
        free = [peer.told.free for peer in self.all if peer.told is not None and peer.told.month == start]
        if any((usd and each[0] > 0) or (requests and each[1] > 0) for each in free):
            await self.obtain(start)

    async def _obtain(self, start: int) -> bool:
        found = asked = False
        for peer in sorted(self.all, key=_free, reverse=True):
            wanted = self._spend.wanted(start)
            if wanted == ZERO:
                return found
            if peer.fault is None:
                asked = True
                with contextlib.suppress(PeerAway, OSError):
                    found |= await self._ask(peer, start, wanted, _BRIEF) != ZERO
        if not found:
            self._empty_until = time.monotonic() + (_BELIEVED if asked else _BELIEVED / 2)
        return found

    async def _ask(self, peer: Peer, start: int, wanted: Pair, seconds: float) -> Pair:
        """Raises `PeerAway`, `OSError`."""
        async with peer.asking:
            if wanted == ZERO and peer.address not in self._leases.waiting(start):
                # It was answered meanwhile.
                return ZERO
            transfer = await self._leases.ask(start, peer.address)
            part = await self._call(peer, "/peer/share", Wanted(start, transfer, wanted), Part, seconds)
            await self._leases.receive(start, peer.address, transfer, part.amounts)
            return part.amounts

    async def _watch(self, peer: Peer) -> None:
        while wanted():
            peer.wake.clear()
            try:
                await self._reconsider(await self._talk(peer, _PATIENCE))
                start = self._spend.month().start
                if peer.address in self._leases.waiting(start):
                    # An answer that was lost on the way: nothing more is asked for.
                    await self._ask(peer, start, ZERO, _PATIENCE)
            except (PeerAway, OSError):
                pass
            except Exception:
                log.exception("outpost.peer_fault", peer=peer.address)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await peer.wake.wait()

    async def _turn(self) -> None:
        """Has each month begun before somebody waits for it, and no more spent than shared."""
        while wanted():
            try:
                start = self._spend.month().start
                await self.begin(start)
                await self._make_good(start)
            except OSError as error:
                log.warning("outpost.share_unwritable", reason=str(error))
            except Exception:
                log.exception("outpost.month_fault")
            await asyncio.sleep(_PAUSE)

    async def _talk(self, peer: Peer, seconds: float) -> Told:
        """Raises `PeerAway`, `OSError`."""
        answer = await self._call(peer, "/peer/state", self._telling(), Told, seconds)
        peer.told, peer.heard = answer, time.time()
        if peer.fault is not None:
            log.info("outpost.peer_back", peer=peer.address)
            peer.fault = None
        await self._take(answer.id, answer)
        return answer

    async def _take(self, peer_id: UUID, told: Told) -> bool | None:
        """What a peer says of itself; its claim is granted or not."""
        self._heard_at[peer_id] = time.monotonic()
        await self._state.stop_for_peer(str(peer_id), stopped=told.stopped)
        if told.version > self._version():
            self._newer()
        claim, now = told.claim, self._spend.month()
        # A peer's clock may be ahead by a little: its next month may be here before ours.
        if claim is None or claim.month not in (now.start, now.end):
            return None
        return await self._leases.grant(peer_id, claim)

    def _telling(self) -> Told:
        start = self._spend.month().start
        return Told(
            id=self._outpost_id,
            stopped=self._state.said.stopped_at is not None,
            version=self._version(),
            month=start,
            spent=self._spend.spent(start),
            free=self._spend.unused(start),
            claim=self._leases.claim(start),
        )

    async def _call(self, peer: Peer, path: str, body: object, answer: type[T], seconds: float) -> T:
        """Raises `PeerAway`, and the peer has a fault then."""
        assert self._proof is not None
        try:
            async with asyncio.timeout(seconds):
                # Kept here: another call may find out meanwhile that somebody else answers there.
                peer_id = peer.id
                if peer_id is None:
                    peer_id = peer.id = await self._id_of(peer)
                headers = {"Authorization": f"Bearer {self._proof.token(peer_id)}", "Content-Type": "application/json"}
                content, proof = await self._send("POST", peer.address + path, headers, msgspec.json.encode(body))
                _same(peer_id, self.proven(proof))
                found = msgspec.json.decode(content, type=answer)
                if isinstance(found, Told):
                    _same(peer_id, found.id)
                return found
        except (PeerAway, Unauthenticated, msgspec.DecodeError, aiohttp.ClientError, OSError, TimeoutError) as error:
            # Whoever answers there next may be another.
            peer.id = None
            why = str(error) if isinstance(error, (PeerAway, Unauthenticated)) else unreached(error)
            if peer.fault is None:
                log.warning("outpost.peer_away", peer=peer.address, reason=why)
            peer.fault = why
            raise PeerAway(why) from None

    async def _id_of(self, peer: Peer) -> UUID:
        content, _ = await self._send("GET", peer.address + "/peer/id", {}, None)
        found = msgspec.json.decode(content, type=dict[str, UUID])["id"]
        if found == self._outpost_id:
            raise PeerAway("it is this outpost itself: set OUTPOST_SELF_ADDRESS to this address")
        return found

    async def _send(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> tuple[bytes, str]:
        assert self._identity is not None
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        async with self._session.request(
            method, url, headers=headers, data=body, allow_redirects=False, ssl=self._identity.context()
        ) as answer:
            content = await answer.content.read(MOST_BYTES)
            if answer.status != 200:
                raise PeerAway(f"it answers {answer.status}")
            return content, answer.headers.get(PROOF, "")


def _same(expected: UUID, found: UUID) -> None:
    if found != expected:
        raise PeerAway("another outpost than before answers there")


def _free(peer: Peer) -> Pair:
    return peer.told.free if peer.told is not None else ZERO
