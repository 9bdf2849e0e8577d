"""Shares of a month's budget, with lost messages between peers, and processes that end during a write."""

import asyncio
import tempfile
import time
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost import durable_files
from gatehouse.outpost.money.leases import (
    Claim,
    LeaseLimits,
    Leases,
    Pair,
)

MONTH = 1_798_761_600
LIMITS = LeaseLimits(None, 100)


class Crash(Exception):
    """The process ends here."""


class Node:
    """One outpost. Its file and its spent amounts survive a crash."""

    def __init__(self, folder: Path, number: int, parts: int, place: int | None = None) -> None:
        self.id = UUID(int=number + 1)
        self.address = f"http://{number}"
        self.parts, self.place = parts, place
        self.file = folder / f"{uuid4()}.json"
        self.spent = 0
        #: whether the process ends "before" or "after" its next write
        self.dies: str | None = None
        self.leases: Leases
        self.start()

    def start(self) -> None:
        self.leases = Leases(self.file, parts=self.parts, place=self.place, write=self._write)

    def _write(self, path: Path, content: bytes) -> None:
        dies, self.dies = self.dies, None
        if dies == "before":
            raise Crash
        path.write_bytes(content)
        if dies == "after":
            raise Crash

    @property
    def share(self) -> int:
        share = self.leases.share(MONTH, LIMITS)[1]
        assert share is not None
        return share

    def unused(self) -> Pair:
        return 0, max(0, self.share - self.spent)

    def spend(self, amount: int) -> None:
        if self.leases.begun(MONTH):
            self.spent += max(0, min(amount, self.share - self.spent))


#: an event: the acting outpost, the other outpost, the amount, and the fault
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["spend", "ask", "ask", "begin", "restart", "lose the disk"]),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(1, 60),
        st.sampled_from(
            ["", "", "", "question", "answer", "giver before", "giver after", "asker before", "asker after"]
        ),
    ),
    max_size=60,
)


async def begin(node: Node, peers: list[Node]) -> None:
    claim = await node.leases.prepare(MONTH)
    granted = [await other.leases.grant(node.id, claim) for other in peers]
    await node.leases.begin(MONTH, owns=all(granted))


async def ask(asker: Node, giver: Node, amount: int, fault: str) -> None:
    if fault.startswith("asker"):
        asker.dies = fault.removeprefix("asker ")
    transfer = await asker.leases.ask(MONTH, giver.address)
    if fault == "question":
        return
    if fault.startswith("giver"):
        giver.dies = fault.removeprefix("giver ")
    try:
        amounts = await giver.leases.give(MONTH, asker.id, transfer, (0, amount), giver.unused)
    except Crash:
        giver.start()
        return
    if fault != "answer":
        await asker.leases.receive(MONTH, giver.address, transfer, amounts)


async def run(folder: Path, steps: list[tuple[str, int, int, int, str]]) -> None:
    nodes = [Node(folder, number, 3) for number in range(3)]
    gone = 0
    for node in nodes:
        await begin(node, [item for item in nodes if item is not node])
    for what, node_index, two, amount, fault in steps:
        node, peer = nodes[node_index], nodes[two]
        try:
            if what == "spend":
                node.spend(amount)
            elif what == "ask" and node is not peer:
                await ask(node, peer, amount, fault)
            elif what == "begin":
                await begin(node, [item for item in nodes if item is not node])
            elif what == "restart":
                node.start()
            elif what == "lose the disk" and node is not nodes[2]:
                # At least one outpost must have its file. Spent amounts stay spent, even if the outpost has lost its
                # file.
                gone, node.spent = gone + node.spent, 0
                node.file.unlink(missing_ok=True)
                node.start()
        except Crash:
            node.start()
        for item in nodes:
            item.dies = None
        assert gone + sum(node.spent for node in nodes) <= 100
        assert sum(node.share for node in nodes) <= 100


@settings(deadline=None)
@given(STEPS)
def test_the_shares_of_all_outposts_never_exceed_the_limit(steps: list[tuple[str, int, int, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder), steps))


@pytest.fixture
async def pair(tmp_path: Path) -> tuple[Node, Node]:
    first, second = Node(tmp_path, 0, 2), Node(tmp_path, 1, 2)
    await begin(first, [second])
    await begin(second, [first])
    return first, second


async def test_a_lost_response_is_requested_again_and_given_once(pair: tuple[Node, Node]) -> None:
    first, second = pair
    await ask(first, second, 10, "answer")
    assert (first.share, second.share) == (50, 25)
    for _ in range(2):
        first.start()
        second.start()
    await ask(first, second, 1, "")
    assert (first.share, second.share) == (75, 25)
    await ask(first, second, 1, "")
    assert (first.share, second.share) == (87, 13)


async def test_an_answer_is_taken_once(pair: tuple[Node, Node]) -> None:
    first, second = pair
    transfer = await first.leases.ask(MONTH, second.address)
    amounts = await second.leases.give(MONTH, first.id, transfer, (0, 10), second.unused)
    for _ in range(2):
        await first.leases.receive(MONTH, second.address, transfer, amounts)
    assert first.share + second.share == 100


async def test_no_amount_is_transferred_before_the_transfer_is_stored(pair: tuple[Node, Node]) -> None:
    first, second = pair
    transfer = await first.leases.ask(MONTH, second.address)
    second.dies = "before"
    with pytest.raises(Crash):
        await second.leases.give(MONTH, first.id, transfer, (0, 10), second.unused)
    # The giver can no longer spend the amount, because the transfer may have been stored.
    assert second.share == 25
    second.dies = "before"
    with pytest.raises(Crash):
        await second.leases.give(MONTH, first.id, transfer, (0, 10), second.unused)
    assert await second.leases.give(MONTH, first.id, transfer, (0, 10), second.unused) == (0, 25)
    second.start()
    assert second.share == 25


