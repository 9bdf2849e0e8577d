"""Values that are split over the messages and parts of a request."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.engine.dlp.scenarios.test_requests import ask, rule, sent
from tests.engine.dlp.test_streams import engine
from tests.support.engine import EngineHarness, completion
from tests.support.native_responses import message, reasoning, response

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.engine.conversation.following import consecutive_texts
from gatehouse.engine.conversation.slots import Slot, slots
from gatehouse.engine.dlp.decide import SplitValue, TierFindings, decide_in_steps
from gatehouse.engine.dlp.split_values import chains
from gatehouse.engine.dlp.steps import finish
from gatehouse.policy.dlp.compiled import CompiledDlpRule, DlpPolicy
from gatehouse.policy.governance import DlpRuleRecord

CHAT, MESSAGES, RESPONSES = "openai_chat", "anthropic_messages", "openai_responses"
CARD = ("4111 1111", "1111 1111")
LABEL = "[CREDIT_CARD_1]"
SLOW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
MATCHER = Matcher(BUILT_IN)
#: Patterns whose matches need not have a form of their own.
_WEAK = {"stored-credential", "credential-in-url", "password", "api-key", "high-entropy-string", "authorization-header"}
_NUMBERS = {"credit-card", "iban", "crypto-wallet"}


def _strong() -> Iterator[str]:
    """Yield the examples that are evident by themselves: cards, accounts, wallets and tokens of vendors."""
    for pattern in BUILT_IN:
        if (pattern.category != "secret" or pattern.id in _WEAK) and pattern.id not in _NUMBERS:
            continue
        for example in pattern.examples:
            for finding in MATCHER.scan(example):
                value = example[finding.start : finding.end]
                alone = {
                    (finding.source, finding.score)
                    for finding in MATCHER.scan(value)
                    if finding.end - finding.start == len(value)
                }
                proved = max((score for source, score in alone if source == pattern.id), default=0)
                if proved >= (0.7 if pattern.id == "credit-card" else 0.9) and len(value) <= 200 and "\n" not in value:
                    yield value


STRONG = sorted(set(_strong()))


def parts(texts: Sequence[str], kind: str = "text") -> list[dict[str, str]]:
    return [{"type": kind, "text": text} for text in texts]


def conversation(texts: Sequence[str], *replies: str) -> list[dict[str, Any]]:
    """Return messages of a user, with a reply after each of them except the last."""
    messages = [[user, *({"role": "assistant", "content": reply} for reply in replies)] for user in _users(texts)]
    return [message for turn in messages for message in turn][: len(texts) * (1 + len(replies)) - len(replies)]


def _users(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def _chat_tool(texts: Sequence[str]) -> dict[str, Any]:
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"messages": [*_users(["hi"]), called, {"role": "tool", "tool_call_id": "t", "content": parts(texts)}]}


def _anthropic_tool(texts: Sequence[str]) -> dict[str, Any]:
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": parts(texts)}
    messages = [*_users(["hi"]), {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return {"max_tokens": 9, "messages": messages}


SHAPES: dict[str, tuple[str, Callable[[Sequence[str]], dict[str, Any]]]] = {
    "messages": (CHAT, lambda texts: {"messages": conversation(texts)}),
    "messages with replies": (CHAT, lambda texts: {"messages": conversation(texts, "Go on.")}),
    "a system prompt's messages": (CHAT, lambda texts: {"messages": [
        *({"role": "system", "content": text} for text in texts), *_users(["hi"])]}),
    "parts": (CHAT, lambda texts: {"messages": _users([parts(texts)])}),  # type: ignore[list-item]
    "a tool's result": (CHAT, _chat_tool),
    "Anthropic's messages": (MESSAGES, lambda texts: {"max_tokens": 9, "messages": conversation(texts, "And?")}),
    "Anthropic's parts": (MESSAGES, lambda texts: {"max_tokens": 9, "messages": _users([parts(texts)])}),  # type: ignore[list-item]
    "Anthropic's system prompt": (MESSAGES, lambda texts: {
        "max_tokens": 9, "system": parts(texts), "messages": _users(["hi"])}),
    "Anthropic's tool result": (MESSAGES, _anthropic_tool),
    "items": (RESPONSES, lambda texts: {"input": conversation(texts, "Go on.")}),
    "an item's parts": (RESPONSES, lambda texts: {"input": _users([parts(texts, "input_text")])}),  # type: ignore[list-item]
}  # fmt: skip


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_of(item)


def governed(*rules: DlpRuleRecord) -> EngineHarness:
    harness = engine("openai_compatible", *rules)
    harness.outbound.script = [(200, [completion()])]
    return harness


async def received_texts(harness: EngineHarness, *texts: str, replies: Sequence[str] = ()) -> list[str]:
    """Return the texts that the provider receives from a user's messages."""
    harness.outbound.script = [(200, [completion()])]
    status, body = await ask(harness, {"messages": conversation(texts, *replies)})
    assert status == 200, body
    return [message["content"] for message in sent(harness)["messages"] if message["role"] == "user"]


