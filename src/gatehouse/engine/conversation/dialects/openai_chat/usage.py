"""OpenAI's usage to disjoint classes: its prompt tokens include the cached ones, so they are taken out."""

from typing import Any

import msgspec

from gatehouse.engine.conversation.usage import Usage


class PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class CompletionDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class UsageShape(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    total_tokens: int | None = None
    completion_tokens_details: CompletionDetails | None = None
    #: Mistral's, where the details are left out
    num_cached_tokens: int | None = None


def usage_of(told: UsageShape | None) -> Usage | None:
    if told is None:
        return None
    details = told.prompt_tokens_details
    prompt = max(told.prompt_tokens or 0, 0)
    cached = min(max((told.num_cached_tokens if details is None else details.cached_tokens) or 0, 0), prompt)
    output = max(told.completion_tokens or 0, 0)
    if told.completion_tokens_details is not None and told.total_tokens:
        # OpenAI counts reasoning as completion; some who copy its API do not, and say so by their total.
        reasoning = max(told.completion_tokens_details.reasoning_tokens or 0, 0)
        if reasoning and told.total_tokens == prompt + output + reasoning:
            output += reasoning
    return Usage(input_tokens=prompt - cached, cached_tokens=cached, output_tokens=output)


def told_by(usage: Usage) -> dict[str, Any]:
    """The way back. Tokens written to a cache are prompt tokens too."""
    prompt = usage.input_tokens + usage.cached_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
