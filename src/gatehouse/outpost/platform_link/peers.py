"""Communication with the outposts that share this one's budget (docs/outposts.md, "Several outposts, one budget").
Every second, and at once after important changes, each outpost sends the others the state of its kill switch, what it
has spent, and its bundle's version; and it requests part of their shares of the month.

No peer is needed for a start: missing messages are not waited for. A bundle is signed for one outpost alone, so peers
report the version of a newer one, and do not exchange bundles.
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
from gatehouse.foundation.outbound.operator_client import OperatorClient, read_bounded
from gatehouse.foundation.tasks import is_running
from gatehouse.outpost.identity import OutpostIdentity
from gatehouse.outpost.money.budget import LocalSpend
from gatehouse.outpost.money.leases import (
    ZERO,
    Claim,
    Leases,
    Pair,
)
from gatehouse.outpost.platform_link.client import unreached
from gatehouse.outpost.platform_link.peer_tokens import Proof
from gatehouse.outpost.state import LocalState

T = TypeVar("T")

log = structlog.get_logger(__name__)

#: Seconds between two messages to a peer, and for its response.
_INTERVAL_SECONDS: Final = 1.0
_TIMEOUT_SECONDS: Final = 2.0
#: Seconds for a peer's response while a request waits, and for those of all peers together.
_SHARE_TIMEOUT_SECONDS: Final = 0.5
_ALL_PEERS_TIMEOUT_SECONDS: Final = 1.0
#: Seconds for which the peers count as empty after none had anything to give.
_EMPTY_SECONDS: Final = 0.5
#: Seconds after which a silent peer counts as gone, when an operator releases the kill switch.
_GONE_SECONDS: Final = 10.0
#: Maximum bytes of a message between peers.
MAX_BODY_BYTES: Final = 64 * 1024
#: Response header with the peer's token, which authenticates the response.
PROOF: Final = "X-Peer-Token"


class PeerUnavailable(Exception):
    """The peer cannot be reached, or cannot answer now; the message says which."""


class PeerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The state that peers send each other. `stopped` is the sender's own kill switch, not another one's. `spent` and
    `free` are of the month that began at `month`. `granted` answers a claim."""

    id: UUID
    stopped: bool
    version: int = 0
    month: int
    spent: Pair = ZERO
    free: Pair = ZERO
    claim: Claim | None = None
    granted: bool | None = None


class ShareRequest(msgspec.Struct, frozen=True):
    """Requests amounts of a month's budget. A repeated request has the same `transfer` id."""

    month: int
    transfer: UUID
    amounts: Pair


class ShareResponse(msgspec.Struct, frozen=True):
    """The amounts given, at least zero each."""

    amounts: Pair

    def __post_init__(self) -> None:
        if min(self.amounts) < 0:
            raise ValueError("amounts must not be negative")