@pytest.mark.parametrize("shape", SHAPES)
@given(
    value=st.sampled_from(STRONG), places=st.lists(st.integers(1, 199), min_size=1, max_size=3), stripped=st.booleans()
)
@SLOW
async def test_a_value_that_is_split_anywhere_is_redacted_in_each_text(
    shape: str, value: str, places: list[int], stripped: bool
) -> None:
    ends = sorted({0, len(value), *(place % len(value) for place in places)})
    assume(len(ends) > 2)
    pieces = [value[start:end] for start, end in pairwise(ends)]
    if stripped:
        pieces = [piece.strip() for piece in pieces]
    # A piece that is a complete value is redacted as such, and the remaining piece is no value.
    assume(all(pieces) and not any(MATCHER.scan(piece) for piece in pieces))
    dialect, body_of = SHAPES[shape]
    harness = governed()
    status, body = await ask(harness, body_of([f"it is {pieces[0]}", *pieces[1:]]), dialect)
    assert status == 200, body
    results = [text for text in texts_of(sent(harness)) if text not in {"user", "assistant", "system", "tool", "text"}]
    assert not any(piece in text for piece in pieces if len(piece) > 3 for text in results)
    assert value not in "".join(results)
    labels = [text.removeprefix("it is ") for text in results if text.removeprefix("it is ").startswith("[")]
    joined = "".join(labels)
    assert len(set(joined[1:-1].split("]["))) == 1, results
    assert sum(event.match_count for event in harness.outcomes[0].dlp_events if event.status == "redacted") >= 1


@pytest.mark.parametrize(
    "texts",
    [
        ("my card is 4111 1111", "1111 1111 thanks"),
        ("4111 1111...", "and the rest is 1111 1111"),
        ("first half: \u201c4111-1111\u201d", "second half: 1111-1111"),
        ("4111 1111 und der Rest", "ist 1111 1111"),
        ("41111111", "Part 2: 11111111."),
        ("4111", "1111", "1111", "1111"),
        tuple("4111111111111111"),
        ("\uff14\uff11\uff11\uff11 \uff11\uff11\uff11\uff11", "1111\u200b 1111"),
    ],
)
@pytest.mark.parametrize("replies", [(), ("ok",), ("Noted: 12.", "Go on")])
async def test_announcements_and_replies_between_pieces_hide_no_value(
    texts: tuple[str, ...], replies: tuple[str, ...]
) -> None:
    result = await received_texts(governed(), *texts, replies=replies)
    assert all(LABEL in text for text in result)
    assert not any(digit in text.replace(LABEL, "").replace("Part 2", "") for text in result for digit in "14\uff14")


async def test_a_split_value_is_one_finding_with_one_label() -> None:
    harness = governed()
    result = await received_texts(harness, f"my card is {CARD[0]}", CARD[1], f"again: {' '.join(CARD)}", replies=["ok"])
    assert result == [f"my card is {LABEL}", LABEL, f"again: {LABEL}"]
    [event] = harness.outcomes[0].dlp_events
    assert (event.entity_type, event.match_count, event.status) == ("credit_card", 2, "redacted")


async def test_a_label_is_restored_to_the_complete_value() -> None:
    harness = governed(rule("credit_card", "redact", reversible=True))
    harness.outbound.script = [(200, [completion(f"Charged {LABEL}.")])]
    _, body = await ask(harness, {"messages": conversation(CARD, "ok")})
    assert body["choices"][0]["message"]["content"] == f"Charged {' '.join(CARD)}."


@pytest.mark.parametrize(("action", "status"), [("block", 403), ("prompt", 403), ("log_only", 200)])
async def test_other_actions_work_as_for_a_value_in_one_text(action: str, status: int) -> None:
    harness = governed(rule("credit_card", action))
    assert (await ask(harness, {"messages": conversation(CARD, "ok")}))[0] == status
    [event] = harness.outcomes[0].dlp_events
    assert (event.match_count, event.status) == (1, "blocked" if status == 403 else "logged")
    if status == 200:
        assert [message["content"] for message in sent(harness)["messages"]][::2] == list(CARD)


