"""Inspection of parts of a call other than its texts: headers, names of models, errors, records and labels."""

import asyncio
import json
import re
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from tests.engine.dlp.scenarios.test_requests import CARD, OTHER_CARD, ask, engine, rule, sent, user
from tests.support.engine import EngineHarness, completion

from gatehouse.engine.dlp.turns import SCHEDULER
from gatehouse.engine.exchange import Answer
from gatehouse.policy.governance import DlpRuleRecord, GovernanceRecords

BARE = CARD.replace(" ", "")
REVERSIBLE = rule("credit_card", "redact", reversible=True)


def governed(*rules: DlpRuleRecord) -> EngineHarness:
    harness = engine()
    harness.governance = GovernanceRecords(dlp_rules=rules)
    return harness


async def answered(harness: EngineHarness, reply: bytes, **body: Any) -> dict[str, Any]:
    harness.outbound.script = [(200, [reply])]
    answer = await harness.engine.answer(harness.request({"model": "one/m", **user("hi"), **body}))
    decoded: dict[str, Any] = json.loads(answer.body)
    return decoded


async def test_a_header_that_is_sent_to_the_provider_is_inspected() -> None:
    harness = EngineHarness()
    harness.serve("one", "m", kind="anthropic")
    harness.outbound.script.append((200, [completion()]))
    received = harness.request({"model": "one/m", "max_tokens": 9, **user("hi")}, dialect="anthropic_messages")
    received = msgspec.structs.replace(received, headers={"anthropic-beta": f"context-1m-2025-08-07,x-{BARE}"})
    await harness.engine.answer(received)
    assert harness.outbound.sent[0].headers["anthropic-beta"] == "context-1m-2025-08-07,x-[CREDIT_CARD_1]"


async def test_the_name_of_an_unknown_model_is_redacted() -> None:
    harness = engine()
    answer = await harness.engine.answer(harness.request({**user("hi"), "model": f"my card {CARD}"}))
    assert answer.status == 404
    assert CARD not in answer.body.decode()
    assert harness.outcomes[0].requested_model == "my card [CREDIT_CARD_1]"


async def test_the_name_is_redacted_even_if_a_later_stage_refuses_the_call() -> None:
    harness = governed(rule("credit_card", "block"))
    answer = await harness.engine.answer(harness.request({**user(CARD), "model": f"my card {CARD}"}))
    assert answer.status == 403
    assert harness.outcomes[0].requested_model == "my card [CREDIT_CARD_1]"


async def test_the_name_of_a_model_in_the_catalog_is_not_redacted() -> None:
    harness = governed(rule("thing", "redact", pattern="one/m"))
    assert (await ask(harness, user("hi")))[0] == 200
    assert harness.outcomes[0].requested_model == "one/m"


@pytest.mark.parametrize("action", ["redact", "block", "prompt"])
async def test_a_providers_error_is_reported_without_quoted_text(action: str) -> None:
    harness = governed(rule("credit_card", action))
    harness.flags = {"human_in_loop": True}
    harness.outbound.script = [(400, [json.dumps({"error": {"message": f"bad text: {CARD}"}}).encode()])]
    status, body = await ask(harness, user("hi"))
    assert status == 400
    assert CARD not in json.dumps(body)
    assert body["error"]["code"] == "provider_refused_request"


async def test_a_providers_error_without_quotes_is_reported_unchanged() -> None:
    harness = engine()
    harness.outbound.script = [(400, [b'{"error": {"message": "temperature is too high"}}'])]
    _, body = await ask(harness, user("hi"))
    assert body["error"]["message"] == "temperature is too high"


def with_logprobs(text: str) -> bytes:
    tokens = [
        {"token": word, "bytes": list(word.encode()), "logprob": -0.1, "top_logprobs": []} for word in text.split(" ")
    ]
    reply = json.loads(completion(text))
    reply["choices"][0]["logprobs"] = {"content": tokens}
    return json.dumps(reply).encode()


async def test_redacted_text_is_not_disclosed_by_token_probabilities() -> None:
    harness = engine()
    body = await answered(harness, with_logprobs(f"card {CARD}"))
    assert body["choices"][0]["message"]["content"] == "card [CREDIT_CARD_1]"
    assert body["choices"][0]["logprobs"] is None


async def test_token_probabilities_of_unchanged_text_are_kept() -> None:
    harness = engine()
    body = await answered(harness, with_logprobs("all is well"))
    assert [token["token"] for token in body["choices"][0]["logprobs"]["content"]] == ["all", "is", "well"]


async def test_vectors_are_not_inspected_as_text() -> None:
    harness = engine()
    vector = "DE89370400440532013000" * 4
    reply = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": vector}], "model": "m"}
    harness.outbound.script = [(200, [json.dumps(reply).encode()])]
    answer: Answer = await harness.engine.answer(
        harness.request({"model": "one/m", "input": "hi"}, dialect="openai_embeddings")
    )
    assert json.loads(answer.body)["data"][0]["embedding"] == vector


