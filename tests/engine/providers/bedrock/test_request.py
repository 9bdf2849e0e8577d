"""Requests to Bedrock's operation Converse, whose form depends on the version of Anthropic's model."""

from typing import Any

import pytest

from gatehouse.engine.conversation.conversion import lost
from gatehouse.engine.conversation.form import (
    Document,
    Effort,
    FormMessage,
    Request,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gatehouse.engine.providers.bedrock.request import unwritten, write

HIGH = Effort(level="high", fields=("reasoning_effort",), is_openai=True)
QUESTION = FormMessage("user", (Text("hi"),))
CALL = FormMessage("assistant", (ToolCall(id="t1", name="weather", arguments="{}"),))
RESULT = FormMessage("user", (ToolResult(call_id="t1", content=(Text("9"),)),))
TOOLS = (Tool(name="weather"), Tool(name="clock"), Tool(name="news"))


def request(model: str, *messages: FormMessage, **more: Any) -> Request:
    return Request(model=model, messages=messages or (QUESTION,), **more)


def dropped(request: Request) -> set[str]:
    return set(lost.lost_fields(request, unwritten(request), frozenset(), {}))


def tool_names(body: dict[str, Any]) -> list[str]:
    return [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]]


def test_documents_have_different_names() -> None:
    names = ("a", "a 3", "a", "a", "a 3")
    files = tuple(Document(data="eA==", media_type="text/plain", name=name) for name in names)
    body = write(request("amazon.nova-pro-v1:0", FormMessage("user", (Text("hi"), *files))))
    written = [part["document"]["name"] for part in body["messages"][0]["content"] if "document" in part]
    assert written == ["a", "a 3", "a 2", "a 4", "a 3 2"]


def test_sampling_is_sent_to_models_that_do_not_plan_their_thinking() -> None:
    effort = request("deepseek.r1-v1:0", effort=HIGH, reasons=True, sampling=Sampling(temperature=0.5, top_p=0.5))
    assert dropped(effort).isdisjoint({"temperature", "top_p"})
    assert write(effort)["inferenceConfig"]["temperature"] == 0.5


def test_a_forced_call_excludes_thinking():
    forced = request("us.anthropic.claude-sonnet-4-6", effort=HIGH, tools=TOOLS, tool_choice=ToolChoice("required"))
    body = write(forced)
    assert "additionalModelRequestFields" not in body
    assert body["toolConfig"]["toolChoice"] == {"any": {}}
    assert dropped(forced) == {"reasoning_effort"}


def test_models_that_refuse_forced_calls_are_offered_the_named_tool_and_those_of_earlier_calls():
    named = ToolChoice("named", "clock")
    plain = write(request("anthropic.claude-opus-5-5", tools=TOOLS, tool_choice=named))
    assert (plain["toolConfig"].get("toolChoice"), tool_names(plain)) == (None, ["clock"])
    later = request("anthropic.claude-opus-5-5", QUESTION, CALL, RESULT, tools=TOOLS, tool_choice=named)
    assert tool_names(write(later)) == ["weather", "clock"]
    assert dropped(later) == {"tool_choice"}


def test_no_budget_after_a_tool_call_that_a_system_message_follows():
    reminder = FormMessage("system", (Text("Be brief."),))
    continued = request("anthropic.claude-haiku-4-5-v1:0", QUESTION, CALL, RESULT, reminder, effort=HIGH)
    assert "additionalModelRequestFields" not in write(continued)
    assert dropped(continued) == {"reasoning_effort", "later_system"}


def test_thinking_that_is_on_by_default_is_switched_off():
    body = write(request("anthropic.claude-opus-5", effort=Effort(level="none", fields=("thinking",))))
    assert body["additionalModelRequestFields"] == {"thinking": {"type": "disabled"}}


def test_newer_models_get_no_sampling():
    sampling = Sampling(max_tokens=9, temperature=0.2, top_p=0.9, top_k=4)
    sampled = request("anthropic.claude-opus-4-7", sampling=sampling)
    assert write(sampled)["inferenceConfig"] == {"maxTokens": 9}
    assert "additionalModelRequestFields" not in write(sampled)
    assert dropped(sampled) == {"temperature", "top_p", "top_k"}


@pytest.mark.parametrize("model", ["amazon.nova-lite-v1:0", "meta.llama4-scout-17b-instruct-v1:0"])
def test_an_effort_for_models_of_other_vendors_is_dropped(model: str):
    plain = request(model, effort=HIGH, sampling=Sampling(temperature=0.2))
    assert write(plain)["inferenceConfig"] == {"temperature": 0.2}
    assert dropped(plain) == {"reasoning_effort"}


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("anthropic.claude-sonnet-4-5-v1:0", ["interleaved-thinking-2025-05-14", "context-1m-2025-08-07"]),
        ("anthropic.claude-3-7-sonnet-v1:0", ["output-128k-2025-02-19"]),
        ("anthropic.claude-instant-v1", None),
        ("amazon.nova-pro-v1:0", None),
    ],
)
def test_features_that_bedrock_and_the_model_have_are_enabled(model: str, sent: list[str] | None) -> None:
    betas = (
        "interleaved-thinking-2025-05-14", "mcp-client-2025-11-20", "context-1m-2025-08-07", "output-128k-2025-02-19",
        "interleaved-thinking-2025-05-14",
    )  # fmt: skip
    enabled = request(model, betas=betas)
    assert write(enabled).get("additionalModelRequestFields", {}).get("anthropic_beta") == sent
    assert dropped(enabled) == {"betas"}
    if sent:
        assert dropped(request(model, betas=tuple(sent))) == set()
