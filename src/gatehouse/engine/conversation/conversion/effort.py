"""Converts the effort of a model's reasoning between the APIs.

OpenAI has levels (`reasoning_effort`), Anthropic a budget in tokens (`thinking.budget_tokens`) or levels
(`output_config.effort`), and Gemini a budget (`thinkingBudget`) or levels (`thinkingLevel`).

| OpenAI | Anthropic's budget | Anthropic's level | Gemini's budget | Gemini's level |
|---|---|---|---|---|
| `none` | off | off, or `low` if the model always thinks | 0 (`pro` models: 128) | `minimal` |
| `minimal` | 1,024 | `low` | 1,024 | `minimal` |
| `low` | 1,024 | `low` | 1,024 | `low` |
| `medium` | 8,192 | `medium` | 8,192 | `medium` |
| `high` | 24,576 | `high` | 24,576 | `high` |
| `xhigh` | 32,768 | `xhigh` (Claude 4.6: `max`) | 24,576 | `high` |

A budget becomes `low` up to 4,096 tokens, `medium` up to 16,384, and `high` above. For OpenAI, Anthropic's `max`
becomes `high`, and thinking that is off becomes `low`, because some models of OpenAI accept only `low`, `medium` and
`high`. A budget for Anthropic is at most half of the answer's token limit. If it is then less than 1,024 tokens, the
minimum of Anthropic, no budget is sent.

Models without reasoning refuse these fields, so the fields are only sent to reasoning models. The catalog's capability
`reasoning` says whether a model is one. If the catalog does not say, the model's name decides, except that Mistral gets
no effort. `reasoning_effort` is always sent unchanged between two APIs that have this field.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gatehouse.engine.conversation.conversion.claude import Claude, claude
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import Effort

#: budget in tokens by level
_BUDGETS: Final = {
    "minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576, "xhigh": 32_768, "max": 32_768,
}  # fmt: skip
_MAX_LOW_TOKENS: Final = 4096
_MAX_MEDIUM_TOKENS: Final = 16_384
#: the smallest budget that Anthropic accepts; no model of Gemini requires more
_MIN_BUDGET_TOKENS: Final = 1024
_MAX_GEMINI_TOKENS: Final = 24_576
#: Gemini's `pro` models always think, at least this much
_MIN_GEMINI_PRO_TOKENS: Final = 128

_ANTHROPIC_LEVELS: Final = {
    "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max",
}  # fmt: skip
#: OpenAI's level by level of the other APIs; levels that are missing here are sent as they are
_OPENAI_LEVELS: Final = {"none": "low", "max": "high"}
_MISTRAL_LEVELS: Final = {"none": "none"}
_GEMINI_LEVELS: Final = {
    "none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high",
    "max": "high",
}  # fmt: skip

#: features that are lost: the whole effort, or the client's budget, of which only a level is sent
_NO_EFFORT: Final = frozenset({"effort"})
_NO_BUDGET: Final = frozenset({"effort_budget"})

#: models of OpenAI that reason; `o1-mini`, `o1-preview` and the `chat` models of GPT-5 accept no effort
_OPENAI_REASONING: Final = re.compile(
    r"(?:.*/)?(?:o1(?!-(?:mini|preview))|o[2-9]|gpt-(?:[5-9]|oss)(?!.*-chat)|codex)", re.IGNORECASE
)
_GEMINI: Final = re.compile(r"(?:models/)?gemini-(?P<major>\d+)(?:\.(?P<minor>\d+))?", re.IGNORECASE)
#: models of Gemini for images and speech, which accept no effort
_GEMINI_MEDIA: Final = re.compile(r"-(?:image|tts)\b", re.IGNORECASE)


class ClaudeThinking(NamedTuple):
    """The fields about thinking in a call to a Claude model. `is_lost`: the fields express another effort than the
    client requested, or none. `thinks`: the model may think."""

    fields: Mapping[str, Any]
    is_lost: bool = False
    thinks: bool = False


def of_openai(level: str | None, field: str) -> Effort | None:
    return None if level is None else Effort(level=level, fields=(field,), is_openai=True)


def of_anthropic(thinking: Any, level: Any) -> Effort | None:
    """Return the effort in `thinking` and `output_config.effort`, or None if the model decides. Raises
    `InvalidField`."""
    if thinking is not None and not isinstance(thinking, dict):
        raise InvalidField("thinking", "`thinking` must be an object.")
    kind = (thinking or {}).get("type")
    if kind == "disabled":
        return Effort(level="none", fields=("thinking",))
    budget = (thinking or {}).get("budget_tokens")
    budget = budget if type(budget) is int and budget > 0 else None
    if isinstance(level, str):
        fields = ("output_config.effort",) if thinking is None else ("output_config.effort", "thinking")
        return Effort(level=level, budget_tokens=budget, fields=fields)
    if kind == "enabled" and budget is not None:
        return Effort(level=_level(budget), budget_tokens=budget, fields=("thinking",))
    return None


def for_openai(effort: Effort | None, model: str, reasons: bool | None) -> str | None:
    """Return OpenAI's `reasoning_effort`; None: it is not sent. `reasons` is the catalog's capability of the model."""
    if effort is None or effort.is_openai:
        return None if effort is None else effort.level
    if reasons is False or (reasons is None and _OPENAI_REASONING.match(model) is None):
        return None
    return _OPENAI_LEVELS.get(effort.level, effort.level)


def unwritten_levels(effort: Effort | None, level: str | None) -> frozenset[str]:
    """Return the features of an effort that are lost if only `level` is sent; None: no level is sent. The feature
    `effort` is lost if the level is not the requested one."""
    return _NO_EFFORT if effort is None or level != effort.level else _NO_BUDGET


def for_mistral(effort: Effort | None, reasons: bool | None) -> str | None:
    """Return Mistral's `reasoning_effort`; None: it is not sent."""
    if effort is None or effort.is_openai:
        return None if effort is None else effort.level
    return _MISTRAL_LEVELS.get(effort.level, "high") if reasons else None