async def test_the_continuation_of_a_token_is_redacted_too() -> None:
    token = "sk_live_" + "8WPBc7cwT5wjRKlh7CMzU1Bx"
    harness = governed()
    assert await received_texts(harness, f"key: {token[:30]}", token[30:], replies=["ok"]) == [
        "key: [STRIPE_KEY_1]",
        token[30:],
    ]
    assert await received_texts(harness, f"key: {token[:22]}", f"{token[22:]} ok?") == [
        "key: [STRIPE_KEY_1]",
        "[STRIPE_KEY_1] ok?",
    ]
    assert harness.outcomes[-1].dlp_events[0].match_count == 1
    assert await received_texts(harness, f"key: {token}", "thanks") == ["key: [STRIPE_KEY_1]", "thanks"]


@pytest.mark.parametrize(
    "text", ["x" + " and" * 100, "\u00a0", "\u3000" * 16 + "ok", "ok" + "\u2003" * 20, "", "\v\f", " and" * 100, "\x1c"]
)
@pytest.mark.parametrize("first", [True, False])
async def test_a_value_is_found_after_many_blanks_and_words(text: str, first: bool) -> None:
    harness = governed(rule("email", "redact"))
    texts = (text, "mail a@b.de") if first else ("mail a@b.de", text)
    expected = (text, "mail [EMAIL_1]") if first else ("mail [EMAIL_1]", text)
    assert await received_texts(harness, *texts) == list(expected)


def test_a_split_value_is_redacted_if_its_first_piece_has_another_finding() -> None:
    def of(pattern: str, entity_type: str) -> tuple[CompiledDlpRule, ...]:
        return (
            CompiledDlpRule(
                id=pattern, name=pattern, detector_type="regex", entity_type=entity_type, action="redact",
                threshold=0.5, source="organization",
            ),
        )  # fmt: skip

    policy = DlpPolicy(
        enabled=True, patterns={"credit-card": of("credit-card", "credit_card"), "own": of("own", "staff")}
    )
    card = SplitValue(Finding(0, 9, "credit_card", 0.7, "credit-card"), ((0, 9), (20, 29)), "4111 11111111 1111")
    own = Finding(0, 9, "staff", 1.0, "own")
    decision = finish(decide_in_steps(policy, TierFindings([own]), split_values=[card]))
    assert [(edit.start, edit.end) for edit in decision.edits] == [(0, 9), (20, 29)]


async def test_a_split_email_address_is_found() -> None:
    harness = governed(rule("email", "redact"))
    assert await received_texts(harness, "write to bob@", "example.com, please") == [
        "write to [EMAIL_1]",
        "[EMAIL_1], please",
    ]
    decorated = ("the name is successfully", "@backoff.on_exception")
    assert await received_texts(harness, *decorated) == list(decorated)


async def test_a_split_custom_token_is_found_and_a_split_custom_number_is_not() -> None:
    harness = governed(rule("employee", "redact", pattern="EMP-[0-9]{8}|[0-9]{9}"))
    assert await received_texts(harness, "I am EMP-1234", "5678.", replies=["ok"]) == [
        "I am [EMPLOYEE_1]",
        "[EMPLOYEE_1].",
    ]
    assert await received_texts(harness, "it was 12345", "6789 in all") == ["it was 12345", "6789 in all"]


@pytest.mark.parametrize(
    "texts",
    [
        ("4111 1111", "is all I have", "1111 1111"),
        ("4111 1111 was the first", "1111 1111"),
        ("4111 1111", "12345: 1111 1111"),
        ("12", "34", "56", "78", "90", "12", "34", "56"),
        ("in 2024", "1500 users"),
        ("4111 1111 1111 1111", "4111"),
        ("order 4111 1112", "1111 1111"),
        ("123-45", "6789"),
        ("67734297", "X"),
        ("call 0171", "2345678"),
    ],
)
async def test_texts_without_a_value_at_their_ends_are_unchanged(texts: tuple[str, ...]) -> None:
    whole = "4111 1111 1111 1111"
    assert await received_texts(governed(), *texts, replies=["ok"]) == [
        LABEL if text == whole else text for text in texts
    ]


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [*_users(["hi"]), {"role": "assistant", "content": None, "tool_calls": [
            {"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in "ab"]},
            *({"role": "tool", "tool_call_id": name, "content": text} for name, text in zip("ab", CARD, strict=True))]},
        {"messages": [{"role": "user", "content": CARD[0]}, {"role": "assistant", "content": CARD[1]}]},
        {"messages": _users(["hi"]), "metadata": {"one": CARD[0], "two": CARD[1]}},
    ],
    ids=["two tools", "two speakers", "two fields"],
)  # fmt: skip
async def test_texts_that_are_not_consecutive_are_not_joined(body: dict[str, Any]) -> None:
    harness = governed()
    assert (await ask(harness, body))[0] == 200
    assert not harness.outcomes[0].dlp_events


