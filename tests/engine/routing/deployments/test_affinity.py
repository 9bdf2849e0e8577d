"""The key of the conversation of a call (docs/deployments.md)."""

from typing import Any

import pytest
from tests.support.engine import TENANT, EngineHarness

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.routing.deployments.affinity import conversation_key


async def key(body: dict[str, Any], *, is_form: bool = False) -> bytes | None:
    """Return the key of a call with this body."""
    harness = EngineHarness()
    assert harness.caller is not None
    identified = Identified(
        received=harness.request({}),
        caller=harness.caller,
        policy=await harness.current(TENANT),
        scope="chat:write",
    )
    call = ModelCall(dialect="openai_chat", model="fast", stream=False, body=body, is_form=is_form)
    return conversation_key(CallRequest(identified=identified, call=call))


@pytest.mark.parametrize("field", ["prompt", "query", "input", "messages"])
async def test_calls_with_other_texts_have_other_keys(field: str) -> None:
    assert await key({field: "Find one"}) == await key({field: "Find one"})
    assert await key({field: "Find one"}) != await key({field: "Find two"})


@pytest.mark.parametrize("body", [{}, {"messages": []}, {"instructions": "Speak slowly."}], ids=str)
async def test_a_call_without_a_text_has_no_key(body: dict[str, Any]) -> None:
    assert await key(body) is None


async def test_the_prompt_of_a_form_is_no_conversation() -> None:
    assert await key({"prompt": "Names of people"}, is_form=True) is None


def claude(first: Any, *, nonce: str = "36ee5", system: Any = None) -> dict[str, Any]:
    """Return a body of Claude Code with these blocks of the user's first message."""
    billing = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.332; cch={nonce};"}
    return {
        "system": [billing, *(system or [{"type": "text", "text": "You are an agent."}])],
        "messages": [{"role": "user", "content": first}, {"role": "assistant", "content": nonce}],
    }


async def test_what_an_agent_changes_in_each_turn_is_not_part_of_the_key() -> None:
    text, cached = {"type": "text", "text": "Find it."}, {"cache_control": {"type": "ephemeral"}}
    first = await key(claude([text]))
    assert await key(claude([text], nonce="0aaa9")) == first
    assert await key(claude([{**text, **cached}])) == first
    assert await key(claude("Find it.")) == first
    assert await key(claude([text], system=[{"type": "text", "text": "You are an agent.", **cached}])) == first
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text]}
    nested = {"type": "tool_result", "tool_use_id": "t", "content": [{**text, **cached}]}
    assert await key(claude([result, text])) == await key(claude([nested, text]))


async def test_other_texts_of_an_agent_have_other_keys() -> None:
    keys = {
        await key(claude("Find it.")),
        await key(claude("Find one.")),
        await key(claude([{"type": "text", "text": "Find it."}, {"type": "text", "text": "Now."}])),
        await key(claude("Find it.", system=[{"type": "text", "text": "You are another agent."}])),
        await key(claude([{"type": "image", "source": {"type": "url", "url": "https://a.example/a.png"}}])),
    }
    assert len(keys) == 5