async def test_a_label_in_the_callers_text_is_not_used_for_a_value() -> None:
    harness = governed(REVERSIBLE)
    harness.outbound.script = [(200, [completion("[CREDIT_CARD_1] and [CREDIT_CARD_2]")])]
    _, body = await ask(harness, user(f"what was [CREDIT_CARD_1]? mine is {CARD}"))
    assert sent(harness)["messages"][0]["content"] == "what was [CREDIT_CARD_1]? mine is [CREDIT_CARD_2]"
    assert body["choices"][0]["message"]["content"] == f"[CREDIT_CARD_1] and {CARD}"


async def test_a_label_of_one_request_is_not_restored_in_the_next_one() -> None:
    harness = governed(REVERSIBLE)
    await ask(harness, user(CARD))
    harness.outbound.script = [(200, [completion("[CREDIT_CARD_1]")])]
    _, body = await ask(harness, user("what was it?"))
    assert body["choices"][0]["message"]["content"] == "[CREDIT_CARD_1]"


async def test_a_value_redacted_in_the_answer_is_never_restored() -> None:
    harness = governed(REVERSIBLE)
    harness.outbound.script = [(200, [completion(f"it is {OTHER_CARD}. Again: [CREDIT_CARD_1]")])]
    _, body = await ask(harness, user("hi"))
    assert OTHER_CARD not in json.dumps(body)


async def test_labels_at_the_ends_of_arguments_are_restored() -> None:
    harness = governed(REVERSIBLE)
    call = {"id": "t", "type": "function", "function": {"name": "pay", "arguments": '{"c":"[CREDIT_CARD_1]"}'}}
    reply = json.loads(completion())
    reply["choices"][0]["message"] = {"role": "assistant", "content": "[CREDIT_CARD_1]", "tool_calls": [call]}
    body = await answered(harness, json.dumps(reply).encode(), **user(CARD))
    message = body["choices"][0]["message"]
    assert message["content"] == CARD
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"c": CARD}


async def test_a_blocking_match_within_a_redacted_range_blocks() -> None:
    rules = (
        rule("outer", "redact", id="o", pattern="AAA.{0,20}ZZZ"),
        rule("inner", "block", id="i", pattern="MMM"),
    )
    harness = governed(*rules)
    status, body = await ask(harness, user("x AAA MMM ZZZ"))
    assert (status, body["error"]["rule_id"]) == (403, "i")


@pytest.mark.parametrize("text", ["\U0001f600" * 5, "e\u0301\u4f60", "\u200b" * 9, "\U0001d7d2" * 3 + " and"])
async def test_positions_are_code_points_after_any_text(text: str) -> None:
    harness = engine()
    await ask(harness, user(f"{text} {CARD} {text}"))
    assert sent(harness)["messages"][0]["content"] == f"{text} [CREDIT_CARD_1] {text}"


async def test_a_value_far_into_a_long_text_is_redacted() -> None:
    harness = engine()
    text = "word " * 20_000
    await ask(harness, user(f"{CARD} {text}{CARD} {text}{OTHER_CARD}"))
    assert sent(harness)["messages"][0]["content"] == f"[CREDIT_CARD_1] {text}[CREDIT_CARD_1] {text}[CREDIT_CARD_2]"


async def test_a_fallback_in_another_dialect_receives_the_redacted_text() -> None:
    harness = EngineHarness()
    harness.serve("one", "m")
    harness.serve("two", "n", kind="anthropic")
    harness.outbound.script = [(500, [b"{}"]), (500, [b"{}"])]
    await harness.engine.answer(harness.request({"model": "one/m", "fallbacks": ["two/n"], **user(f"card {CARD}")}))
    assert len(harness.outbound.sent) == 2
    for request in harness.outbound.sent:
        assert b"card [CREDIT_CARD_1]" in request.body


@pytest.mark.parametrize("cuts", [(5,), (10,), (4, 9), (2, 7, 12, 17)])
async def test_a_value_split_over_parts_of_a_message_is_redacted_in_each_part(cuts: tuple[int, ...]) -> None:
    harness = engine()
    text = f"my card is {CARD} ok"
    marks = [0, *(11 + cut for cut in cuts), len(text)]
    parts = [{"type": "text", "text": text[a:b]} for a, b in pairwise(marks)]
    await ask(harness, user(parts))
    left = "".join(part["text"] for part in sent(harness)["messages"][0]["content"])
    assert left.startswith("my card is [CREDIT_CARD_1]")
    assert left.endswith(" ok")
    assert not re.search(r"\d{2}", left.replace("[CREDIT_CARD_1", ""))


async def test_parts_without_a_split_value_are_unchanged() -> None:
    harness = engine()
    parts = [{"type": "text", "text": item} for item in ("my key is AKIA" + "Z7Q2MXR4TNVB5KLP", "Next to it", CARD)]
    await ask(harness, user(parts))
    results = [part["text"] for part in sent(harness)["messages"][0]["content"]]
    assert results[1:] == ["Next to it", "[CREDIT_CARD_1]"]
    assert "AKIA" not in results[0]


async def test_a_disconnect_during_the_inspection_is_recorded_once_and_frees_the_scheduler() -> None:
    harness = engine()
    work = asyncio.ensure_future(ask(harness, user(f"{CARD} and so on, " * 40_000)))
    while not SCHEDULER.waiting:
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await asyncio.sleep(0)
    assert [outcome.outcome for outcome in harness.outcomes] == ["cancelled"]
    assert SCHEDULER.waiting == 0
    assert harness.outbound.sent == []
