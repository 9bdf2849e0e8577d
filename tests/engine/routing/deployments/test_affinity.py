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