async def test_the_start_of_a_window_does_not_make_a_value_of_a_longer_number() -> None:
    number, end = "74111111111111111", " and so on 4222 2222"
    text = f"{number}{' word' * 60}"[: chains.WINDOW_CHARACTERS + 1 - len(end)] + end
    assert text[-chains.WINDOW_CHARACTERS :].startswith(number[1:])
    assert await received_texts(governed(), text, "3333 3333") == [text, "3333 3333"]


async def test_a_number_is_found_at_any_position_among_many_messages() -> None:
    for before in (2_030, 2_040, 2_047):
        result = await received_texts(governed(), *["a1,"] * before, *"4111111111111111", ",b2")
        assert result == [*["a1,"] * before, *[LABEL] * 16, ",b2"]


async def test_a_value_split_over_the_parts_of_an_answer_is_redacted_in_each_part() -> None:
    harness = engine("anthropic")
    reply = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": parts([f"It is {CARD[0]}", f"{CARD[1]}, as you know."]),
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    harness.outbound.script = [(200, [json.dumps(reply).encode()])]
    _, body = await ask(harness, {"max_tokens": 9, "messages": _users(["hi"])}, MESSAGES)
    assert [part["text"] for part in body["content"]] == [f"It is {LABEL}", "[CREDIT_CARD_2], as you know."]


async def test_a_value_split_over_the_parts_of_a_summary_is_redacted_in_requests_and_answers() -> None:
    harness = engine("openai")
    harness.outbound.script = [(200, [json.dumps(response(reasoning(*CARD), message("Hello"))).encode()])]
    items = [*_users(["hi"]), reasoning(*CARD), *_users(["go on"])]
    status, body = await ask(harness, {"input": items}, RESPONSES)
    assert status == 200, body
    summaries = [item["summary"] for item in (*sent(harness)["input"], *body["output"]) if "summary" in item]
    assert len(summaries) == 2
    for summary in summaries:
        assert all(part["text"].startswith("[CREDIT_CARD_") for part in summary)


def _joined(texts: Sequence[str]) -> tuple[list[chains.Chain], int, int]:
    """Return the chains, the number of steps to build and join them, and the number of searched characters."""
    body = {"messages": [{"role": "user", "content": parts(texts)}]}
    of_body = [slot for slot in slots(body) if isinstance(slot, Slot)]
    steps = 0
    work = chains.build_chains(of_body, consecutive_texts(body))
    while True:
        try:
            next(work)
        except StopIteration as stopped:
            results: list[chains.Chain] = stopped.value
            break
        steps += 1
    searched = len(finish(chains.join_ends(results)).text)
    return results, steps + sum(map(len, results)), searched


@pytest.mark.parametrize("text", ["1", "12 ", "ab1", "x@", "4111 1111", "A1b2C3d4" * 8])
def test_many_parts_cost_in_proportion_to_their_number(text: str) -> None:
    _, few, searched_of_few = _joined([text] * 8_000)
    _, many, searched_of_many = _joined([text] * 32_000)
    assert many <= 4 * (few + 2 * chains.WINDOW_CHARACTERS)
    assert searched_of_many <= 4 * (searched_of_few + 6 * chains.WINDOW_CHARACTERS * len(text))
    assert searched_of_many <= 6 * 32_000 * (len(text) + 4)


def test_only_the_ends_of_long_texts_are_searched() -> None:
    text = "11111111" + " and so on" * 10_000 + " 41111111"
    result, _, searched = _joined([text] * 20)
    assert len(result) == 19
    assert searched <= 19 * 3 * (2 * chains.WINDOW_CHARACTERS + 8)


def test_ordinary_messages_are_not_joined() -> None:
    texts = ["Please summarise the report", "in 2024 we had 12", "Sure, v2 of it", "thanks", "What about GPT-4?"]
    assert _joined(texts)[0] == []
    of_slots = [
        Slot({}, "content", text) for text in ("Please summarise it for the team", "thanks", "Sure. What else?")
    ]
    assert not finish(chains.may_be_split(of_slots))


def test_a_body_without_a_conversation_has_no_consecutive_texts() -> None:
    for body in (
        {},
        {"messages": 1, "input": "x"},
        {"messages": [1, None, {"content": 3}, {"role": [], "content": [2]}]},
    ):
        assert [places for places in consecutive_texts(json.loads(json.dumps(body))) if len(places) > 1] == []
