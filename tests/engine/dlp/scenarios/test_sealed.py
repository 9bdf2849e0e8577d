"""Content that a provider signed or encrypted. It is inspected like any other text, and is never changed."""

import json
import random
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest
from tests.engine.dlp.scenarios.test_requests import rule
from tests.engine.dlp.streams.test_stream_order import _event, passed
from tests.engine.dlp.test_tiers import NER, Finder
from tests.engine.stages.calls.test_content_filters import keywords
from tests.support import native_responses as native
from tests.support.engine import EngineHarness, completion

from gatehouse.engine.dlp.decide import MIN_SEALED_CHARACTERS
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.tiers import DlpOptions, NoDetectors
from gatehouse.policy.governance import GovernanceRecords

CHAT, MESSAGES, RESPONSES = "openai_chat", "anthropic_messages", "openai_responses"
#: A text that consists only of base64 characters.
SECRET = "/my-secret-is-AKIAQ6ZP3XVYB7KLMN2R-/and-card-is-4242-4242-4242-4242-/and-my-name-is-Meier/so-be-it/"
ENCODED = b64encode(b"the card of Mr Meier is 4242 4242 4242 4242, and it is good until next year").decode()
SIGNATURE = b64encode(random.Random(1).randbytes(300)).decode()


def claude(block: dict[str, Any]) -> dict[str, Any]:
    return {"max_tokens": 9, "messages": [{"role": "assistant", "content": [block]}]}


def places(value: str) -> list[tuple[str, str, dict[str, Any]]]:
    hi = {"messages": [{"role": "user", "content": "hi"}]}
    properties = {"a": {"type": "string", "signature": value}}
    thought = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", "thought_signature": value}}
    return [
        ("text", MESSAGES, claude({"type": "text", "text": "x", "signature": value})),
        ("thinking", MESSAGES, claude({"type": "thinking", "thinking": "x", "signature": value})),
        ("redacted thinking", MESSAGES, claude({"type": "redacted_thinking", "data": value})),
        ("search result", MESSAGES, claude({"type": "web_search_result", "url": "u", "encrypted_content": value})),
        ("metadata", CHAT, {**hi, "metadata": {"type": "t", "signature": value}}),
        ("schema", MESSAGES, {**claude({"type": "text", "text": "x"}),
                              "tools": [{"name": "f", "input_schema": {"type": "object", "properties": properties}}]}),
        ("thought", CHAT, {"messages": [{"role": "assistant", "content": None, "tool_calls": [thought]}]}),
        ("reasoning", RESPONSES, {"input": [{"type": "reasoning", "id": "r", "summary": [],
                                             "encrypted_content": value}]}),
    ]  # fmt: skip


def engine(dialect: str, **governance: Any) -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m", kind={MESSAGES: "anthropic", RESPONSES: "openai"}.get(dialect, "openai_compatible"))
    harness.governance = GovernanceRecords(**governance)
    harness.outbound.script = [(200, [completion()])]
    return harness


async def ask(harness: EngineHarness, dialect: str, body: dict[str, Any]) -> int:
    return (await harness.engine.answer(harness.request({"model": "one/m", **body}, dialect=dialect))).status


def events(harness: EngineHarness) -> set[tuple[str, str]]:
    return {(event.entity_type, event.status) for event in harness.outcomes[0].dlp_events}


@pytest.mark.parametrize("value", [SECRET, ENCODED], ids=["written", "encoded"])
@pytest.mark.parametrize("place", range(len(places(""))), ids=[name for name, *_ in places("")])
async def test_a_value_that_would_be_redacted_blocks(place: int, value: str) -> None:
    _, dialect, body = places(value)[place]
    harness = engine(dialect)
    assert await ask(harness, dialect, body) == 403
    assert not harness.outbound.sent
    assert ("credit_card", "blocked") in events(harness)


# The responses dialect sends its reasoning to no provider.
@pytest.mark.parametrize("place", range(len(places("")) - 1), ids=[name for name, *_ in places("")[:-1]])
async def test_signed_content_is_sent_unchanged(place: int) -> None:
    _, dialect, body = places(SIGNATURE)[place]
    harness = engine(dialect)
    await ask(harness, dialect, body)
    assert SIGNATURE in harness.outbound.sent[0].body.decode()


async def test_a_value_that_is_only_logged_passes() -> None:
    logged = (rule("credit_card", "log_only"), rule("aws_access_key", "log_only", id="r-2"))
    harness = engine(MESSAGES, dlp_rules=logged)
    await ask(harness, MESSAGES, places(SECRET)[0][2])
    assert SECRET in harness.outbound.sent[0].body.decode()
    assert ("credit_card", "logged") in events(harness)


async def test_keywords_are_found() -> None:
    harness = engine(MESSAGES, filters=(keywords(1, "meier"),))
    assert await ask(harness, MESSAGES, places(SECRET)[1][2]) == 403
    assert not harness.outbound.sent