async def test_a_giver_gives_the_requested_amount_or_half_of_its_unused_amount(
    pair: tuple[Node, Node],
) -> None:
    _, second = pair
    for amount, value, expected_remainder in ((40, 40, 10), (1, 5, 5), (9, 5, 0), (1, 0, 0)):
        assert await second.leases.give(MONTH, uuid4(), uuid4(), (7, amount), second.unused) == (0, value)
        assert second.share == expected_remainder


async def test_an_outpost_that_joins_during_a_month_begins_without_a_part(
    pair: tuple[Node, Node], tmp_path: Path
) -> None:
    first, second = pair
    newcomer = Node(tmp_path, 2, 3)
    await begin(newcomer, [first, second])
    assert newcomer.share == 0
    await ask(newcomer, first, 10, "")
    assert (newcomer.share, first.share, second.share) == (25, 25, 50)
    # The lists of the other outposts are longer now, too. The division of the month does not change.
    for item in (first, second):
        item.parts = 3
        item.start()
    assert (first.share, second.share) == (25, 50)


async def test_an_outpost_that_replaces_another_or_lost_its_disk_begins_without_a_part(
    pair: tuple[Node, Node], tmp_path: Path
) -> None:
    first, second = pair
    for number in (1, 2):
        new_node = Node(tmp_path, number, 2)
        await begin(new_node, [first])
        assert new_node.share == 0
    assert first.share + second.share == 100


async def test_the_remainder_of_the_division_belongs_to_the_first_outpost(tmp_path: Path) -> None:
    nodes = [Node(tmp_path, number, 3, place=number) for number in range(3)]
    for node in nodes:
        await begin(node, [item for item in nodes if item is not node])
    assert [node.share for node in nodes] == [34, 33, 33]
    # If two outposts both claim the first place, only one of them has the remainder.
    twin = Node(tmp_path, 7, 3, place=0)
    await begin(twin, nodes[:1])
    assert twin.share == 0


async def test_without_responses_of_peers_each_outpost_has_its_part(tmp_path: Path) -> None:
    first, second = Node(tmp_path, 0, 2), Node(tmp_path, 1, 2)
    for node in (first, second):
        await begin(node, [])
    assert (first.share, second.share) == (50, 50)


async def test_a_lowered_limit_also_limits_received_amounts(pair: tuple[Node, Node]) -> None:
    first, second = pair
    await ask(first, second, 50, "")
    assert [item.leases.share(MONTH, LeaseLimits(None, 60))[1] for item in (first, second)] == [60, -20]
    assert (first.share, second.share) == (100, 0)


async def test_a_part_that_is_given_up_is_gone_immediately_and_after_a_restart(pair: tuple[Node, Node]) -> None:
    first, second = pair
    await ask(first, second, 10, "")
    first.dies = "before"
    with pytest.raises(Crash):
        await first.leases.give_up(MONTH)
    assert first.share == 25
    await first.leases.give_up(MONTH)
    first.start()
    assert (first.share, first.leases.owns(MONTH), first.leases.begun(MONTH)) == (25, False, True)


async def test_the_last_month_that_has_begun_is_known_after_a_restart(pair: tuple[Node, Node]) -> None:
    first, second = pair
    # The next month has not begun at the other outpost.
    await first.leases.grant(second.id, Claim(MONTH + 31 * 86_400, uuid4(), 2))
    assert first.leases.latest == MONTH
    await first.leases.begin(MONTH + 31 * 86_400, owns=True)
    first.start()
    assert first.leases.latest == MONTH + 31 * 86_400


async def test_an_ended_month_is_deleted(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "share.json", parts=1)
    await leases.begin(MONTH, owns=True)
    await leases.begin(MONTH + 31 * 86_400, owns=True)
    reloaded = Leases(tmp_path / "share.json", parts=1)
    assert not reloaded.begun(MONTH)
    assert reloaded.share(MONTH + 31 * 86_400, LeaseLimits(5, None)) == (5, None)


async def test_claims_for_the_next_month_are_decided_before_it_begins(pair: tuple[Node, Node]) -> None:
    first, second = pair
    later = Claim(MONTH + 31 * 86_400, uuid4(), 2)
    assert await first.leases.grant(second.id, later)
    first.start()
    assert await first.leases.grant(second.id, later)
    assert not await first.leases.grant(uuid4(), later)
    assert first.share == 50


def test_a_damaged_file_of_shares_prevents_the_start(tmp_path: Path) -> None:
    durable_files.write(tmp_path / "share.json", b'[{"claim"')
    with pytest.raises(BadSettings):
        Leases(tmp_path / "share.json", parts=1)


async def test_a_cancelled_change_waits_for_its_write(tmp_path: Path) -> None:
    going = asyncio.Event()
    loop = asyncio.get_running_loop()
    active, most = 0, 0

    def write(path: Path, content: bytes) -> None:
        nonlocal active, most
        active, most = active + 1, max(most, active + 1)
        loop.call_soon_threadsafe(going.set)
        time.sleep(0.05)
        durable_files.write(path, content)
        active -= 1

    leases = Leases(tmp_path / "share.json", parts=2, write=write)
    first = asyncio.create_task(leases.begin(MONTH, owns=True))
    await going.wait()
    first.cancel()
    await leases.ask(MONTH, "http://a")
    assert most == 1
    assert first.cancelled()
    assert Leases(tmp_path / "share.json", parts=2).waiting(MONTH) == ("http://a",)
