"""Converts the effort of a model's reasoning between the APIs.

OpenAI has levels (`reasoning_effort`), Anthropic a budget in tokens (`thinking.budget_tokens`) or levels
(`output_config.effort`), and Gemini a budget (`thinkingBudget`) or levels (`thinkingLevel`).

| OpenAI | Anthropic's budget | Anthropic's level | Gemini's budget | Gemini's level |
|---|---|---|---|---|
| `none` | off | off | 0 (`pro` models: 128) | `minimal` |
| `minimal` | 1,024 | `low` | 1,024 | `minimal` |
| `low` | 1,024 | `low` | 1,024 | `low` |
| `medium` | 8,192 | `medium` | 8,192 | `medium` |
| `high` | 24,576 | `high` | 24,576 | `high` |
| `xhigh` | 32,768 | `max` | 24,576 | `high` |

A budget becomes `low` up to 4,096 tokens, `medium` up to 16,384, and `high` above. Anthropic's `max` becomes `high`,
and thinking that is off becomes `low`, because not all models of OpenAI accept more or less than these. A budget is at
most half of the answer's limit. It is left out if this is less than 1,024 tokens, the smallest that Anthropic accepts.

Models without reasoning refuse these fields. So they are only sent to models that the catalog's capability `reasoning`
or, if the catalog does not say, the model's name describes as reasoning models. OpenAI's own field is an exception:
between two APIs that have it, it is sent as it is.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import Effort

#: budget in tokens by level
_BUDGETS: Final = {
    "minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576, "xhigh": 32_768, "max": 32_768,
}  # fmt: skip
_MAX_LOW_TOKENS: Final = 4096
_MAX_MEDIUM_TOKENS: Final = 16_384
_MIN_ANTHROPIC_TOKENS: Final = 1024
_MAX_GEMINI_TOKENS: Final = 24_576
#: Gemini's `pro` models always think, at least this much
_MIN_GEMINI_PRO_TOKENS: Final = 128

_ANTHROPIC_LEVELS: Final = {
    "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "max", "max": "max",
}  # fmt: skip
#: also for `off`
_OPENAI_LEVELS: Final = {"none": "low", "max": "high"}
_MISTRAL_LEVELS: Final = {"none": "none"}
_GEMINI_LEVELS: Final = {
    "none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high",
    "max": "high",
}  # fmt: skip

_OPENAI_REASONING: Final = re.compile(r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|oss)|codex)", re.IGNORECASE)
#: a Claude model with its version: `claude-sonnet-4-5-20250929`, `claude-3-7-sonnet-latest`, `claude-opus-4.6`
_CLAUDE: Final = re.compile(
    r"claude-(?:(?P<old>3)-(?P<old_minor>\d)|[a-z]+-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?(?!\d))", re.IGNORECASE
)
#: the first versions of Claude with a budget, and with levels that replace it
_FIRST_BUDGET: Final = (3, 7)
_FIRST_LEVELS: Final = (4, 6)
_GEMINI: Final = re.compile(r"(?:models/)?gemini-(?P<major>\d+)(?:\.(?P<minor>\d+))?", re.IGNORECASE)


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


def for_mistral(effort: Effort | None, reasons: bool | None) -> str | None:
    """Return Mistral's `reasoning_effort`; None: it is not sent."""
    if effort is None or effort.is_openai:
        return None if effort is None else effort.level
    return _MISTRAL_LEVELS.get(effort.level, "high") if reasons else None


def for_anthropic(
    effort: Effort | None, model: str, reasons: bool | None, *, max_tokens: int, may_think: bool
) -> Mapping[str, Any] | None:
    """Return Anthropic's fields, empty if the model does not reason without them; None: the effort cannot be sent.

    `may_think` is False for a call with which Anthropic refuses a budget: one that must call a tool, or that continues
    an answer after a tool call, whose thinking no other API returns."""
    if effort is None:
        return {}
    version = _claude_version(model)
    if reasons is False or (version is None and not reasons) or (version is not None and version < _FIRST_BUDGET):
        return {} if effort.level == "none" else None
    if version is not None and version >= _FIRST_LEVELS:
        if effort.level == "none":
            # Newer models refuse `disabled`, and do not think unless asked to.
            return {}
        level = _ANTHROPIC_LEVELS.get(effort.level)
        return None if level is None else {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}
    if effort.level == "none":
        return {}
    budget = min(effort.budget_tokens or _BUDGETS.get(effort.level, 0), max_tokens // 2)
    if budget < _MIN_ANTHROPIC_TOKENS or not may_think:
        return None
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def for_gemini(effort: Effort | None, model: str, reasons: bool | None) -> Mapping[str, Any] | None:
    """Return Gemini's `thinkingConfig`; None: it is not sent."""
    if effort is None or reasons is False or effort.level not in _GEMINI_LEVELS:
        return None
    version = _GEMINI.match(model)
    if version is None:
        return {"thinkingLevel": _GEMINI_LEVELS[effort.level]} if reasons else None
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
    return {"thinkingBudget": min(effort.budget_tokens or _BUDGETS[effort.level], _MAX_GEMINI_TOKENS)}


def _level(budget: int) -> str:
    if budget <= _MAX_LOW_TOKENS:
        return "low"
    return "medium" if budget <= _MAX_MEDIUM_TOKENS else "high"


def _claude_version(model: str) -> tuple[int, int] | None:
    match = _CLAUDE.search(model)
    if match is None:
        return None
    if match["old"] is not None:
        return int(match["old"]), int(match["old_minor"])
    return int(match["major"]), int(match["minor"] or 0)
