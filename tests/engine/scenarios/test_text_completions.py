"""Legacy text completions: unconverted for providers that have them, and converted to chats for others."""

import json
from typing import Any

import pytest
from tests.engine.dlp.scenarios.test_requests import rule
from tests.engine.stages.calls.test_content_filters import instruction, keywords
from tests.support.engine import TENANT, EngineHarness, completion, events

from gatehouse.engine.exchange import Answer
from gatehouse.policy.budgets import BudgetRecord
from gatehouse.policy.governance import GovernanceRecords

CARD = "4111 1111 1111 1111"
BODY: dict[str, Any] = {"model": "one/m", "prompt": "Once upon", "max_tokens": 7}


def text_completion(*texts: str) -> bytes:
    choices = [
        {"index": index, "text": text, "logprobs": None, "finish_reason": "stop"} for index, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return json.dumps(
        {"id": "c", "object": "text_completion", "model": "m", "choices": choices, "usage": usage}
    ).encode()


def chunk(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"


def engine(kind: str = "openai_compatible", *, governance: GovernanceRecords | None = None) -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m", kind=kind)
    if governance is not None:
        harness.governance = governance
    return harness


async def ask(harness: EngineHarness, **changes: Any) -> Answer:
    return await harness.engine.answer(harness.request({**BODY, **changes}, dialect="openai_completions"))


async def streamed(answer: Answer) -> bytes:
    assert answer.stream is not None, answer.body
    return b"".join([block async for block in answer.stream])


def texts_of(stream: bytes) -> str:
    lines = [line[6:] for line in stream.split(b"\n") if line.startswith(b"data: {")]
    return "".join(choice["text"] for line in lines for choice in json.loads(line).get("choices", ()))


async def test_a_provider_with_text_completions_receives_the_fields_unchanged() -> None:
    harness = engine()
    harness.outbound.script = [(200, [text_completion("a", "b")])]
    answer = await ask(harness, prompt=["Once", "Twice"], suffix="The end", logprobs=2, echo=True)
    assert answer.status == 200
    assert [choice["text"] for choice in json.loads(answer.body)["choices"]] == ["a", "b"]
    assert json.loads(answer.body)["model"] == "one/m"
    [sent] = harness.outbound.sent
    assert sent.url == "http://one.test/v1/completions"
    assert json.loads(sent.body) == {
        "model": "m", "prompt": ["Once", "Twice"], "max_tokens": 7, "suffix": "The end", "logprobs": 2, "echo": True,
    }  # fmt: skip
    [outcome] = harness.outcomes
    assert (outcome.outcome, outcome.input_tokens, outcome.output_tokens, outcome.cost_usd) == (
        "success", 10, 5, "0.000020",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["openai", "openai_compatible"])
@pytest.mark.parametrize("echo", [True, False])
async def test_a_provider_without_text_completions_receives_a_chat(kind: str, echo: bool) -> None:
    harness = engine(kind)
    harness.outbound.script = [(200, [completion(" a time")])]
    if kind == "openai_compatible":
        # This provider has OpenAI's dialect, but no text completions.
        harness.outbound.script.insert(0, (404, [b"{}"]))
    answer = await ask(harness, stop="end", logprobs=2, echo=echo)
    sent = harness.outbound.sent[-1]
    assert sent.url == "http://one.test/v1/chat/completions"
    body = json.loads(sent.body)
    assert body["messages"] == [{"role": "user", "content": "Once upon"}]
    assert body["stop"] == ["end"]
    assert (body.get("max_tokens") or body["max_completion_tokens"]) == 7
    parsed = json.loads(answer.body)
    assert (parsed["object"], parsed["choices"][0]["text"]) == (
        "text_completion", "Once upon a time" if echo else " a time",
    )  # fmt: skip
    assert answer.headers["X-Gateway-Dropped"] == "logprobs"
    assert len(harness.outcomes) == 1


async def test_a_missing_model_remains_a_missing_model() -> None:
    harness = engine()
    harness.outbound.script = [(404, [b"{}"]), (404, [b"{}"])]
    answer = await ask(harness)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize("kind", ["openai", "openai_compatible"])
async def test_a_stream(kind: str) -> None:
    harness = engine(kind)
    native = [chunk(" a"), chunk(" time", "stop"), b"data: [DONE]\n\n"]
    harness.outbound.script = [(200, events(" a", " time") if kind == "openai" else list(native))]
    stream = await streamed(await ask(harness, stream=True))
    assert texts_of(stream) == " a time"
    assert stream.endswith(b"data: [DONE]\n\n")
    assert harness.outcomes[0].outcome == "success"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", ["openai", "openai_compatible"])
async def test_dlp_inspects_prompts_and_answers(kind: str, stream: bool) -> None:
    harness = engine(kind, governance=GovernanceRecords(dlp_rules=(rule("credit_card", "redact"),)))
    text = f" my card is {CARD} ok"
    if stream:
        native: list[bytes | Exception] = [chunk(text[:12]), chunk(text[12:]), chunk("", "stop"), b"data: [DONE]\n\n"]
        harness.outbound.script = [(200, events(text[:12], text[12:]) if kind == "openai" else native)]
    else:
        harness.outbound.script = [(200, [completion(text) if kind == "openai" else text_completion(text)])]
    answer = await ask(harness, prompt=[f"pay {CARD}"], stream=stream)
    answer_text = texts_of(await streamed(answer)) if stream else json.loads(answer.body)["choices"][0]["text"]
    assert CARD not in answer_text
    assert answer_text.endswith("ok")
    assert CARD.encode() not in harness.outbound.sent[0].body
    assert {event.direction for event in harness.outcomes[0].dlp_events} == {"input", "output"}


async def test_content_filters_apply_to_the_prompt() -> None:
    harness = engine(governance=GovernanceRecords(filters=(keywords(1, "falcon"),)))
    answer = await ask(harness, prompt=["one", "a falcon"])
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (403, "content_filter_violation")
    assert not harness.outbound.sent


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"prompt": [1, 2, 3]}, "prompt"),
        ({"prompt": [[1, 2], [3]]}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a"] * 129}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"n": 0}, "n"),
        ({"suffix": 3}, "suffix"),
        ({"max_tokens": -1}, "max_tokens"),
    ],
)
async def test_invalid_fields_are_named(changes: dict[str, Any], param: str) -> None:
    answer = await ask(engine(), **changes)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "invalid_value", param)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"suffix": "x"}, "suffix"),
        ({"n": 2}, "n"),
        ({"best_of": 2}, "best_of"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
async def test_fields_that_a_chat_cannot_express_are_refused(changes: dict[str, Any], param: str) -> None:
    answer = await ask(engine("anthropic"), **changes)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["param"]) == (400, param)


@pytest.mark.parametrize("kind", ["openai_compatible", "anthropic"])
async def test_an_echo_does_not_reveal_the_organizations_instructions(kind: str) -> None:
    harness = engine(kind, governance=GovernanceRecords(filters=(instruction(1, "Be brief."),)))
    answer = await ask(harness, echo=True)
    assert (answer.status, json.loads(answer.body)["error"]["param"]) == (400, "echo")
    assert not harness.outbound.sent


async def test_a_limit_of_no_tokens_is_not_replaced() -> None:
    harness = engine()
    harness.budgets = (
        BudgetRecord(id=TENANT, scope_type="tenant", scope_id=TENANT, period="month", limit_tokens=10**9),
    )
    harness.outbound.script = [(200, [text_completion("a")])] * 2
    for limit in (0, None):
        assert (await ask(harness, max_tokens=limit)).status == 200
    first, second = (json.loads(request.body or b"")["max_tokens"] for request in harness.outbound.sent)
    assert first == 0
    assert second > 0