def for_anthropic(
    effort: Effort | None,
    model: str,
    reasons: bool | None,
    *,
    max_tokens: int,
    must_call: bool = False,
    accepts_budget: bool = True,
    shows: bool = False,
) -> ClaudeThinking:
    """Return Anthropic's fields. `shows`: the client shows the text of the thinking, which newer models return only on
    request.

    `must_call`: the request forces the model to call a tool. Older models refuse this together with thinking.
    `accepts_budget` is False if Anthropic refuses a budget for this request. It does so in two cases: the request ends
    with results of tools, and the client did not return the thinking before the tool calls; or it ends with the
    beginning of an answer."""
    version = claude(model)
    level = None if effort is None else effort.level
    if reasons is False or (version is None and not reasons) or (version is not None and not version.can_think):
        return ClaudeThinking({}, is_lost=level not in (None, "none"))
    if version is not None and version.has_levels:
        planned = _with_level(level, version, must_call)
        if shows and planned.thinks and version.omits_thinking:
            thinking = {"type": "adaptive", "display": "summarized"}
            return planned._replace(fields={**planned.fields, "thinking": thinking})
        return planned
    if effort is None or level == "none":
        return ClaudeThinking({})
    requested = effort.budget_tokens or _BUDGETS.get(effort.level, 0)
    budget = min(requested, max_tokens // 2)
    if budget < _MIN_BUDGET_TOKENS or must_call or not accepts_budget:
        return ClaudeThinking({}, is_lost=True)
    fields = {"thinking": {"type": "enabled", "budget_tokens": budget}}
    return ClaudeThinking(fields, is_lost=budget != requested, thinks=True)


def _with_level(level: str | None, model: Claude, must_call: bool) -> ClaudeThinking:
    """Return the fields for a model that accepts `output_config.effort`."""
    anthropic = _ANTHROPIC_LEVELS.get(level or "")
    if anthropic == "xhigh" and not model.has_xhigh:
        anthropic = "max"
    if model.always_thinks:
        if level == "none":
            anthropic = "low"
        fields: dict[str, Any] = {} if anthropic is None else {"output_config": {"effort": anthropic}}
        return ClaudeThinking(fields, is_lost=anthropic != level, thinks=True)
    if level == "none":
        if not model.thinks_by_default:
            return ClaudeThinking({})
        return ClaudeThinking({"thinking": {"type": model.least_thinking}}, is_lost=model.least_thinking != "disabled")
    if must_call and not model.thinks_in_forced_calls:
        return ClaudeThinking({}, is_lost=level is not None)
    if anthropic is None:
        return ClaudeThinking({}, is_lost=level is not None, thinks=model.thinks_by_default)
    fields = {"thinking": {"type": "adaptive"}, "output_config": {"effort": anthropic}}
    return ClaudeThinking(fields, is_lost=anthropic != level, thinks=True)


def thinking_config(
    effort: Effort | None, model: str, reasons: bool | None, *, shows: bool
) -> Mapping[str, Any] | None:
    """Return Gemini's `thinkingConfig`; None: it is not sent. `shows`: the client shows the text of the reasoning."""
    config = for_gemini(effort, model, reasons)
    if not shows or (effort is not None and (config is None or effort.level == "none")):
        return config
    if config is None and not _thinks_as_gemini(model, reasons):
        return None
    return {**(config or {}), "includeThoughts": True}


def _thinks_as_gemini(model: str, reasons: bool | None) -> bool:
    if reasons is not None:
        return reasons
    version = _GEMINI.match(model)
    if version is None or _GEMINI_MEDIA.search(model):
        return False
    return (int(version["major"]), int(version["minor"] or 0)) >= (2, 5)


def for_gemini(effort: Effort | None, model: str, reasons: bool | None) -> Mapping[str, Any] | None:
    """Return the part of Gemini's `thinkingConfig` with the effort; None: it is not sent."""
    if effort is None or reasons is False or effort.level not in _GEMINI_LEVELS:
        return None
    version = _GEMINI.match(model)
    if version is None:
        return {"thinkingLevel": _GEMINI_LEVELS[effort.level]} if reasons else None
    if reasons is None and _GEMINI_MEDIA.search(model):
        return None
    number = (int(version["major"]), int(version["minor"] or 0))
    is_pro = "-pro" in model
    if number < (2, 5):
        return None
    if number >= (3, 0):
        level = _GEMINI_LEVELS[effort.level]
        if is_pro and level == "minimal":
            level = "low"
        if is_pro and level == "medium" and number == (3, 0):
            level = "high"
        return {"thinkingLevel": level}
    if effort.level == "none":
        return {"thinkingBudget": _MIN_GEMINI_PRO_TOKENS if is_pro else 0}
    budget = effort.budget_tokens or _BUDGETS[effort.level]
    return {"thinkingBudget": max(_MIN_BUDGET_TOKENS, min(budget, _MAX_GEMINI_TOKENS))}


def unwritten_for_gemini(effort: Effort | None, model: str, reasons: bool | None) -> frozenset[str]:
    """Return the features of an effort that Gemini does not receive as the client requested them."""
    config = for_gemini(effort, model, reasons)
    if effort is None or config is None:
        return _NO_EFFORT
    if "thinkingLevel" in config:
        return unwritten_levels(effort, config["thinkingLevel"])
    requested = 0 if effort.level == "none" else effort.budget_tokens or _BUDGETS[effort.level]
    return frozenset() if config["thinkingBudget"] == requested else _NO_EFFORT


def _level(budget: int) -> str:
    if budget <= _MAX_LOW_TOKENS:
        return "low"
    return "medium" if budget <= _MAX_MEDIUM_TOKENS else "high"
