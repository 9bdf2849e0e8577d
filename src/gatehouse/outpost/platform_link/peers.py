"""Communicates with the peers: outposts that share this outpost's budget (docs/outposts.md, "Several outposts, one
budget"). Every second, and immediately after important changes, each outpost sends to its peers the state of its kill
switch, the amounts that it has spent, and the version of its bundle. It also requests amounts from their shares of the
month.

An outpost starts without its peers, and does not wait for their messages. A bundle is signed for one outpost only. So
peers do not exchange bundles, and only report the versions of their bundles.
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
from gatehouse.foundation.tasks import cancel_all, is_running
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

#: Seconds between two messages to a peer, and maximum time for its response.
_INTERVAL_SECONDS: Final = 1.0
_TIMEOUT_SECONDS: Final = 2.0
#: Maximum time for the response of one peer while a model call waits, and for the responses of all peers together.
_SHARE_TIMEOUT_SECONDS: Final = 0.5
_ALL_PEERS_TIMEOUT_SECONDS: Final = 1.0
#: Time for which no amounts are requested after no peer had an unused amount.
_EMPTY_SECONDS: Final = 0.5
#: A peer without a message for this time is treated as gone when an operator releases the kill switch.
_GONE_SECONDS: Final = 10.0
#: Maximum bytes of a message between peers.
MAX_BODY_BYTES: Final = 64 * 1024
#: Response header with the peer's token, which authenticates the response.
PROOF: Final = "X-Peer-Token"


class PeerUnavailable(Exception):
    """The peer cannot be reached, or cannot process the call now. The message contains the reason."""


class PeerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The state that peers send to each other. `stopped` is whether the kill switch was engaged at the sender itself
    (not at one of its peers). `spent` and `free` are amounts of the month that began at `month`. `granted` is the
    decision about the receiver's claim."""

    id: UUID
    stopped: bool
    version: int = 0
    month: int
    spent: Pair = ZERO
    free: Pair = ZERO
    claim: Claim | None = None
    granted: bool | None = None


class ShareRequest(msgspec.Struct, frozen=True):
    """A request for amounts of a month's budget. A repeated request has the same id (`transfer`)."""

    month: int
    transfer: UUID
    amounts: Pair


class ShareResponse(msgspec.Struct, frozen=True):
    """The amounts that the peer has given. They are not negative."""

    amounts: Pair

    def __post_init__(self) -> None:
        if min(self.amounts) < 0:
            raise ValueError("amounts must not be negative")


class Peer:
    """One peer, which is identified by its address. `heard_at` is the Unix time of its last response. `fault` is the
    reason why it cannot be reached, or None if it responds."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.id: UUID | None = None
        self.heard_at: float | None = None
        self.fault: str | None = None
        self.message: PeerMessage | None = None
        self.wake = asyncio.Event()
        #: Only one request at a time may ask the peer for a part of its share.
        self.share_lock = asyncio.Lock()


class Peers:
    """The peers of one outpost. Implements `SharePeers` for its budget. Use it between `start` and `stop`."""

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
        """`version` returns the version of the active bundle. `newer` is called when a peer reports a newer
        version."""
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
        running = (*self._tasks, self._beginning, self._obtaining)
        await cancel_all(*(task for task in running if task is not None))
        await self._client.close()

    def notify(self) -> None:
        """Sends the state to all peers immediately."""
        for peer in self.all:
            peer.wake.set()

    def present(self, peer_id: str) -> bool:
        """Returns whether the peer has sent a message recently. If so, only a message of this peer releases a kill
        switch that it has engaged."""
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
        """Gives a peer the amounts that it requests, as far as they are unused here. Raises `OSError`."""
        month = request.month
        if month != self._spend.month().start:
            return ShareResponse(ZERO)
        # `give` calls this function under its lock, and not for a repeated request, which has its former amounts.
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
        """Returns whether a peer whose own claim is earlier has refused this claim. Of two conflicting claims, the
        earlier one is valid."""
        peer_claim = message.claim
        if message.granted is not False or peer_claim is None or peer_claim.month != claim.month:
            return False
        return (peer_claim.made, message.id) < (claim.made, self._outpost_id)

    async def _reconsider(self, message: PeerMessage) -> None:
        """Gives up this outpost's part if the peer has refused its claim, but could not be reached when the month
        began. Raises `OSError`."""
        start = self._spend.month().start
        claim = self._leases.claim(start)
        if claim is not None and self._leases.owns(start) and self._is_overruled(claim, message):
            log.warning("outpost.month_without_share", parts=claim.parts)
            await self._leases.give_up(start)

    async def _cover_overspending(self, start: int) -> None:
        """Requests the amount that this outpost has spent beyond its share, so that peers do not spend it again. This
        happens if the limit was lowered, or if the outpost has given up its part."""
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
        """Requests amounts from a peer, stores them, and returns them. Raises `PeerUnavailable`, `OSError`."""
        async with peer.share_lock:
            if amounts == ZERO and peer.address not in self._leases.waiting(start):
                # The peer has responded to the pending request meanwhile.
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
                    # Repeat a request whose response was lost, without a further amount.
                    await self._request_share(peer, start, ZERO, _TIMEOUT_SECONDS)
            except (PeerUnavailable, OSError):
                pass
            except Exception:
                log.exception("outpost.peer_fault", peer=peer.address)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_INTERVAL_SECONDS):
                    await peer.wake.wait()

    async def _maintain_month(self) -> None:
        """Begins each month, so that no model call has to wait for it, and covers overspending."""
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
        """Sends the state to a peer, and applies and returns the peer's state. Raises `PeerUnavailable`, `OSError`."""
        message = await self._call(peer, "/peer/state", self._own_message(), PeerMessage, seconds)
        peer.message, peer.heard_at = message, time.time()
        if peer.fault is not None:
            log.info("outpost.peer_back", peer=peer.address)
            peer.fault = None
        await self._apply(message.id, message)
        return message

    async def _apply(self, peer_id: UUID, message: PeerMessage) -> bool | None:
        """Applies a peer's message. Returns whether the peer's claim is granted, or None without a claim."""
        self._heard_at[peer_id] = time.monotonic()
        await self._state.stop_for_peer(str(peer_id), stopped=message.stopped)
        if message.version > self._version():
            self._newer()
        claim, now = message.claim, self._spend.month()
        # The clock of the peer may be ahead, so that its next month begins before ours.
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
                # Use a local copy, because another call may find meanwhile that another outpost has this address.
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
            # Request the id again before the next call, because another outpost may have the address then.
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
            raise PeerUnavailable("this is the outpost's own address: set OUTPOST_SELF_ADDRESS to it")
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
        raise PeerUnavailable("another outpost than before has this address")


def _free(peer: Peer) -> Pair:
    return peer.message.free if peer.message is not None else ZERO
