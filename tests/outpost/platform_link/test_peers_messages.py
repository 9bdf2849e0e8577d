"""Which messages of a peer an outpost accepts. The peer of the tests authenticates itself correctly, and sends the
messages that a test sets."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support.outposts import Authority

from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.identity import OutpostIdentity
from gatehouse.outpost.money.budget import BudgetExceeded, LocalSpend, own_budget
from gatehouse.outpost.money.leases import Claim, Leases, Pair
from gatehouse.outpost.money.tally import Tally
from gatehouse.outpost.platform_link.peer_tokens import Proof
from gatehouse.outpost.platform_link.peers import (
    PROOF,
    PeerMessage,
    Peers,
    ShareRequest,
)
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.outpost.state import LocalState
from gatehouse.policy.budgets import CallAmounts, compile_budget

OURS, THEIRS = UUID(int=5), UUID(int=7)
ONE = CallAmounts(requests=1)


def identity(folder: Path, authority: Authority, outpost_id: UUID) -> OutpostIdentity:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate, private = folder / f"{uuid4()}.pem", folder / f"{uuid4()}.key"
    certificate.write_bytes(authority.issue(key).public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return OutpostIdentity(outpost_id, certificate, private, folder / "authorities.pem")


class FakePeer:
    """The peer."""

    def __init__(self, proof: Proof) -> None:
        #: authenticates the responses of the peer
        self.proof = proof
        #: the state that the peer sends, without the month, or None if it does not respond
        self.claimed_fields: dict[str, Any] | None = {}
        self.gives: Callable[[ShareRequest], Pair] = lambda _: (0, 0)
        self.share_requests: list[ShareRequest] = []
        self.heard: PeerMessage | None = None
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"peer": self}))
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def state(self, body: bytes) -> PeerMessage | None:
        self.heard = heard = msgspec.json.decode(body, type=PeerMessage)
        if self.claimed_fields is None:
            return None
        fields: dict[str, Any] = {"id": THEIRS, "stopped": False, "month": heard.month} | self.claimed_fields
        return PeerMessage(**fields)

    def share(self, body: bytes) -> dict[str, Pair]:
        self.share_requests.append(msgspec.json.decode(body, type=ShareRequest))
        return {"amounts": self.gives(self.share_requests[-1])}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    peer: FakePeer

    def do_GET(self) -> None:
        self._answer({"id": THEIRS})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(self.peer.share(body) if self.path == "/peer/share" else self.peer.state(body))

    def _answer(self, content: object) -> None:
        self.send_response(503 if content is None else 200)
        self.send_header(PROOF, self.peer.proof.token(OURS))
        self.end_headers()
        self.wfile.write(msgspec.json.encode(content))

    def log_message(self, *_: object) -> None:
        """Suppresses the log of the test's server."""


class OwnOutpost:
    """One of two outposts that share 10 requests a month."""

    def __init__(self, folder: Path, proof: Proof, own: OutpostIdentity, address: str) -> None:
        settings = OutpostSettings.from_environment({"OUTPOST_ID": str(OURS), "BUDGET_MONTHLY_REQUESTS": "10"})
        self.state = LocalState(folder)
        self.leases = Leases(folder / "share.json", parts=2)
        self.spend = LocalSpend(
            OURS, settings, self.state, tally=Tally(folder / "spent", 0), leases=self.leases, clock=SYSTEM_CLOCK
        )
        self.peers = self.spend.peers = Peers(
            OURS, (address,), proof=proof, identity=own, leases=self.leases, spend=self.spend, state=self.state,
            version=lambda: 0, newer=lambda: None,
        )  # fmt: skip
        record = own_budget(self.spend.set, OURS, TenantId(OURS))
        assert record is not None
        self.budget = compile_budget(record, TenantId(OURS), ZoneInfo("UTC"))

    @property
    def start(self) -> int:
        return self.spend.month().start

    @property
    def share(self) -> int | None:
        return self.spend.share(self.start)[1]

    @property
    def fault(self) -> str:
        return self.peers.all[0].fault or ""

    async def calls(self, number: int) -> int:
        """Makes calls, and returns the number of successful ones."""
        for successful_calls in range(number):
            try:
                self.spend.settle(await self.spend.reserve((self.budget,), ONE, enforced=True), ONE)
            except BudgetExceeded:
                return successful_calls
        return number

    def claim(self, seconds: float) -> Claim:
        """Returns a claim of the peer that is `later` than the claim of the outpost."""
        own = self.leases.claim(self.start)
        assert own is not None
        return Claim(self.start, uuid4(), 2, None, own.made + seconds)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    result = Authority()
    (tmp_path / "authorities.pem").write_text(result.pem)
    return result


def proof(folder: Path, authority: Authority, outpost_id: UUID) -> Proof:
    return Proof(outpost_id, identity(folder, authority, outpost_id), folder / "authorities.pem")


@pytest.fixture
def peer(tmp_path: Path, authority: Authority) -> Iterator[FakePeer]:
    result = FakePeer(proof(tmp_path, authority, THEIRS))
    yield result
    result.close()


