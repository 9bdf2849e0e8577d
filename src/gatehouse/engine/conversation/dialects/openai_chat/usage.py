"""OpenAI's usage to disjoint classes: its prompt tokens include the cached ones, so they are taken out."""

from typing import Any

import msgspec

from gatehouse.engine.conversation.usage import Usage


class PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class UsageShape(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None


def usage_of(told: UsageShape | None) -> Usage | None:
    if told is None:
        return None
    details = told.prompt_tokens_details
    prompt = max(told.prompt_tokens or 0, 0)
    cached = min(max(details.cached_tokens or 0, 0), prompt) if details is not None else 0
    return Usage(input_tokens=prompt - cached, cached_tokens=cached, output_tokens=max(told.completion_tokens or 0, 0))


def told_by(usage: Usage) -> dict[str, Any]:
    """The way back. Tokens written to a cache are prompt tokens too."""
    prompt = usage.input_tokens + usage.cached_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
