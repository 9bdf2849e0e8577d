"""The cost of scans up to the size of the largest body: each further byte costs as much as the first ones. The tests
count operations.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import pytest
from tests.support.counted import Operations
from tests.support.engine import TENANT, EngineHarness
from tests.support.hostile import CARD, TEXTS, near_matches, of_prose, repeated
from tests.support.repeated_work import BLOCK, LongText, RepeatedWork, of_blocks

from gatehouse.detection.custom import custom_pattern
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.scanning.texts import scan_in_slices
from gatehouse.engine.dlp.body import inspect_answer, inspect_request, write_texts
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.streams.channel import Channel
from gatehouse.engine.dlp.tiers import DlpOptions, NoDetectors
from gatehouse.policy.dlp.compiled import DlpPolicy

KIB: Final = 1024
MIB: Final = 1024 * KIB
#: Sizes in bytes. From the first size on, the fixed costs at the beginning of a text no longer matter.
SIZES: Final = (64 * KIB, 640 * KIB, 10 * MIB)
#: Smaller sizes for the tests that run for each of the many kinds of text.
SIZES_BY_KIND: Final = (64 * KIB, 640 * KIB, 4 * MIB)
#: Highest permitted ratio of the cost of a further byte up to the last size to that up to the second size. Slices end
#: at different positions.
MAX_GROWTH: Final = 1.05
#: Operations per byte that are too few to matter.
_FEW: Final = 0.01
#: Kinds of text with work every few characters. Blocks of prose separate them.
MANY: Final = {
    "backwards",
    "base64 in pieces",
    "base64 of text",
    "base64 of base64",
    "base64 of hex",
    "base64 of UTF-16",
    "base64 with dashes",
    "cards",
    "cards in lines",
    "characters apart",
    "dates and phones",
    "entities",
    "escaped backslashes",
    "hex in pieces",
    "hex of text",
    "JSON",
    "JSON in JSON",
    "JSON of one string",
    "JSON strings",
    "numbers that overlap",
    "percent encoding",
    "quoted-printable",
    "rot13",
}
BLOCKS_OF_PROSE: Final = 15

Work = Callable[[int], tuple[int, Callable[[], object]]]


@pytest.fixture(scope="module")
def counter() -> Iterator[RepeatedWork]:
    with pytest.MonkeyPatch.context() as patch:
        yield RepeatedWork(patch)


@pytest.fixture(scope="module")
def policy(counter: RepeatedWork) -> DlpPolicy:
    harness = EngineHarness()
    harness.serve("one", "m")
    return msgspec.structs.replace(asyncio.run(harness.current(TENANT)).dlp, matchers=(counter.matcher,))


def examiner(policy: DlpPolicy, direction: str = "input") -> Examiner:
    options = DlpOptions(pattern_work_seconds=3600, pattern_timeout_seconds=3600)
    return Examiner(Inspection(policy), NoDetectors(), options, direction)


def assert_bytes_cost_the_same(counter: RepeatedWork, work: Work, sizes: tuple[int, ...] = SIZES) -> None:
    """Assert that each further byte costs the same. `work` returns the actual size and the work to count for a size."""
    # The first run fills the caches that all texts share.
    work(sizes[0])[1]()
    counter.forget()
    counted: list[tuple[int, Operations]] = []
    for size in sizes:
        length, does = work(size)
        counted.append((length, counter.of(does)))
    (first, of_first), (second, of_second), (last, of_last) = counted
    for before, between, behind in zip(of_first, of_second, of_last, strict=True):
        assert behind - between <= (last - second) * (MAX_GROWTH * (between - before) / (second - first) + _FEW), (
            counted
        )


def scanning(counter: RepeatedWork, make: Callable[[int], str], *matchers: Matcher) -> Work:
    def of_size(size: int) -> tuple[int, Callable[[], object]]:
        text = LongText(make(size))

        def work() -> None:
            for _ in scan_in_slices(matchers or (counter.matcher,), text):
                pass
            counter.characters += text.copied

        return len(text), work

    return of_size


@pytest.mark.parametrize("name", TEXTS)
def test_a_scan_of_a_text_of_any_kind(counter: RepeatedWork, name: str) -> None:
    make = of_blocks(TEXTS[name], blocks_of_prose=BLOCKS_OF_PROSE if name in MANY else 0)
    assert_bytes_cost_the_same(counter, scanning(counter, make), SIZES_BY_KIND)


def test_a_scan_of_near_matches_of_each_pattern(counter: RepeatedWork) -> None:
    period = "".join(make(BLOCK)[: BLOCK // 4] + of_prose(BLOCK)[: BLOCK * 3 // 4] for _, make in near_matches())
    assert len(period) > 64 * BLOCK
    assert_bytes_cost_the_same(counter, scanning(counter, repeated(period)), (MIB // 2, MIB, 10 * MIB))


OWN: Final = {
    "a word and digits": r"card [0-9]{4}",
    "all up to a word": r"(?s)4111.*harbour",
    "a match or a longer one": r"a.*b|a",
    "one character": r"[0-9]",
}


@pytest.mark.parametrize("name", OWN)
def test_a_scan_for_custom_patterns(counter: RepeatedWork, name: str) -> None:
    matcher = Matcher([custom_pattern("p", "p", "secret", OWN[name], context=("card",))])
    make = of_blocks(repeated(f"card {CARD} "), blocks_of_prose=63)
    assert_bytes_cost_the_same(counter, scanning(counter, make, matcher), (MIB // 4, 5 * MIB // 4, 10 * MIB))


def test_reusing_counts_changes_neither_findings_nor_counts(counter: RepeatedWork) -> None:
    text = "".join(of_blocks(TEXTS[name])(2 * BLOCK) for name in ("cards", "escapes", "backwards", "hex of text")) * 4
    results: list[list[Finding]] = []
    counted: list[Operations] = []
    for remembers in (False, False, True):
        counter.remembers = remembers
        counter.forget()
        counter.done = counter.repeated = 0
        results.append([])
        counted.append(counter.of(lambda: results[-1].extend(counter.matcher.scan(text))))
    assert results[0] == results[1] == results[2] != []
    assert counter.repeated > counter.done
    assert counted[2].characters == counted[1].characters
    assert abs(counted[2].calls - counted[1].calls) <= 0.02 * counted[1].calls


def user(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def json_of(count: int) -> str:
    """Return objects of 2,048 characters, one of which contains a value."""
    return (
        "[" + ",".join([json.dumps({"card": CARD, "x": "and so on" * 222})[:-2].ljust(2045, "x") + '"}'] * count) + "]"
    )


BODIES: Final[dict[str, Callable[[int], dict[str, Any]]]] = {
    "a long text": lambda size: user(of_blocks(TEXTS["cards"], blocks_of_prose=BLOCKS_OF_PROSE)(size)),
    "short texts": lambda size: user([{"type": "text", "text": "and so on, 12 of them " * 2}] * (size // 64)),
    "arguments of a tool": lambda size: {
        "messages": [{"tool_calls": [{"function": {"name": "f", "arguments": json_of(size // 2048)}}]}]
    },
}


@pytest.mark.parametrize("name", BODIES)
def test_the_whole_inspection_of_a_request(counter: RepeatedWork, policy: DlpPolicy, name: str) -> None:
    def of_size(size: int) -> tuple[int, Callable[[], object]]:
        body = BODIES[name](size)
        return size, lambda: asyncio.run(inspect_request(body, examiner(policy), {}, size))

    assert_bytes_cost_the_same(counter, of_size)


def test_the_whole_inspection_of_an_answer(counter: RepeatedWork, policy: DlpPolicy) -> None:
    def of_size(size: int) -> tuple[int, Callable[[], object]]:
        body = {"choices": [{"message": {"content": json_of(size // 2048)}}]}

        async def work() -> None:
            channels, _ = await inspect_answer(body, examiner(policy, "output"), size)
            assert write_texts(channels)

        return size, lambda: asyncio.run(work())

    assert_bytes_cost_the_same(counter, of_size)


@pytest.mark.parametrize("name", ["prose", "cards", "one letter", "escapes", "bits", "base64 of chance"])
def test_the_cost_of_a_streamed_text_is_proportional_to_its_size(
    counter: RepeatedWork, policy: DlpPolicy, name: str
) -> None:
    make = of_blocks(TEXTS[name], blocks_of_prose=BLOCKS_OF_PROSE if name == "cards" else 0)

    def of_size(size: int) -> tuple[int, Callable[[], object]]:
        text = make(size)

        async def work() -> None:
            channel = Channel(examiner(policy, "output"))
            for start in range(0, len(text), BLOCK):
                place = channel.released
                channel.push(text[start : start + BLOCK])
                await channel.advance(final=False)
                channel.take(place, channel.released)
            await channel.advance(final=True)
            assert channel.released == channel.end == len(text)

        return len(text), lambda: asyncio.run(work())

    assert_bytes_cost_the_same(counter, of_size)


def test_the_counts_detect_quadratic_cost(counter: RepeatedWork) -> None:
    """The work reads a whole list for each slice of a text."""

    def of_size(size: int) -> tuple[int, Callable[[], object]]:
        slices = size // BLOCK
        return size, lambda: [len("") for number in range(slices) for _ in range(number // 64)]

    with pytest.raises(AssertionError):
        assert_bytes_cost_the_same(counter, of_size)
