"""Images: generation from a prompt."""

import base64
import json
from typing import Any

import pytest
from tests.engine.dlp.scenarios.test_requests import rule
from tests.support.engine import EngineHarness

from gatehouse.engine.exchange import Answer
from gatehouse.policy.governance import GovernanceRecords

CARD = "4111 1111 1111 1111"
BODY: dict[str, Any] = {"model": "one/m", "prompt": "a gate", "n": 2}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8).decode()


def images(revised: str = "a gate", **more: Any) -> bytes:
    return json.dumps({"created": 1, "data": [{"b64_json": PNG, "revised_prompt": revised}], **more}).encode()


def engine(kind: str = "openai", *, dlp: bool = False) -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m", kind=kind)
    if dlp:
        harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "redact"),))
    return harness


async def ask(harness: EngineHarness, **changes: Any) -> Answer:
    return await harness.engine.answer(harness.request({**BODY, **changes}, dialect="openai_image_generation"))


async def test_the_reported_tokens_are_charged() -> None:
    harness = engine()
    answer_body = images(usage={"input_tokens": 10, "output_tokens": 100, "total_tokens": 110})
    harness.outbound.script = [(200, [answer_body])]
    answer = await ask(harness)
    assert answer.body == answer_body
    [sent] = harness.outbound.sent
    assert sent.url == "http://one.test/v1/images/generations"
    assert json.loads(sent.body) == {**BODY, "model": "m"}
    [outcome] = harness.outcomes
    assert (outcome.input_tokens, outcome.output_tokens, outcome.cost_usd) == (10, 100, "0.000210")


async def test_without_reported_tokens_the_cost_is_unknown() -> None:
    harness = engine()
    harness.outbound.script = [(200, [images()])]
    answer = await ask(harness)
    assert "X-Cost-USD" not in answer.headers
    [outcome] = harness.outcomes
    assert (outcome.outcome, outcome.cost_usd) == ("success", None)


async def test_dlp_inspects_prompts_and_leaves_images_alone() -> None:
    harness = engine(dlp=True)
    harness.outbound.script = [(200, [images(f"a gate {CARD}")])]
    answer = await ask(harness, prompt=f"a card {CARD}")
    assert json.loads(harness.outbound.sent[0].body)["prompt"] == "a card [CREDIT_CARD_1]"
    [image] = json.loads(answer.body)["data"]
    assert image["b64_json"] == PNG
    assert CARD not in image["revised_prompt"]
    events = [(event.entity_type, event.direction) for event in harness.outcomes[0].dlp_events]
    assert ("image", "output") in events


async def test_text_in_the_place_of_an_image_is_inspected() -> None:
    harness = engine(dlp=True)
    drawing = base64.b64encode(f"<svg><text>{'the card is ' * 9}{CARD}</text></svg>".encode()).decode()
    harness.outbound.script = [(200, [json.dumps({"data": [{"b64_json": drawing}]}).encode()])]
    answer = await ask(harness)
    assert answer.status == 200
    assert json.loads(answer.body)["data"] == [{"b64_json": "[CREDIT_CARD_1]"}]


@pytest.mark.parametrize(
    ("changes", "param"), [({"prompt": 1}, "prompt"), ({"n": 0}, "n"), ({"n": 129}, "n"), ({"stream": True}, "stream")]
)
async def test_invalid_fields_are_named(changes: dict[str, Any], param: str) -> None:
    answer = await ask(engine(), **changes)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "invalid_value", param)


async def test_the_model_for_vector_graphics_in_a_call_needs_permission() -> None:
    answer = await ask(engine(), svg={"model": "other"})
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "field_not_allowed", "svg")
