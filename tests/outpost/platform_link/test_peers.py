"""Outposts that share a budget and their kill switches. Each is a process."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.outpost_server import ADMIN_TOKEN, OutpostServer, Trust, chat_body
from tests.support.outposts import Authority
from tests.support.ports import free_port

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost.settings import OutpostSettings

BUDGET = "/admin/api/budget"
SWITCH = "/admin/api/override/kill-switch"


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


@contextmanager
def mesh(trust: Trust, folder: Path, *, requests: int) -> Iterator[tuple[OutpostServer, OutpostServer]]:
    """Yields two outposts that share a budget. One lists all addresses and sets its own, and the other lists only the
    addresses of its peers."""
    authorities = folder / "authorities.pem"
    authorities.write_text(trust.authority.pem)
    addresses = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
    environment = {"TLS_CA_BUNDLE": str(authorities), "BUDGET_MONTHLY_REQUESTS": str(requests)}
    first = OutpostServer(trust, **environment, OUTPOST_PEERS=",".join(addresses), OUTPOST_SELF_ADDRESS=addresses[0])
    second = OutpostServer(trust, **environment, OUTPOST_PEERS=addresses[0])
    first.admin_url, second.admin_url = addresses
    with ThreadPoolExecutor(2) as pool, ExitStack() as running:
        list(pool.map(running.enter_context, (first, second)))
        until(lambda: all(begun(item) for item in (first, second)))
        yield first, second


def budget(outpost: OutpostServer) -> dict[str, Any]:
    with outpost.admin() as operator:
        body: dict[str, Any] = operator.get(BUDGET).json()
        return body


def begun(outpost: OutpostServer) -> bool:
    """Returns whether the outpost has its share and receives messages of its peer."""
    state = budget(outpost)
    return state["share_requests"] > 0 and all(peer["heard_at"] for peer in state["peers"])


def limit(outposts: Sequence[OutpostServer], requests: int) -> None:
    for outpost in outposts:
        with outpost.admin() as operator:
            assert operator.put(BUDGET, json={"monthly_requests": requests}).status_code == 200


def load(outposts: Sequence[OutpostServer], requests: int, threads: int = 24) -> int:
    """Sends parallel requests to the outposts in turn. Returns the number of served requests. The other requests exceed
    the budget."""
    with ExitStack() as stack, ThreadPoolExecutor(threads) as pool:
        clients = [stack.enter_context(outpost.client()) for outpost in outposts]
        send = lambda n: clients[n % len(clients)].post("/v1/chat/completions", json=chat_body("Hello"))  # noqa: E731
        answers = list(pool.map(send, range(requests)))
    assert {answer.status_code for answer in answers} <= {200, 429}
    assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 429} <= {"budget_exceeded"}
    return sum(answer.status_code == 200 for answer in answers)


@pytest.fixture(scope="module")
def peers(trust: Trust, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OutpostServer, OutpostServer]]:
    with mesh(trust, tmp_path_factory.mktemp("peers"), requests=100) as outposts:
        yield outposts


Both = tuple[OutpostServer, OutpostServer]


def spent(outposts: Both) -> int:
    return sum(budget(item)["spent_requests"] for item in outposts)


def test_two_peers_share_a_budget_under_parallel_load(peers: Both) -> None:
    assert [budget(peer)["share_requests"] for peer in peers] == [50, 50]
    assert 95 <= load(peers, 400) <= 100
    assert sum(budget(peer)["share_requests"] for peer in peers) == 100


def test_one_outpost_spends_the_share_that_its_peer_does_not_need(peers: Both) -> None:
    used = spent(peers)
    limit(peers, used + 60)

    def is_spent() -> bool:
        # A request waits half a second for an amount of the peer. On a busy machine only a later request receives it.
        load(peers[:1], 120)
        return spent(peers) >= used + 57

    until(is_spent)
    assert load(peers[:1], 10) <= 3
    assert spent(peers) <= used + 60


def test_no_outpost_spends_if_the_limit_is_below_the_spent_amount(peers: Both) -> None:
    first, second = peers
    used = spent(peers)
    limit(peers, used + 40)
    state = budget(first)
    room = state["share_requests"] - state["spent_requests"]
    assert load([first], room, threads=4) == room
    limit(peers, used + room)
    # The remaining share of the other outpost has already been spent.
    until(lambda: budget(second)["share_requests"] <= budget(second)["spent_requests"])
    assert second.ask().status_code == 429
    until(lambda: budget(second)["status"] == "exceeded")


def test_disconnected_peers_spend_only_their_shares(peers: Both) -> None:
    first, second = peers
    limit(peers, spent(peers) + 60)
    state = budget(first)
    room = state["share_requests"] - state["spent_requests"]
    assert second.process is not None
    second.process.send_signal(signal.SIGSTOP)
    try:
        # The other outpost transferred nothing before it was stopped.
        assert load([first], room + 20, threads=8) == room
    finally:
        second.process.send_signal(signal.SIGCONT)
    until(lambda: begun(first) and not budget(first)["peers"][0]["fault"])
    # The amount that was requested while it was stopped is transferred once, and nothing is lost.
    limit_requests = budget(first)["monthly_requests"]
    until(lambda: sum(budget(peer)["share_requests"] for peer in peers) == limit_requests)
    assert load(peers, 100) >= 55 - room
    assert spent(peers) <= limit_requests


@pytest.mark.timeout(300)
def test_kills_during_transfers_increase_no_share(peers: Both) -> None:
    used = spent(peers)
    limit_requests = used + 80
    limit(peers, limit_requests)
    answered, over = [0], threading.Event()

    def ask(outpost: OutpostServer) -> None:
        with outpost.client() as client:
            while not over.is_set():
                try:
                    answer = client.post("/v1/chat/completions", json=chat_body("Hello"))
                except httpx2.TransportError:
                    time.sleep(0.2)
                    continue
                if answer.status_code == 200:
                    answered[0] += 1
                else:
                    time.sleep(0.1)

    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(ask, peers[number % 2]) for number in range(4)]
        try:
            for peer in peers:
                time.sleep(0.1)
                peer.kill()
                peer.start()
                peer.wait()
            until(lambda: spent(peers) >= limit_requests - 5, 60)
        finally:
            over.set()
        for item in work:
            item.result(30)
    assert answered[0] <= 80
    assert spent(peers) <= limit_requests
    until(lambda: sum(budget(peer)["share_requests"] for peer in peers) == limit_requests)


def test_an_engaged_kill_switch_stops_the_peers_until_it_is_released_where_it_was_engaged(peers: Both) -> None:
    first, second = peers
    limit(peers, 10**6)
    with first.admin() as operator, second.admin() as peer_operator:
        assert [peer.ask().status_code for peer in peers] == [200, 200]
        operator.post(SWITCH, json={"active": True})
        refused = until(lambda: (answer := second.ask()).status_code == 503 and answer, 5)
        assert refused.json()["error"]["code"] == "kill_switch_active"
        # The kill switch cannot be released here while the outpost that has engaged it sends messages.
        body = peer_operator.post(SWITCH, json={"active": False}).json()
        assert (body["active"], body["engaged_by"]) == (True, str(first.id))
        # The kill switch stays engaged while the other outpost is unavailable.
        first.kill()
        second.kill()
        second.start()
        assert second.ask().status_code == 503
        first.start()
        assert first.ask().status_code == 503
        operator.post(SWITCH, json={"active": False})
        until(lambda: [peer.ask().status_code for peer in peers] == [200, 200])
        assert peer_operator.get("/admin/api/status").json()["kill_switch"]["active"] is False


def test_the_kill_switch_of_a_peer_that_is_gone_can_be_released(peers: Both) -> None:
    first, second = peers
    with first.admin() as operator, second.admin() as peer_operator:
        operator.post(SWITCH, json={"active": True})
        until(lambda: second.ask().status_code == 503, 5)
        first.kill()
        until(lambda: peer_operator.post(SWITCH, json={"active": False}).json()["active"] is False, 30)
        assert second.ask().status_code == 200
        first.start()
        operator.post(SWITCH, json={"active": False})
        until(lambda: [peer.ask().status_code for peer in peers] == [200, 200])


def test_messages_of_strangers_are_refused(peers: Both, trust: Trust) -> None:
    first, _ = peers
    limit(peers, 10**6)
    payload = {"id": str(uuid4()), "stopped": True, "month": 0}

    def token(authority: Authority, **claims: str) -> str:
        key = ec.generate_private_key(ec.SECP256R1())
        claims = {"sub": payload["id"], "aud": f"peer:{first.id}", **claims}  # type: ignore[dict-item]
        return x5c.sign(claims, key, [authority.issue(key)])

    def talk(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx2.post(first.admin_url + "/peer/state", json=payload, headers=headers).status_code

    strangers = (
        "x", ADMIN_TOKEN, trust.server.key, "a.b.c", token(Authority("another portal")),
        token(trust.authority, aud="gatehouse"), token(trust.authority, aud=f"peer:{uuid4()}"),
        token(trust.authority, sub=str(first.id)), token(trust.authority, sub="an outpost"),
    )  # fmt: skip
    assert [talk(token) for token in strangers] == [401] * len(strangers)
    for path in ("/peer/state", "/peer/share"):
        assert httpx2.post(first.admin_url + path, json={}).status_code == 401
    assert first.ask().status_code == 200
    # Messages that are invalid or in the name of another outpost are refused.
    valid_headers = {"Authorization": f"Bearer {token(trust.authority)}"}
    for body in (b"{}", b"[]", b'{"id": "' + str(uuid4()).encode() + b'", "stopped": true, "month": 0}'):
        assert httpx2.post(first.admin_url + "/peer/state", content=body, headers=valid_headers).status_code == 400
    large = httpx2.post(first.admin_url + "/peer/state", content=b" " * 70_000, headers=valid_headers)
    assert large.status_code == 413


def test_without_peers_the_peer_endpoints_do_not_exist(outpost: OutpostServer) -> None:
    assert httpx2.get(outpost.admin_url + "/peer/id").status_code == 404


def test_an_outpost_without_reachable_peers_starts_and_spends_its_own_share(trust: Trust, tmp_path: Path) -> None:
    authorities = tmp_path / "authorities.pem"
    authorities.write_text(trust.authority.pem)
    environment = {
        "TLS_CA_BUNDLE": str(authorities), "BUDGET_MONTHLY_REQUESTS": "9",
        "OUTPOST_PEERS": f"http://127.0.0.1:{free_port()},http://127.0.0.1:{free_port()}",
    }  # fmt: skip
    with OutpostServer(trust, **environment) as alone:
        assert load([alone], 6, threads=2) == 3
        alone.kill(signal.SIGTERM)
        # Communication with peers has ended with the process, and no connection is left open.
        assert "Unclosed" not in alone.log
        assert "was destroyed but it is pending" not in alone.log


@pytest.mark.parametrize(
    ("peers", "own", "others", "place"),
    [
        ("", None, (), None),
        ("http://b:1/, http://a:1", None, ("http://a:1", "http://b:1"), None),
        ("http://b:1,http://a:1", "http://b:1/", ("http://a:1",), 1),
        ("http://b:1", "http://a:1", ("http://b:1",), 0),
    ],
)
def test_the_list_of_peers_may_name_the_outpost_itself(
    peers: str, own: str | None, others: tuple[str, ...], place: int | None
) -> None:
    environment = {"OUTPOST_PEERS": peers, "OUTPOST_SELF_ADDRESS": own or ""}
    settings = OutpostSettings.from_environment(environment)
    assert (settings.peers, settings.place) == (others, place)


@pytest.mark.parametrize("peers", ["b.example.com:8301", "http://b:1"])
def test_peers_need_addresses_and_certificates(peers: str) -> None:
    environment = {
        "OUTPOST_ID": str(uuid4()), "PLATFORM_MANAGEMENT_URL": "http://p", "TLS_CERT_PATH": "c", "TLS_KEY_PATH": "k",
        "OUTPOST_PEERS": peers,
    }  # fmt: skip
    with pytest.raises(BadSettings, match="OUTPOST_PEERS"):
        OutpostSettings.from_environment(environment).checked()