@pytest.fixture
async def outpost(tmp_path: Path, authority: Authority, peer: FakePeer) -> AsyncIterator[OwnOutpost]:
    own = identity(tmp_path, authority, OURS)
    result = OwnOutpost(tmp_path / "ours", Proof(OURS, own, tmp_path / "authorities.pem"), own, peer.address)
    yield result
    await result.peers.stop()
    await result.spend.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_peer_cannot_send_negative_amounts(outpost: OwnOutpost, peer: FakePeer) -> None:
    peer.gives = lambda _: (0, -3)
    assert await outpost.calls(6) == 5
    assert outpost.share == 5
    assert "amounts must not be negative" in outpost.fault


async def test_received_amounts_never_exceed_the_limit(outpost: OwnOutpost, peer: FakePeer) -> None:
    peer.gives = lambda _: (10**30, 10**30)
    assert await outpost.calls(12) == 10


async def test_a_peer_reports_only_its_own_state(outpost: OwnOutpost, peer: FakePeer) -> None:
    peer.claimed_fields = {"id": uuid4(), "stopped": True}
    outpost.peers.start()
    await until(lambda: bool(outpost.fault))
    assert (outpost.fault, outpost.state.stopped) == ("another outpost than before has this address", False)


async def test_an_unauthenticated_response_is_refused(
    outpost: OwnOutpost, peer: FakePeer, tmp_path: Path, authority: Authority
) -> None:
    peer.proof = proof(tmp_path, authority, uuid4())
    peer.claimed_fields, peer.gives = {"stopped": True}, lambda _: (0, 5)
    outpost.peers.start()
    await until(lambda: bool(outpost.fault))
    assert (outpost.fault, outpost.state.stopped) == ("another outpost than before has this address", False)
    assert await outpost.calls(6) == 5


@pytest.mark.parametrize(
    ("later", "share"),
    [(-3600.0, 0), (3600.0, 5), (None, 5)],
    ids=["who has begun before", "who begins later", "who has not begun"],
)
async def test_an_outpost_whose_claim_is_earlier_refuses_a_claim(
    outpost: OwnOutpost, peer: FakePeer, later: float | None, share: int
) -> None:
    await outpost.leases.prepare(outpost.start)
    peer.claimed_fields = {"granted": False, "claim": None if later is None else outpost.claim(later)}
    await outpost.peers.begin(outpost.start)
    assert outpost.share == share


async def test_of_two_simultaneous_claims_that_refuse_each_other_one_is_valid(
    outpost: OwnOutpost, peer: FakePeer
) -> None:
    await outpost.leases.prepare(outpost.start)
    peer.claimed_fields = {"granted": False, "claim": outpost.claim(0)}
    await outpost.peers.begin(outpost.start)
    # The outpost with the higher id begins without a part.
    assert outpost.share == 5


async def test_an_outpost_gives_up_its_part_when_it_learns_of_a_refusal(outpost: OwnOutpost, peer: FakePeer) -> None:
    """The amount that it has already spent is requested from its peers."""
    peer.claimed_fields = None
    outpost.peers.start()
    await until(lambda: outpost.share == 5)
    assert await outpost.calls(2) == 2
    peer.gives = lambda request: request.amounts
    peer.claimed_fields = {"granted": False, "claim": outpost.claim(-3600), "free": (0, 6)}
    await until(lambda: outpost.share == 2)
    assert [question.amounts for question in peer.share_requests] == [(0, 2)]
    assert not outpost.leases.owns(outpost.start)


async def test_the_refusal_of_a_newcomer_has_no_effect(outpost: OwnOutpost, peer: FakePeer) -> None:
    outpost.peers.start()
    await until(lambda: outpost.share == 5)
    peer.claimed_fields, peer.heard = {"granted": False, "claim": outpost.claim(60), "free": (0, 5)}, None
    for _ in range(2):
        outpost.peers.notify()
        await until(lambda: peer.heard is not None)
        peer.heard = None
    assert (outpost.share, peer.share_requests) == (5, [])


async def test_a_budget_that_all_peers_have_spent_is_exceeded_without_a_request(
    outpost: OwnOutpost, peer: FakePeer
) -> None:
    peer.claimed_fields = {"spent": (0, 4)}
    outpost.peers.start()
    await until(lambda: outpost.share == 5)
    assert await outpost.calls(5) == 5
    assert outpost.spend.status() == "warning"
    peer.claimed_fields = {"spent": (0, 5)}
    await until(lambda: outpost.spend.status() == "exceeded")


async def test_amounts_spent_beyond_a_lowered_limit_are_requested_from_peers(
    outpost: OwnOutpost, peer: FakePeer
) -> None:
    peer.gives = lambda request: request.amounts
    outpost.peers.start()
    await until(lambda: outpost.share == 5)
    assert await outpost.calls(5) == 5
    await outpost.state.change(budget=msgspec.structs.replace(outpost.spend.set, requests=6))
    await asyncio.sleep(1.2)
    assert (outpost.share, peer.share_requests) == (3, [])
    peer.claimed_fields = {"free": (9, 3)}
    await until(lambda: outpost.share == 5)
    assert [question.amounts for question in peer.share_requests] == [(0, 2)]
