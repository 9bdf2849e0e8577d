"""The estimated needs and cost of a call."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from tests.support.engine import EngineHarness

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import CallRequest, Identified, RoutingNeeds
from gatehouse.engine.money.estimate import EXPECTED_OUTPUT_TOKENS, estimate, routing_needs
from gatehouse.foundation.ids import new_id
from gatehouse.policy.catalog import ModelRecord
from gatehouse.policy.routing import CAPABILITY_BITS

HI = [{"role": "user", "content": "Hi"}]
IMAGE = {"type": "image_url", "image_url": {"url": "https://pictures.test/1.png"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


async def decoded_call(body: dict[str, Any], dialect: str = "openai_chat") -> CallRequest:
    harness = EngineHarness()
    received = harness.request({"model": "m", **body}, dialect=dialect)
    policy = await harness.current(harness.caller.tenant_id)  # type: ignore[union-attr, arg-type]
    assert harness.caller is not None
    identified = Identified(received=received, caller=harness.caller, policy=policy, scope="chat:write")
    return CallRequest(identified=identified, call=DIALECTS[dialect].decode(received.body))


@pytest.mark.parametrize(
    ("dialect", "body", "needs"),
    [
        ("openai_chat", {"messages": HI}, []),
        ("openai_chat", {"messages": HI, "stream": True}, ["streaming"]),
        ("openai_chat", {"messages": HI, "tools": [TOOL]}, ["function_calling"]),
        ("openai_chat", {"messages": HI, "tools": []}, []),
        ("openai_chat", {"messages": HI, "response_format": {"type": "json_object"}}, ["json_mode"]),
        ("openai_chat", {"messages": HI, "response_format": {"type": "text"}}, []),
        ("openai_chat", {"messages": [{"role": "user", "content": "an image_url, please"}]}, []),
        ("openai_chat", {"messages": [{"role": "user", "content": [IMAGE]}]}, ["vision"]),
        (
            "anthropic_messages",
            {
                "max_tokens": 9,
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_result",
                                "tool_use_id": "t",
                                "content": [{"type": "image", "source": {"type": "url", "url": "https://p.test/1"}}],
                            }
                        ],
                    }
                ],
            },
            ["vision"],
        ),
        (
            "anthropic_messages",
            {
                "max_tokens": 9,
                "messages": HI,
                "tools": [{"type": "code_execution_20250825", "name": "code_execution"}],
            },
            ["code_execution"],
        ),
        (
            "openai_responses",
            {"input": "Hi", "text": {"format": {"type": "json_schema", "name": "x", "schema": {}}}},
            ["json_mode"],
        ),
        ("openai_chat", {"messages": HI, "response_format": {"type": []}}, []),
        ("openai_chat", {"messages": [{"role": "user", "content": [{"type": {}}]}]}, []),
        ("openai_responses", {"input": [{"type": [], "content": "Hi"}]}, []),
    ],
)
async def test_a_call_needs_the_capabilities_that_it_uses(dialect: str, body: dict[str, Any], needs: list[str]) -> None:
    assert routing_needs(await decoded_call(body, dialect)).needs == sum(CAPABILITY_BITS[need] for need in needs)


@pytest.mark.parametrize(
    ("more", "tokens"),
    [
        ({}, EXPECTED_OUTPUT_TOKENS),
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 8, "n": 3}, 24),
        ({"n": 2}, 1_000),
    ],
)
async def test_the_answer_is_estimated_at_its_maximum_length(more: dict[str, Any], tokens: int) -> None:
    assert routing_needs(await decoded_call({"messages": HI, **more})).output_tokens == tokens


async def test_embeddings_have_no_output_cost() -> None:
    expected = routing_needs(await decoded_call({"input": "Hi"}, "openai_embeddings"))
    assert (expected.use, expected.output_tokens) == ("embeddings", 0)


async def test_four_bytes_are_a_token() -> None:
    body = {"messages": [{"role": "user", "content": "word " * 1_000}]}
    expected = routing_needs(await decoded_call(body))
    assert expected.input_tokens == -(-len(json.dumps({"model": "m", **body}, separators=(",", ":"))) // 4)


async def test_an_image_is_not_estimated_by_its_bytes() -> None:
    url = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 10_000
    body = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}
    assert routing_needs(await decoded_call(body)).input_tokens == 1_000


@pytest.mark.parametrize(
    ("prices", "longest", "cost"),
    [
        (("0.001", "0.01"), None, Decimal("3.000")),
        (("0.001", "0.01"), 50, Decimal("1.500")),
        (("0.001", None), None, None),
        ((None, "0.01"), None, None),
        (("0", "0"), None, Decimal(0)),
    ],
)
def test_a_call_is_estimated_at(
    prices: tuple[str | None, str | None], longest: int | None, cost: Decimal | None
) -> None:
    input_price, made = (None if price is None else Decimal(price) for price in prices)
    model = ModelRecord(
        id=new_id(), provider="p", model_id="m", cost_per_input_token=input_price, cost_per_output_token=made,
        max_output_tokens=longest,
    )  # fmt: skip
    assert estimate(model, RoutingNeeds(input_tokens=1_000, output_tokens=200)) == cost


async def test_an_image_field_written_with_escapes_is_recognized() -> None:
    x = await decoded_call({"messages": [{"role": "user", "content": [IMAGE]}]})
    written = x.identified.received.body.replace(b"image", b"\\u0069mage")
    assert b"image" not in written
    x = msgspec.structs.replace(x, call=DIALECTS["openai_chat"].decode(written))
    needs = routing_needs(x)
    assert (needs.needs, needs.input_tokens >= 1_000) == (CAPABILITY_BITS["vision"], True)


async def test_the_estimate_includes_the_organizations_instructions() -> None:
    plain, instructed = await decoded_call({"messages": HI}), await decoded_call({"messages": HI})
    instructed.call.body["messages"] = [{"role": "system", "content": "Be brief. " * 400}, *HI]
    assert routing_needs(instructed).input_tokens - routing_needs(plain).input_tokens >= 1_000