async def test_other_texts_of_the_request_are_still_redacted() -> None:
    harness = engine(MESSAGES)
    body = claude({"type": "thinking", "thinking": "card 4242 4242 4242 4242", "signature": SIGNATURE})
    await ask(harness, MESSAGES, body)
    [block] = json.loads(harness.outbound.sent[0].body)["messages"][0]["content"]
    assert block == {"type": "thinking", "thinking": "card [CREDIT_CARD_1]", "signature": SIGNATURE}


def answer(signature: str) -> bytes:
    content = [{"type": "thinking", "thinking": "x", "signature": signature}, {"type": "text", "text": "y"}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "usage": usage}
    return json.dumps({**message, "stop_reason": "end_turn"}).encode()


@pytest.mark.parametrize(("signature", "status"), [(SIGNATURE, 200), (SECRET, 403)])
async def test_an_answers_signature_passes_or_blocks(signature: str, status: int) -> None:
    harness = engine(MESSAGES)
    harness.outbound.script = [(200, [answer(signature)])]
    request = harness.request({"model": "one/m", **claude({"type": "text", "text": "x"})}, dialect=MESSAGES)
    result = await harness.engine.answer(request)
    assert result.status == status
    assert (signature in result.body.decode()) == (status == 200)


@pytest.mark.parametrize("options", [{}, {"stream_mode": "hold"}], ids=["passing", "held"])
@pytest.mark.parametrize("signature", [SIGNATURE * 4, SECRET], ids=["signature", "value"])
async def test_a_streams_signature_passes_or_ends_it(signature: str, options: dict[str, Any]) -> None:
    usage = {"input_tokens": 1}
    sent = [
        _event("message_start", message={"id": "m", "role": "assistant", "content": [], "usage": usage}),
        _event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
        _event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "I think. " * 30}),
        _event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": signature}),
        _event("content_block_stop", index=0),
        _event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3}),
        _event("message_stop"),
    ]
    raw = await passed(sent, MESSAGES, **options)
    if signature == SECRET:
        assert b"4242-4242" not in raw
        assert b"dlp_violation" in raw
    else:
        assert raw == b"".join(sent)


async def test_random_base64_is_not_a_finding() -> None:
    examiner = Examiner(Inspection(await policy()), NoDetectors(), DlpOptions(), "input")
    chance = random.Random(2)
    for number in range(250):
        encode = b64encode if number % 2 else urlsafe_b64encode
        text = encode(chance.randbytes(chance.randint(150, 3000))).decode()
        [result] = await examiner.examine([text], is_sealed=True)
        assert not examiner.inspection.decide(result, "input", lambda _: MIN_SEALED_CHARACTERS).hits, text


async def test_matches_that_are_too_short_are_not_counted() -> None:
    harness = engine(MESSAGES, dlp_rules=(rule("plate", "redact", pattern="[A-Z]{2}[0-9]{2}"),))
    signature = "/AB12/" + SIGNATURE
    await ask(harness, MESSAGES, places(signature)[1][2])
    assert signature in harness.outbound.sent[0].body.decode()


@pytest.mark.parametrize("stream", [False, True])
async def test_reasoning_with_the_mark_of_its_provider_is_sealed_in_both_directions(stream: bool) -> None:
    finder = Finder()
    harness = EngineHarness(dlp=DlpOptions(), detectors=finder)
    harness.serve("one", "m", responses_api=True)
    harness.governance = GovernanceRecords(dlp_rules=(NER, rule("plate", "redact", pattern="[A-Z]{2}[0-9]{2}")))
    # The pattern matches four characters of the encrypted reasoning.
    encrypted = "gAAAAABo/AB12/" + SIGNATURE
    items = native.reasoning("Ada Lovelace asks.", encrypted=encrypted), native.message("Hello, Bob.")
    body = {"model": "one/m", "input": "Hi.", "stream": stream}
    if stream:
        harness.outbound.script = [(200, native.stream(*items))]
        received = await harness.engine.answer(harness.request(body, dialect=RESPONSES))
        assert received.stream is not None, received.body
        events = b"".join([block async for block in received.stream]).split(b"\n\n")
        output = json.loads(events[-2].partition(b"data: ")[2])["response"]["output"]
    else:
        harness.outbound.script = [(200, [json.dumps(native.response(*items)).encode()])]
        received = await harness.engine.answer(harness.request(body, dialect=RESPONSES))
        output = json.loads(received.body)["output"]
    assert output[0]["encrypted_content"] != encrypted
    assert output[0]["encrypted_content"].endswith(encrypted)
    harness.outbound.script = [(200, [json.dumps(native.response(native.message("Again"))).encode()])]
    history = [{"role": "user", "content": "Hi."}, *output, {"role": "user", "content": "And Bob?"}]
    answered = await harness.engine.answer(harness.request({"model": "one/m", "input": history}, dialect=RESPONSES))
    assert answered.status == 200, answered.body
    assert json.loads(harness.outbound.sent[-1].body)["input"][1]["encrypted_content"] == encrypted
    # The model tiers read the other texts, and not the encrypted one.
    assert "And Bob?" in finder.sentences
    assert not [sentence for sentence in finder.sentences if SIGNATURE[:40] in sentence]


async def policy() -> Any:
    harness = EngineHarness()
    assert harness.caller is not None
    return (await harness.current(harness.caller.tenant_id)).dlp
