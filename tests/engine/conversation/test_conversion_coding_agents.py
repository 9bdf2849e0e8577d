"""Requests of a coding agent that loads a deferred tool, for providers with another API."""

import json
from typing import Any

import msgspec
import pytest
from tests.support.coding_agents import claude_loading_request, claude_next_request, claude_request

from gatehouse.engine.conversation.conversion import lost
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.form import Request
from gatehouse.engine.providers.registry import SPOKEN

MODELS = {
    "openai_chat": "gpt-5",
    "gemini_generate": "gemini-2.5-flash",
    "mistral_chat": "magistral-medium",
    "bedrock_converse": "anthropic.claude-sonnet-4-5-v1:0",
}
#: providers that take system messages at any place
ANY_PLACE = {"openai_chat"}
BILLING = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332; cch=36ee5;"}


def convert(spoken: str, body: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Return the provider's body, and the names of the lost fields."""
    dialect, provider = DIALECTS["anthropic_messages"], SPOKEN[spoken]
    request: Request = dialect.to_internal(dialect.decode(msgspec.json.encode(body)))
    request = msgspec.structs.replace(request, model=MODELS[spoken])
    names = lost.lost_fields(request, provider.unwritten(request), provider.extra_fields, dialect.feature_fields)
    return provider.from_internal(request), set(names)


def messages(body: dict[str, Any]) -> list[str]:
    """Return the messages of a provider's body as JSON, with their roles."""
    return [json.dumps(message) for message in body.get("messages") or body["contents"]]


def use(name: str, call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"query": "later"}}


@pytest.mark.parametrize("spoken", MODELS)
def test_a_deferred_tool_is_loaded_and_called(spoken: str) -> None:
    first = claude_request("p/m", "Find it.")
    loading = claude_loading_request(first, [use("Bash", "toolu_1")], "Later")
    body, names = convert(spoken, loading)
    assert {"tools.defer_loading", "messages.tool_addition"} <= names
    (result,) = [message for message in messages(body) if "The tool Later is available." in message]
    assert "tool_reference" not in json.dumps(body)
    assert "tool_addition" not in json.dumps(body)
    calling = claude_next_request(loading, [use("Later", "toolu_2")], "42")
    body, names = convert(spoken, calling)
    sent = messages(body)
    assert result in sent
    assert "42" in "".join(sent[sent.index(result) + 1 :])


@pytest.mark.parametrize("spoken", MODELS)
def test_later_system_messages_keep_their_place(spoken: str) -> None:
    following = claude_next_request(claude_request("p/m", "Find it."), [use("Bash", "toolu_1")], "The result.")
    body, names = convert(spoken, following)
    last = messages(body)[-1]
    assert "The remaining tokens: 1000." in last
    assert ("messages.system" in names) is (spoken not in ANY_PLACE)
    if spoken in ANY_PLACE:
        assert json.loads(last)["role"] == "system"
    else:
        assert json.loads(last)["role"] == "user"
        assert "<system>" in last
    others = {name: value for name, value in body.items() if name not in {"messages", "contents"}}
    assert "remaining tokens" not in json.dumps(others)


@pytest.mark.parametrize("spoken", MODELS)
def test_the_text_for_anthropics_billing_is_left_out_and_named(spoken: str) -> None:
    first = claude_request("p/m", "Find it.")
    without, names = convert(spoken, first)
    assert "system.x-anthropic-billing-header" not in names
    first["system"].insert(0, BILLING)
    body, names = convert(spoken, first)
    assert body == without
    assert "system.x-anthropic-billing-header" in names


def test_a_tool_that_is_removed_is_named() -> None:
    first = claude_request("p/m", "Find it.")
    first["messages"].append({"role": "system", "content": [{"type": "tool_removal", "tool_name": "Later"}]})
    assert "messages.tool_removal" in convert("openai_chat", first)[1]
