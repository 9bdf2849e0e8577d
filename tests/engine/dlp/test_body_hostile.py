"""Inspecting any input costs in proportion to its size. The tests count operations, not seconds."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec
import pytest
from tests.support.counted import MAX_GROWTH, CountedText, Counter, Operations, are_linear
from tests.support.engine import TENANT, EngineHarness
from tests.support.hostile import CARD, TEXTS, near_matches, repeated

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.custom import custom_pattern
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.engine.conversation.decoding import bodies
from gatehouse.engine.conversation.slots import Slot, replace_texts, slots_in_steps
from gatehouse.engine.dlp.body import apply_replacements, inspect_answer, inspect_request, write_texts
from gatehouse.engine.dlp.decide import TierFindings, decide
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection, Replacement
from gatehouse.engine.dlp.tiers import DlpOptions, NoDetectors
from gatehouse.engine.stages.calls.content_filters import evaluate
from gatehouse.policy.dlp.compiled import DlpPolicy
from gatehouse.policy.filters import compile_filters
from gatehouse.policy.governance import FilterRecord

KIB: Final = 1024
MIB: Final = 1024 * KIB
#: Each size is twice the previous one. A slice of a text has 1 KiB in these tests.
Sizes: TypeAlias = tuple[int, int, int]
SIZES: Final[Sizes] = (4 * KIB, 8 * KIB, 16 * KIB)


@pytest.fixture(scope="module")
def counter() -> Iterator[Counter]:
    with pytest.MonkeyPatch.context() as patch:
        yield Counter(patch)


@pytest.fixture(scope="module")
def policy(counter: Counter) -> DlpPolicy:
    harness = EngineHarness()
    harness.serve("one", "m")
    compiled = asyncio.run(harness.current(TENANT)).dlp
    return msgspec.structs.replace(compiled, matchers=(counter.matcher,))


def inspector(policy: DlpPolicy, direction: str = "input") -> Examiner:
    return Examiner(Inspection(policy), NoDetectors(), DlpOptions(), direction)


#: Kinds of text with characters that are not displayed. They are inspected again whenever the text has become an eighth
#: longer.
UNSEEN: Final = {"zero-width", "bits", "tags", "selectors"}
#: Kinds of text that cost more at the next size if the last slice is cut at an unfavourable position, but not in the
#: long run.
UNEVEN: Final = {"soft line breaks"}
#: Kinds of text whose cost becomes steady only with the longest match, or that occur in few places.
LATE: Final = {*UNSEEN, "hex of text", "base64 of text", "base64 of chance", "private-key", "pgp-private-key", "jwt"}


def assert_linear(
    counter: Counter, work: Callable[[int], Callable[[], object]], sizes: Sizes = SIZES, *, most: float = MAX_GROWTH
) -> None:
    """Assert that the cost is proportional to the size. `work` returns the work to count for a size."""
    # The first run fills the caches that all texts share.
    work(sizes[0])()
    counted = [counter.of(work(size)) for size in sizes]
    assert are_linear(*counted, most=most), counted


def sizes_of(name: str, usual: Sizes) -> Sizes:
    if name in UNEVEN:
        return 32 * KIB, 64 * KIB, 128 * KIB
    return (8 * KIB, 16 * KIB, 32 * KIB) if name in LATE else usual


Make: TypeAlias = Callable[[int], dict[str, Any]]


def inspecting(policy: DlpPolicy, make: Make) -> Callable[[int], Callable[[], object]]:
    def of_size(size: int) -> Callable[[], object]:
        body = make(size)
        return lambda: asyncio.run(inspect_request(body, inspector(policy), {}, size))

    return of_size


def user(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


NEAR_MATCHES: Final = dict(near_matches())


@pytest.mark.parametrize("name", TEXTS)
def test_the_cost_of_any_kind_of_text_is_proportional_to_its_size(
    counter: Counter, policy: DlpPolicy, name: str
) -> None:
    most = 3.2 if name in UNSEEN else MAX_GROWTH
    assert_linear(counter, inspecting(policy, lambda size: user(TEXTS[name](size))), sizes_of(name, SIZES), most=most)


@pytest.mark.parametrize("name", NEAR_MATCHES)
def test_the_cost_of_matches_and_near_matches_is_proportional_to_the_size(
    counter: Counter, policy: DlpPolicy, name: str
) -> None:
    sizes = sizes_of(name, (2 * KIB, 4 * KIB, 8 * KIB))
    assert_linear(counter, inspecting(policy, lambda size: user(NEAR_MATCHES[name](size))), sizes)


@pytest.mark.parametrize(
    "name", ["backslashes", "escapes", "JSON", "JSON in JSON", "JSON of one string", "cards", "quotes"]
)
def test_the_cost_of_the_arguments_of_a_tool_is_proportional_to_their_size(
    counter: Counter, policy: DlpPolicy, name: str
) -> None:
    def body(size: int) -> dict[str, Any]:
        return {"messages": [{"tool_calls": [{"function": {"name": "f", "arguments": TEXTS[name](size)}}]}]}

    assert_linear(counter, inspecting(policy, body))


def nested(value: Any, levels: int = 90) -> Any:
    for level in range(levels):
        value = {"in": value} if level % 2 else [value]
    return value


def many(size: int, element: Callable[[int], Any], element_bytes: int) -> list[Any]:
    return [element(number) for number in range(size // element_bytes)]


BODIES: dict[str, Make] = {
    "chat: many messages": lambda size: {"messages": many(size, lambda n: {"role": "user", "content": f"{n:07}"}, 40)},
    "chat: many parts": lambda size: user(many(size, lambda n: {"type": "text", "text": f"4111 1111{n:07}"}, 40)),
    "chat: many parts with values": lambda size: user(many(size, lambda n: {"type": "text", "text": CARD}, 50)),
    "chat: one number over many parts": lambda size: user(many(size, lambda n: {"type": "text", "text": "4"}, 14)),
    "chat: many tool calls": lambda size: {
        "messages": [
            {
                "tool_calls": many(
                    size, lambda n: {"id": f"c{n:07}", "function": {"arguments": f'{{"card":"{CARD}"}}'}}, 80
                )
            }
        ]
    },
    "chat: many fields": lambda size: {**user("hi"), "metadata": {f"field {n:07}": "x" for n in range(size // 20)}},
    "chat: many fields named by values": lambda size: {
        **user("hi"),
        "metadata": {f"{n:07} {CARD}": CARD for n in range(size // 50)},
    },
    "chat: deep": lambda size: user([nested(CARD) for _ in range(size // 600)]),
    "chat: many numbers": lambda size: {**user("hi"), "logit_bias": {f"n{n:07}": n for n in range(size // 12)}},
    "chat: many long numbers": lambda size: {**user("hi"), "x": [4111111111111111] * (size // 17)},
    "chat: bounds of a schema": lambda size: {
        **user("hi"),
        "tools": [{"function": {"parameters": nested({"maximum": [10**13] * (size // 15)}, 80)}}],
    },
    "chat: many files": lambda size: user(many(size, lambda n: {"file": {"file_data": "QUFB" * 20}}, 110)),
    "chat: a file": lambda size: user([{"file": {"file_data": TEXTS["base64 of text"](size // 4 * 4)}}]),
    "chat: a file of lines": lambda size: user([{"file": {"file_data": repeated("QUFB\n")(size)}}]),
    "chat: padding": lambda size: user([{"file": {"file_data": repeated("QQ==")(size)}}]),
    "messages: blocks": lambda size: user(
        many(size, lambda n: {"type": "tool_result", "content": [{"type": "text", "text": CARD}]}, 90)
    ),
    "messages: tools' inputs": lambda size: user(
        many(size, lambda n: {"type": "tool_use", "id": f"{n:07}", "input": {"card": 4111111111111111}}, 80)
    ),
    "messages: a kind that is an object": lambda size: user(nested_kind(size // 60)),
    "messages: thinking": lambda size: user(many(size, lambda n: {"type": "thinking", "signature": "QUFB" * 20}, 120)),
    "responses: items": lambda size: {
        "input": many(size, lambda n: {"type": "message", "role": "user", "content": [{"text": f"{CARD} {n:07}"}]}, 90)
    },
    "responses: calls": lambda size: {
        "input": many(size, lambda n: {"type": "function_call", "arguments": '["4111111111111111"]'}, 70)
    },
    "embeddings: inputs": lambda size: {"input": many(size, lambda n: f"text {n:07}", 16)},
    "embeddings: tokens": lambda size: {"input": many(size, lambda n: [1, 2, 3], 9)},
    "embeddings: lists": lambda size: {"input": [[[["x"]]]] * (size // 14)},
}


def nested_kind(count: int) -> list[Any]:
    """Return objects whose field for the kind contains another object with such a field."""
    value: Any = "tool_use"
    blocks = []
    for number in range(count):
        value = {"type": value, "input": {"n": number}}
        if number % 45 == 44:
            blocks.append(value)
            value = "tool_use"
    return [*blocks, value]


@pytest.mark.parametrize("name", BODIES)
def test_the_cost_of_any_form_of_body_is_proportional_to_its_size(
    counter: Counter, policy: DlpPolicy, name: str
) -> None:
    assert_linear(counter, inspecting(policy, BODIES[name]))


ANSWERS: dict[str, Make] = {
    "chat: a text": lambda size: {"choices": [{"message": {"content": TEXTS["cards"](size)}}]},
    "chat: choices": lambda size: {"choices": many(size, lambda n: {"index": n, "message": {"content": CARD}}, 60)},
    "chat: tool calls": lambda size: {
        "choices": [{"message": {"tool_calls": many(size, lambda n: {"function": {"arguments": f'["{CARD}"]'}}, 60)}}]
    },
    "chat: arguments": lambda size: {
        "choices": [{"message": {"tool_calls": [{"function": {"arguments": TEXTS["JSON of one string"](size)}}]}}]
    },
    "messages: blocks": lambda size: {"content": many(size, lambda n: {"type": "text", "text": CARD}, 50)},
    "messages: tools' inputs": lambda size: {
        "content": many(size, lambda n: {"type": "tool_use", "input": {"card": CARD}}, 60)
    },
    "responses: items": lambda size: {
        "output": many(size, lambda n: {"type": "message", "content": [{"type": "output_text", "text": CARD}]}, 90)
    },
    "any: fields": lambda size: {"x": {f"{n:07} {CARD}": CARD for n in range(size // 50)}},
    "any: numbers": lambda size: {"x": [1.5] * (size // 8), "y": [4111111111111111] * (size // 40)},
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_cost_of_an_answer_is_proportional_to_its_size(counter: Counter, policy: DlpPolicy, name: str) -> None:
    def of_size(size: int) -> Callable[[], object]:
        body = ANSWERS[name](size)

        async def work() -> None:
            channels, _ = await inspect_answer(body, inspector(policy, "output"), size)
            assert write_texts(channels)

        return lambda: asyncio.run(work())

    assert_linear(counter, of_size)


def test_findings_that_overlap_through_a_whole_text_are_processed_once(counter: Counter, policy: DlpPolicy) -> None:
    """The text repeats the example of one pattern, so no part of it is separate from the next."""
    example = next(pattern.examples[0] for pattern in BUILT_IN if pattern.id == "uk-nino")
    text = repeated(example + " ")
    assert_linear(counter, inspecting(policy, lambda size: user(text(size))), (8 * KIB, 16 * KIB, 32 * KIB))


# Work other than the search, up to the size of the largest body -----------------------------------------------------


@pytest.mark.parametrize("shape", ["numbers", "words", "lists", "objects", "texts"])
def test_walking_through_the_largest_body_takes_steps(shape: str) -> None:
    body: dict[str, Any] = {
        "numbers": {"x": [0] * (5 * MIB)},
        "words": {"x": [{"role": "user"}] * (MIB // 2)},
        "lists": {"x": [[0] * 1000] * 5_000},
        "objects": {"x": [{}] * (3 * MIB)},
        "texts": {"x": ["a b"] * (MIB // 2)},
    }[shape]
    values = {"numbers": 5 * MIB, "words": MIB, "lists": 5_000_000, "objects": 3 * MIB, "texts": MIB // 2}[shape]
    assert sum(1 for _ in slots_in_steps(body)) >= values // 4096


def test_all_fields_of_an_object_are_renamed_in_one_pass(counter: Counter) -> None:
    def of_size(size: int) -> Callable[[], object]:
        holder = {f"{n:07} {CARD}": n for n in range(size // 40)}
        slots = [(Slot(holder, name, name, is_key=True), f"[CARD_{n}]") for n, name in enumerate(holder)]
        return lambda: replace_texts(slots)

    assert_linear(counter, of_size, (MIB * 5 // 2, 5 * MIB, 10 * MIB))


@pytest.mark.parametrize(
    ("name", "json_text"), [("JSON", False), ("JSON strings", True), ("JSON of one string", True), ("cards", False)]
)
def test_changes_to_the_largest_text_copy_it_only_a_few_times(counter: Counter, name: str, json_text: bool) -> None:
    copied: dict[int, int] = {}

    def of_size(size: int) -> Callable[[], object]:
        text = CountedText(TEXTS[name](size))
        changes = []
        place = text.find("4111")
        while place >= 0:
            changes.append(Replacement(place, place + len(CARD), "[CREDIT_CARD_1]"))
            place = text.find("4111", place + len(CARD))

        def work() -> None:
            apply_replacements(Slot({}, "text", text, json_text=json_text), changes)
            copied[size] = text.copied[0]

        return work

    # A few thousand changes are enough to show that no change copies all text after it.
    sizes = (64 * KIB, 128 * KIB, 256 * KIB)
    assert_linear(counter, of_size, sizes)
    assert copied[sizes[-1]] <= 12 * sizes[-1]


def test_thousands_of_overlapping_findings_are_decided_in_one_pass(counter: Counter, policy: DlpPolicy) -> None:
    pattern = next(iter(policy.patterns))

    def of_size(size: int) -> Callable[[], object]:
        # Each finding overlaps the next one.
        findings = [Finding(place, place + 20, "x", 0.9, pattern) for place in range(0, size, 15)]
        return lambda: decide(policy, TierFindings(findings))

    assert_linear(counter, of_size, (64 * KIB, 128 * KIB, 256 * KIB))


def test_context_words_within_a_long_match_are_not_searched(counter: Counter) -> None:
    matcher = Matcher([custom_pattern("p", "p", "secret", "(?s)begin.*end", context=("card",))])

    def of_size(size: int) -> Callable[[], object]:
        text = "begin " + "card " * (size // 5) + "end"
        return lambda: matcher.scan(text)

    for size in (64 * KIB, 128 * KIB):
        work = of_size(size)
        work()
        assert counter.in_contexts < KIB


def test_the_position_of_a_nul_is_recorded_once() -> None:
    copied = [0]
    name = CountedText("n" * 10_000, copied)
    body = {name: [*["x"] * 10_000, "\0"]}
    with pytest.raises(bodies.InvalidField) as error:
        bodies._refuse_nul(body, [])
    assert error.value.extra["param"] == f"{'n' * 10_000}[10000]"
    assert copied[0] <= 4 * len(name)


def test_the_cost_of_content_filters_is_proportional_to_the_body(counter: Counter) -> None:
    harness = EngineHarness()
    record = FilterRecord(
        id=UUID(int=1), name="f", priority=1, filter_type="keyword_block", keywords=("falcon", "a b c")
    )
    filters = compile_filters([record])

    def of_size(size: int) -> Callable[[], object]:
        body = user(
            [*many(size // 2, lambda n: {"type": "text", "text": f"{n:07} a b"}, 40), TEXTS["blanks"](size // 2)]
        )
        return lambda: asyncio.run(evaluate(filters, filters.filters, body, harness.ports, size=size))

    assert_linear(counter, of_size, (128 * KIB, 256 * KIB, 512 * KIB))


def test_the_counts_detect_quadratic_cost(counter: Counter) -> None:
    def squared(size: int) -> Callable[[], object]:
        return lambda: [max(range(3)) for _ in range((size // KIB) ** 2 * 100)]

    with pytest.raises(AssertionError):
        assert_linear(counter, squared)
    assert are_linear(Operations(9, 10**6), Operations(9, 2 * 10**6), Operations(9, 4 * 10**6))
    assert not are_linear(Operations(9, 10**6), Operations(9, 4 * 10**6), Operations(9, 16 * 10**6))


def test_the_test_bodies_have_their_stated_form() -> None:
    for make in (*BODIES.values(), *ANSWERS.values()):
        assert 0.2 < len(json.dumps(make(64 * KIB))) / (64 * KIB) < 3
