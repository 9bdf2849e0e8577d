"""Conversion of the reasoning effort between the APIs."""

from typing import Any

import pytest

from gatehouse.engine.conversation.conversion import effort
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import Effort


def thinking(budget: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def adaptive(level: str) -> dict[str, Any]:
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}


def to_anthropic(level: str | None, model: str, *, max_tokens: int = 100_000, **more: Any) -> Any:
    """Return Anthropic's fields, or None if the effort is lost and no field is sent."""
    requested = effort.of_openai(level, "reasoning_effort")
    planned = effort.for_anthropic(requested, model, more.pop("reasons", None), max_tokens=max_tokens, **more)
    return None if planned.is_lost and not planned.fields else planned.fields


@pytest.mark.parametrize(
    ("level", "budget", "claude"),
    [("minimal", 1024, "low"), ("low", 1024, "low"), ("medium", 8192, "medium"), ("high", 24_576, "high")],
)  # fmt: skip
def test_openais_levels_for_anthropic(level: str, budget: int, claude: str):
    assert to_anthropic(level, "claude-sonnet-4-5-20250929") == thinking(budget)
    assert to_anthropic(level, "claude-3-7-sonnet-latest") == thinking(budget)
    assert to_anthropic(level, "eu.anthropic.claude-haiku-4-5-v1:0") == thinking(budget)
    assert to_anthropic(level, "claude-opus-4-6") == adaptive(claude)
    assert to_anthropic(level, "claude-opus-5") == adaptive(claude)
    assert to_anthropic(level, "claude-3.7-sonnet") == thinking(budget)
    assert to_anthropic(level, "claude-sonnet-4-20250514") == thinking(budget)


def test_xhigh_stays_xhigh_for_models_that_have_it():
    assert to_anthropic("xhigh", "claude-sonnet-4-5-20250929") == thinking(32_768)
    assert to_anthropic("xhigh", "claude-opus-4-6") == adaptive("max")
    for model in ("claude-opus-4-7", "claude-4.7-opus", "claude-sonnet-5", "us.anthropic.claude-haiku-5-5"):
        assert to_anthropic("xhigh", model) == adaptive("xhigh")
        assert to_anthropic("max", model) == adaptive("max")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-opus-4-6", {}),
        ("claude-opus-4-8", {}),
        ("claude-opus-5", {"thinking": {"type": "disabled"}}),
        ("claude-sonnet-5", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-5-5", {"thinking": {"type": "disabled"}}),
        ("anthropic.claude-sonnet-5-5", {"thinking": {"type": "between_tools"}}),
        ("claude-opus-5-5", {"output_config": {"effort": "low"}}),
        ("claude-fable-5", {"output_config": {"effort": "low"}}),
        ("claude-mythos-preview", {"output_config": {"effort": "low"}}),
    ],
)
def test_none_switches_off_the_thinking_of_models_that_think_by_default(model: str, expected: dict[str, Any]):
    assert to_anthropic("none", model) == expected
    assert to_anthropic(None, model) == {}


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-7"])
def test_a_call_that_must_call_a_tool_does_not_think(model: str):
    assert to_anthropic("medium", model, must_call=True) is None
    assert to_anthropic("none", model, must_call=True) == {}
    assert to_anthropic(None, model, must_call=True) == {}


@pytest.mark.parametrize("model", ["claude-opus-4-8", "claude-sonnet-5", "claude-haiku-5-5"])
def test_newer_models_think_also_in_a_call_that_must_call_a_tool(model: str):
    assert to_anthropic("medium", model, must_call=True) == adaptive("medium")
    assert to_anthropic(None, model, must_call=True) == {}


@pytest.mark.parametrize("model", ["gpt-5-chat-latest", "gpt-5.2-chat-latest", "o1-mini", "o1-preview-2024-09-12"])
def test_models_of_openai_without_an_effort_get_none(model: str):
    assert effort.for_openai(Effort(level="high"), model, None) is None
    assert effort.for_openai(Effort(level="high"), model, reasons=True) == "high"
    assert effort.for_openai(Effort(level="high"), "o1", None) == "high"


@pytest.mark.parametrize(
    "model", ["gemini-2.5-flash-image", "gemini-2.5-pro-preview-tts", "models/gemini-3-pro-image-preview"]
)
def test_models_of_gemini_for_images_and_speech_get_no_effort(model: str):
    assert effort.for_gemini(Effort(level="high"), model, None) is None
    assert effort.for_gemini(Effort(level="high"), model, reasons=True) is not None


def test_models_that_do_not_reason_get_no_effort():
    assert to_anthropic("high", "claude-3-5-haiku-latest") is None
    assert to_anthropic("none", "claude-3-5-haiku-latest") == {}
    assert to_anthropic("high", "our-model") is None
    assert to_anthropic("high", "our-model", reasons=True) == thinking(24_576)
    assert to_anthropic("high", "claude-opus-4-6", reasons=False) is None
    assert to_anthropic("extreme", "claude-opus-4-6") is None
    assert effort.for_openai(Effort(level="high"), "gpt-4o", None) is None
    assert effort.for_openai(Effort(level="high"), "gpt-5", reasons=False) is None
    assert effort.for_gemini(Effort(level="high"), "gemini-2.0-flash", None) is None
    assert effort.for_gemini(Effort(level="high"), "gemma-3", None) is None
    assert effort.for_mistral(Effort(level="high"), None) is None