class Peer:
    """One peer, known by its address. `heard_at` is the Unix time of its last response; `fault` is the reason why it
    cannot be reached, None while it answers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.id: UUID | None = None
        self.heard_at: float | None = None
        self.fault: str | None = None
        self.message: PeerMessage | None = None
        self.wake = asyncio.Event()
        #: Held during a request for part of its share: one request at a time.
        self.share_lock = asyncio.Lock()


class Peers:
    """One outpost's peers; also the `SharePeers` of its budget. Use it between `start` and `stop`."""

    def __init__(
        self,
        outpost_id: UUID,
        addresses: Sequence[str],
        *,
        proof: Proof | None,
        identity: OutpostIdentity | None,
        leases: Leases,
        spend: LocalSpend,
        state: LocalState,
        version: Callable[[], int],
        newer: Callable[[], None],
    ) -> None:
        """`version` returns the version of the bundle in force. `newer` is called when a peer has a newer one."""
        self._outpost_id = outpost_id
        self.all = [Peer(address) for address in addresses]
        self._proof = proof
        self._identity = identity
        self._leases = leases
        self._spend = spend
        self._state = state
        self._version = version
        self._newer = newer
        self._client = OperatorClient()
        self._tasks: list[asyncio.Task[None]] = []
        self._beginning: asyncio.Task[None] | None = None
        self._obtaining: asyncio.Task[bool] | None = None
        self._empty_until = 0.0
        #: Monotonic time of each peer's last message.
        self._heard_at: dict[UUID, float] = {}
        state.present = self.present

    def start(self) -> None:
        follow_loops = [self._follow_peer(peer) for peer in self.all]
        self._tasks = [asyncio.create_task(loop, name="peer") for loop in (*follow_loops, self._maintain_month())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._client.close()

    def notify(self) -> None:
        """Sends the state to all peers at once."""
        for peer in self.all:
            peer.wake.set()

    def present(self, peer_id: str) -> bool:
        """Returns whether the peer sent a message recently, so that the state of its kill switch still counts."""
        heard_at = self._heard_at.get(UUID(peer_id))
        return heard_at is not None and time.monotonic() - heard_at < _GONE_SECONDS

    async def begin(self, start: int) -> None:
        # The running task may belong to another month.
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
            async with asyncio.timeout(_ALL_PEERS_TIMEOUT_SECONDS):
                return await asyncio.shield(self._obtaining)
        except TimeoutError:
            return False

    def empty(self, start: int) -> bool:
        return not self.all or time.monotonic() < self._empty_until

    def spent(self, start: int) -> Pair:
        usd = requests = 0
        for peer in self.all:
            if peer.message is not None and peer.message.month == start:
                usd, requests = usd + peer.message.spent[0], requests + peer.message.spent[1]
        return usd, requests

    def has_verified(self, token: str) -> bool:
        assert self._proof is not None
        return self._proof.has_verified(token)

    def verify_token(self, token: str) -> UUID:
        """Returns the id of the outpost that the token belongs to. Raises `NoPeer`."""
        assert self._proof is not None
        return self._proof.verified(token)

    def token(self, peer_id: UUID) -> str:
        assert self._proof is not None
        return self._proof.token(peer_id)

    async def receive(self, peer_id: UUID, message: PeerMessage) -> PeerMessage:
        """Applies a peer's message and returns the response. Raises `OSError`."""
        granted = await self._apply(peer_id, message)
        return msgspec.structs.replace(self._own_message(), granted=granted)

    async def give(self, peer_id: UUID, request: ShareRequest) -> ShareResponse:
        """Gives a peer what it requests, or as much of it as is unused. Raises `OSError`."""
        month = request.month
        if month != self._spend.month().start:
            return ShareResponse(ZERO)
        # Read under the lock of `give`: a repeated request must get its former amounts.
        unused = lambda: self._spend.unused(month)  # noqa: E731
        amounts = await self._leases.give(month, peer_id, request.transfer, request.amounts, unused)
        if amounts != ZERO:
            log.info("outpost.share_given", peer=str(peer_id), nano_usd=amounts[0], requests=amounts[1])
        return ShareResponse(amounts)

    async def _begin(self, start: int) -> None:
        claim = await self._leases.prepare(start)
        messages = await asyncio.gather(
            *(self._exchange_state(peer, _ALL_PEERS_TIMEOUT_SECONDS) for peer in self.all), return_exceptions=True
        )
        refused = any(isinstance(message, PeerMessage) and self._is_overruled(claim, message) for message in messages)
        await self._leases.begin(start, owns=not refused)
        if refused:
            log.warning("outpost.month_without_share", parts=claim.parts)

    def _is_overruled(self, claim: Claim, message: PeerMessage) -> bool:
        """Returns whether a peer that made its claim earlier has refused this claim: of two conflicting claims, the
        earlier one is valid."""
        other = message.claim
        if message.granted is not False or other is None or other.month != claim.month:
            return False
        return (other.made, message.id) < (claim.made, self._outpost_id)

    async def _reconsider(self, message: PeerMessage) -> None:
        """Gives up a part that was begun without reaching the peer that would have refused it. Raises `OSError`."""
        start = self._spend.month().start
        claim = self._leases.claim(start)
        if claim is not None and self._leases.owns(start) and self._is_overruled(claim, message):
            log.warning("outpost.month_without_share", parts=claim.parts)
            await self._leases.give_up(start)

    async def _cover_overspending(self, start: int) -> None:
        """Requests what is spent beyond the share, as after a lowered limit or a part that was given up: the others
        must not spend it again."""
        usd, requests = self._spend.wanted(start)
        free = [peer.message.free for peer in self.all if peer.message is not None and peer.message.month == start]
        if any((usd and amounts[0] > 0) or (requests and amounts[1] > 0) for amounts in free):
            await self.obtain(start)

    async def _obtain(self, start: int) -> bool:
        obtained = requested = False
        for peer in sorted(self.all, key=_free, reverse=True):
            missing = self._spend.wanted(start)
            if missing == ZERO:
                return obtained
            if peer.fault is None:
                requested = True
                with contextlib.suppress(PeerUnavailable, OSError):
                    obtained |= await self._request_share(peer, start, missing, _SHARE_TIMEOUT_SECONDS) != ZERO
        if not obtained:
            self._empty_until = time.monotonic() + (_EMPTY_SECONDS if requested else _EMPTY_SECONDS / 2)
        return obtained

    async def _request_share(self, peer: Peer, start: int, amounts: Pair, seconds: float) -> Pair:
        """Raises `PeerUnavailable`, `OSError`."""
        async with peer.share_lock:
            if amounts == ZERO and peer.address not in self._leases.waiting(start):
                # The pending request was answered meanwhile.
                return ZERO
            transfer = await self._leases.ask(start, peer.address)
            response = await self._call(
                peer, "/peer/share", ShareRequest(start, transfer, amounts), ShareResponse, seconds
            )
            await self._leases.receive(start, peer.address, transfer, response.amounts)
            return response.amounts

    async def _follow_peer(self, peer: Peer) -> None:
        while is_running():
            peer.wake.clear()
            try:
                await self._reconsider(await self._exchange_state(peer, _TIMEOUT_SECONDS))
                start = self._spend.month().start
                if peer.address in self._leases.waiting(start):
                    # Repeats a request whose response was lost, without requesting more.
                    await self._request_share(peer, start, ZERO, _TIMEOUT_SECONDS)
            except (PeerUnavailable, OSError):
                pass
            except Exception:
                log.exception("outpost.peer_fault", peer=peer.address)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_INTERVAL_SECONDS):
                    await peer.wake.wait()

    async def _maintain_month(self) -> None:
        """Begins each month before a call waits for it, and covers overspending."""
        while is_running():
            try:
                start = self._spend.month().start
                await self.begin(start)
                await self._cover_overspending(start)
            except OSError as error:
                log.warning("outpost.share_unwritable", reason=str(error))
            except Exception:
                log.exception("outpost.month_fault")
            await asyncio.sleep(_INTERVAL_SECONDS)

    async def _exchange_state(self, peer: Peer, seconds: float) -> PeerMessage:
        """Raises `PeerUnavailable`, `OSError`."""
        message = await self._call(peer, "/peer/state", self._own_message(), PeerMessage, seconds)
        peer.message, peer.heard_at = message, time.time()
        if peer.fault is not None:
            log.info("outpost.peer_back", peer=peer.address)
            peer.fault = None
        await self._apply(message.id, message)
        return message

    async def _apply(self, peer_id: UUID, message: PeerMessage) -> bool | None:
        """Applies a peer's message. Returns whether its claim is granted, or None if it makes none."""
        self._heard_at[peer_id] = time.monotonic()
        await self._state.stop_for_peer(str(peer_id), stopped=message.stopped)
        if message.version > self._version():
            self._newer()
        claim, now = message.claim, self._spend.month()
        # A peer's clock may be ahead: its next month may begin before ours.
        if claim is None or claim.month not in (now.start, now.end):
            return None
        return await self._leases.grant(peer_id, claim)

    def _own_message(self) -> PeerMessage:
        start = self._spend.month().start
        return PeerMessage(
            id=self._outpost_id,
            stopped=self._state.current.stopped_at is not None,
            version=self._version(),
            month=start,
            spent=self._spend.spent(start),
            free=self._spend.unused(start),
            claim=self._leases.claim(start),
        )

    async def _call(self, peer: Peer, path: str, body: object, response_type: type[T], seconds: float) -> T:
        """Returns the decoded response. Raises `PeerUnavailable`, and sets the peer's `fault`."""
        assert self._proof is not None
        try:
            async with asyncio.timeout(seconds):
                # A local copy: another call may learn meanwhile that a different outpost answers there.
                peer_id = peer.id
                if peer_id is None:
                    peer_id = peer.id = await self._id_of(peer, seconds)
                headers = {"Authorization": f"Bearer {self._proof.token(peer_id)}", "Content-Type": "application/json"}
                content, proof = await self._send(
                    "POST", peer.address + path, headers, msgspec.json.encode(body), seconds
                )
                _same(peer_id, self.verify_token(proof))
                result = msgspec.json.decode(content, type=response_type)
                if isinstance(result, PeerMessage):
                    _same(peer_id, result.id)
                return result
        except (
            PeerUnavailable,
            Unauthenticated,
            msgspec.DecodeError,
            aiohttp.ClientError,
            OSError,
            TimeoutError,
        ) as error:
            # The id is asked for again: another outpost may answer there next.
            peer.id = None
            reason = str(error) if isinstance(error, (PeerUnavailable, Unauthenticated)) else unreached(error)
            if peer.fault is None:
                log.warning("outpost.peer_away", peer=peer.address, reason=reason)
            peer.fault = reason
            raise PeerUnavailable(reason) from None

    async def _id_of(self, peer: Peer, seconds: float) -> UUID:
        content, _ = await self._send("GET", peer.address + "/peer/id", {}, None, seconds)
        peer_id = msgspec.json.decode(content, type=dict[str, UUID])["id"]
        if peer_id == self._outpost_id:
            raise PeerUnavailable("it is this outpost itself: set OUTPOST_SELF_ADDRESS to this address")
        return peer_id

    async def _send(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, seconds: float
    ) -> tuple[bytes, str]:
        assert self._identity is not None
        async with self._client.request(
            method, url, headers=headers, body=body, seconds=seconds, tls=self._identity.context()
        ) as response:
            content = await read_bounded(response, MAX_BODY_BYTES)
            if response.status != 200:
                raise PeerUnavailable(f"it answers {response.status}")
            return content, response.headers.get(PROOF, "")


def _same(expected: UUID, actual: UUID) -> None:
    if actual != expected:
        raise PeerUnavailable("another outpost than before answers there")


def _free(peer: Peer) -> Pair:
    return peer.message.free if peer.message is not None else ZERO
