"""Many texts that are open at the same time in one stream cost only as much as their events. The tests count
operations.
"""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import msgspec
import pytest
from tests.engine.dlp.streams.test_stream_shapes import CHAT, DONE, MESSAGES, chunk, delta, tool
from tests.support.counted import Counter
from tests.support.engine import TENANT, EngineHarness

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.streams.event_order import EventOrder
from gatehouse.engine.dlp.streams.stream import StreamGuard
from gatehouse.engine.dlp.tiers import DlpOptions, NoDetectors
from gatehouse.policy.dlp.compiled import DlpPolicy

#: Text that is held back until more of it has arrived.
_HALF: Final = "4111 1111 "
COUNTS: Final = (100, 200, 800)
MAX_GROWTH: Final = 1.05


@pytest.fixture(scope="module")
def counter() -> Iterator[Counter]:
    with pytest.MonkeyPatch.context() as patch:
        yield Counter(patch)


@pytest.fixture
async def policy(counter: Counter) -> DlpPolicy:
    harness = EngineHarness()
    harness.serve("one", "m")
    return msgspec.structs.replace((await harness.current(TENANT)).dlp, matchers=(counter.matcher,))


def guard(policy: DlpPolicy, dialect: str, mode: str = "window") -> StreamGuard:
    options = DlpOptions(stream_mode=mode, pattern_work_seconds=3600, pattern_timeout_seconds=3600)
    return StreamGuard(DIALECTS[dialect], Examiner(Inspection(policy), NoDetectors(), options, "output"))


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _block(kind: str, index: int, **fields: Any) -> bytes:
    return _event(f"content_block_{kind}", index=index, **fields)


def _choices_in_turn(count: int) -> Iterator[bytes]:
    for text in (_HALF, "and more. "):
        for index in range(count):
            yield chunk(delta(index, content=text))
    for index in range(count):
        yield chunk(delta(index, "stop"))
    yield DONE


def _choices_in_one_event(count: int) -> Iterator[bytes]:
    yield chunk(*(delta(index, content=_HALF) for index in range(count)))
    for index in range(count):
        yield chunk(delta(index, content="and more, and more, and more. "))
        yield chunk(delta(index, "stop"))
    yield DONE


def _calls_in_turn(count: int) -> Iterator[bytes]:
    for index in range(count):
        yield chunk(delta(0, **tool(index, '{"a": "' + _HALF)))
    for index in range(count):
        yield chunk(delta(0, **tool(index, 'and more"}')))
    yield from (chunk(delta(0, "tool_calls")) for _ in range(count))
    yield DONE


def _blocks_in_turn(count: int) -> Iterator[bytes]:
    usage = {"input_tokens": 1}
    yield _event("message_start", message={"id": "m", "role": "assistant", "content": [], "usage": usage})
    for index in range(count):
        yield _block("start", index, content_block={"type": "text", "text": ""})
        yield _block("delta", index, delta={"type": "text_delta", "text": _HALF})
    for index in range(count):
        yield _block("stop", index)
    yield _event("message_stop")


STREAMS: Final[dict[str, tuple[str, Callable[[int], Iterator[bytes]]]]] = {
    "choices in turn": (CHAT, _choices_in_turn),
    "choices in one event": (CHAT, _choices_in_one_event),
    "calls of tools in turn": (CHAT, _calls_in_turn),
    "blocks in turn": (MESSAGES, _blocks_in_turn),
}


@pytest.mark.parametrize("mode", ["window", "hold"])
@pytest.mark.parametrize("name", STREAMS)
async def test_the_cost_of_many_open_texts_grows_at_most_linearly(
    counter: Counter, policy: DlpPolicy, name: str, mode: str
) -> None:
    dialect, make = STREAMS[name]

    async def calls(count: int) -> int:
        sent = list(make(count))
        passing = guard(policy, dialect, mode)
        gone: list[bytes] = []

        async def work() -> None:
            for event in sent:
                gone.append(await passing.push(event))
            gone.append(await passing.finish())

        counted = counter.of(lambda: _run(work()))
        assert b"".join(gone).count(_HALF.encode()) == b"".join(sent).count(_HALF.encode())
        return counted.calls

    await calls(COUNTS[0])
    first, second, last = [await calls(count) for count in COUNTS]
    assert last - second <= MAX_GROWTH * (second - first) * (COUNTS[2] - COUNTS[1]) / (COUNTS[1] - COUNTS[0])


def _run(work: Any) -> None:
    """Run a coroutine that never waits."""
    with pytest.raises(StopIteration):
        work.send(None)


class _OrderModel:
    """A simple model of the order, without regard to cost. An event is released if no earlier event that shares the
    beginning of its path waits, and if its text is not held back."""

    def __init__(self) -> None:
        self.waiting: list[tuple[tuple[str, ...], int]] = []

    def drain(self, waiting_numbers: set[int]) -> set[int]:
        gone: set[int] = set()
        stay: list[tuple[tuple[str, ...], int]] = []
        for path, number in self.waiting:
            is_behind = any(path[: len(other)] == other or other[: len(path)] == path for other, _ in stay)
            if is_behind or number in waiting_numbers:
                stay.append((path, number))
            else:
                gone.add(number)
        self.waiting = stay
        return gone


@pytest.mark.parametrize("seed", range(100))
def test_an_event_waits_for_earlier_events_on_its_path_and_for_its_text(seed: int) -> None:
    random = Random(seed)
    paths: list[tuple[str, ...]] = [(), ("a",), ("b",), ("a", "x"), ("a", "y"), ("b", "x")]
    order: EventOrder[int, int] = EventOrder()
    simple = _OrderModel()
    waiting_numbers: set[int] = set()
    last: dict[int, tuple[str, ...]] = {}
    for number in range(60):
        path = random.choice(paths)
        last[number] = path
        order.put(path, number)
        simple.waiting.append((path, number))
        if random.random() < 0.6:
            waiting_numbers.add(number)
        for entry in random.sample(sorted(waiting_numbers), random.randint(0, min(3, len(waiting_numbers)))):
            waiting_numbers.discard(entry)
            order.wake_waiting(entry)
        gone: list[int] = []

        def go(item: int, gone: list[int] = gone) -> int | None:
            if item in waiting_numbers:
                return item
            gone.append(item)
            return None

        order.drain(go, lambda: False)
        assert set(gone) == simple.drain(waiting_numbers)
        for place, item in enumerate(gone):
            for before in gone[place + 1 :]:
                shorter = min(len(last[item]), len(last[before]))
                assert item < before or last[item][:shorter] != last[before][:shorter]
