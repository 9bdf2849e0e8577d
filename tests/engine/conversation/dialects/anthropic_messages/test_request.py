"""Requests in the internal form are converted to Anthropic's form, which depends on the model's version."""

from typing import Any

import pytest

from gatehouse.engine.conversation.conversion import lost
from gatehouse.engine.conversation.dialects.anthropic_messages.request import unwritten, write
from gatehouse.engine.conversation.form import (
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

HIGH = Effort(level="high", fields=("reasoning_effort",), is_openai=True)
QUESTION = FormMessage("user", (Text("hi"),))
CALL = FormMessage("assistant", (ToolCall(id="t1", name="weather", arguments="{}"),))
RESULT = FormMessage("user", (ToolResult(call_id="t1", content=(Text("9"),)),))
REMINDER = FormMessage("system", (Text("Be brief."),))
WEATHER, CLOCK = Tool(name="weather"), Tool(name="clock")


def request(model: str, *messages: FormMessage, **more: Any) -> Request:
    return Request(model=model, messages=messages or (QUESTION,), **more)


def dropped(request: Request) -> set[str]:
    return set(lost.lost_fields(request, unwritten(request), frozenset(), {}))


@pytest.mark.parametrize("choice", [ToolChoice("required"), ToolChoice("named", "weather")])
def test_a_forced_call_excludes_thinking(choice: ToolChoice):
    forced = request("claude-opus-4-6", effort=HIGH, tools=(WEATHER,), tool_choice=choice)
    body = write(forced)
    assert "thinking" not in body
    assert "output_config" not in body
    assert body["tool_choice"]["type"] in {"any", "tool"}
    assert dropped(forced) == {"reasoning_effort"}


def test_newer_models_think_in_a_forced_call():
    forced = request("claude-sonnet-5", effort=HIGH, tools=(WEATHER,), tool_choice=ToolChoice("required"))
    body = write(forced)
    assert (body["thinking"], body["tool_choice"]) == ({"type": "adaptive"}, {"type": "any"})
    assert dropped(forced) == set()


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1", "claude-mythos-5-1"])
def test_models_that_refuse_forced_calls_may_call(model: str):
    required = request(model, tools=(WEATHER, CLOCK), tool_choice=ToolChoice("required"), effort=HIGH)
    body = write(required)
    assert body["tool_choice"] == {"type": "auto"}
    assert [tool["name"] for tool in body["tools"]] == ["weather", "clock"]
    assert body["output_config"] == {"effort": "high"}
    assert dropped(required) == {"tool_choice"}

    named = request(model, tools=(WEATHER, CLOCK), tool_choice=ToolChoice("named", "clock"), parallel_tool_calls=False)
    body = write(named)
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert [tool["name"] for tool in body["tools"]] == ["clock"]
    assert dropped(named) == {"tool_choice"}


def test_other_tool_choices_reach_models_that_refuse_forced_calls():
    free = request("claude-opus-5-5", tools=(WEATHER, CLOCK), tool_choice=ToolChoice("none"))
    assert write(free)["tool_choice"] == {"type": "none"}
    assert dropped(free) == set()


@pytest.mark.parametrize(
    "messages",
    [
        (QUESTION, CALL, RESULT),
        (QUESTION, CALL, RESULT, REMINDER),
        (QUESTION, CALL, RESULT, QUESTION),
        (QUESTION, CALL, RESULT, REMINDER, QUESTION),
        (QUESTION, CALL, RESULT, FormMessage("assistant", (Text(""),))),
        (QUESTION, FormMessage("assistant", (Text("It is"),))),
    ],
)
def test_no_budget_after_a_tool_call_or_in_a_begun_answer(messages: tuple[FormMessage, ...]):
    continued = request("claude-sonnet-4-5", *messages, effort=HIGH)
    assert "thinking" not in write(continued)
    assert dropped(continued) - {"later_system"} == {"reasoning_effort"}


def test_a_new_question_after_an_answer_has_a_budget():
    answer = FormMessage("assistant", (Text("9 degrees"),))
    next_turn = request("claude-sonnet-4-5", QUESTION, CALL, RESULT, answer, REMINDER, QUESTION, effort=HIGH)
    assert write(next_turn)["thinking"]["type"] == "enabled"
    # Half of the default limit is less than the budget of the effort.
    assert dropped(next_turn) == {"later_system", "reasoning_effort"}


@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-5", "claude-haiku-5-5", "claude-mythos-preview"])
def test_newer_models_get_no_sampling(model: str):
    sampled = request(model, sampling=Sampling(max_tokens=9, temperature=0.2, top_p=0.9, top_k=1))
    assert not write(sampled).keys() & {"temperature", "top_p", "top_k"}
    assert dropped(sampled) == {"temperature", "top_p", "top_k"}
    assert dropped(request(model, sampling=Sampling(temperature=1, top_p=1))) == set()


def test_older_models_get_the_sampling_unless_they_think():
    sampling = Sampling(max_tokens=9000, temperature=0.2, top_k=5)
    plain = request("claude-opus-4-6", sampling=sampling)
    assert (write(plain)["temperature"], write(plain)["top_k"]) == (0.2, 5)
    assert dropped(plain) == set()
    assert dropped(request("claude-opus-4-6", sampling=sampling, effort=HIGH)) == {"temperature", "top_k"}


@pytest.mark.parametrize(
    ("model", "effort", "catalog", "expected"),
    [
        ("claude-opus-4-6", None, None, 4096),
        ("claude-opus-4-6", HIGH, None, 32_000),
        ("claude-opus-4-6", HIGH, 8192, 8192),
        ("claude-opus-5", None, 128_000, 32_000),
        ("claude-opus-5", Effort(level="none"), 128_000, 4096),
        ("our-model", HIGH, None, 4096),
        ("our-model", None, 2000, 2000),
    ],
)
def test_the_limit_of_a_request_that_sets_none_leaves_room_for_thinking(
    model: str, effort: Effort | None, catalog: int | None, expected: int
):
    reasons = True if model == "our-model" else None
    unlimited = request(model, effort=effort, max_output_tokens=catalog, reasons=reasons)
    assert write(unlimited)["max_tokens"] == expected