def test_a_budget_leaves_half_of_the_limit_for_the_answer():
    assert to_anthropic("high", "claude-sonnet-4-5", max_tokens=8000) == thinking(4000)
    assert to_anthropic("high", "claude-sonnet-4-5", max_tokens=2000) is None


def test_a_budget_is_left_out_where_anthropic_would_refuse_it():
    assert to_anthropic("high", "claude-sonnet-4-5", accepts_budget=False) is None
    assert to_anthropic("high", "claude-opus-4-7", accepts_budget=False) == adaptive("high")


def test_no_effort_means_no_field():
    assert to_anthropic("none", "claude-sonnet-4-5") == {}
    assert to_anthropic("none", "claude-opus-4-6") == {}
    assert to_anthropic(None, "claude-opus-4-6", max_tokens=5) == {}


@pytest.mark.parametrize(
    ("body", "level", "fields"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "low", ("thinking",)),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "low", ("thinking",)),
        ({"thinking": {"type": "enabled", "budget_tokens": 10_000}}, "medium", ("thinking",)),
        ({"thinking": {"type": "enabled", "budget_tokens": 31_999}}, "high", ("thinking",)),
        ({"thinking": {"type": "disabled"}, "effort": "high"}, "none", ("thinking",)),
        ({"thinking": {"type": "adaptive"}, "effort": "max"}, "max", ("output_config.effort", "thinking")),
        ({"effort": "low"}, "low", ("output_config.effort",)),
    ],
)
def test_anthropics_fields_are_read(body: dict[str, Any], level: str, fields: tuple[str, ...]):
    requested = effort.of_anthropic(body.get("thinking"), body.get("effort"))
    assert requested is not None
    assert (requested.level, requested.fields) == (level, fields)


def test_a_model_that_decides_by_itself_has_no_effort():
    assert effort.of_anthropic({"type": "adaptive"}, None) is None
    assert effort.of_anthropic(None, None) is None
    assert effort.of_anthropic({"type": "enabled"}, None) is None
    with pytest.raises(InvalidField):
        effort.of_anthropic("much", None)


@pytest.mark.parametrize(
    ("level", "openai"), [("none", "low"), ("low", "low"), ("medium", "medium"), ("high", "high"), ("max", "high")]
)
def test_anthropics_levels_for_openai(level: str, openai: str):
    requested = Effort(level=level)
    assert effort.for_openai(requested, "gpt-5.1-codex", None) == openai
    assert effort.for_openai(requested, "o3-mini", None) == openai
    assert effort.for_openai(requested, "openai/gpt-oss-20b", None) == openai
    assert effort.for_openai(requested, "our-deployment", reasons=True) == openai


def test_openais_own_field_is_sent_as_it_is():
    requested = effort.of_openai("whatever", "reasoning.effort")
    assert effort.for_openai(requested, "gpt-4o", reasons=False) == "whatever"
    assert effort.for_mistral(requested, None) == "whatever"
    assert effort.of_openai(None, "reasoning.effort") is None


def test_mistral_has_two_levels_of_effort():
    assert effort.for_mistral(Effort(level="low"), reasons=True) == "high"
    assert effort.for_mistral(Effort(level="none"), reasons=True) == "none"


@pytest.mark.parametrize(
    ("model", "level", "expected"),
    [
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", "none", {"thinkingBudget": 128}),
        ("gemini-2.5-flash", "low", {"thinkingBudget": 1024}),
        ("gemini-2.5-pro", "medium", {"thinkingBudget": 8192}),
        ("gemini-2.5-pro", "xhigh", {"thinkingBudget": 24_576}),
        ("gemini-3-flash-preview", "none", {"thinkingLevel": "minimal"}),
        ("gemini-3-flash-preview", "medium", {"thinkingLevel": "medium"}),
        ("gemini-3-pro-preview", "minimal", {"thinkingLevel": "low"}),
        ("gemini-3-pro-preview", "medium", {"thinkingLevel": "high"}),
        ("gemini-3.1-pro-preview", "medium", {"thinkingLevel": "medium"}),
        ("models/gemini-3.5-flash", "max", {"thinkingLevel": "high"}),
    ],
)
def test_levels_for_gemini(model: str, level: str, expected: dict[str, Any]):
    assert effort.for_gemini(Effort(level=level), model, None) == expected


def test_the_clients_thinking_budget_is_converted_for_gemini():
    requested = effort.of_anthropic({"type": "enabled", "budget_tokens": 5000}, None)
    assert effort.for_gemini(requested, "gemini-2.5-flash", None) == {"thinkingBudget": 5000}
    assert effort.for_gemini(requested, "tunedModels/mine", reasons=True) == {"thinkingLevel": "medium"}
    tiny = effort.of_anthropic({"type": "enabled", "budget_tokens": 1}, None)
    assert effort.for_gemini(tiny, "gemini-2.5-pro", None) == {"thinkingBudget": 1024}
    assert effort.for_gemini(Effort(level="extreme"), "gemini-2.5-flash", None) is None
