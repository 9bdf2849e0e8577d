"""Converts OpenAI's usage to disjoint classes: its prompt tokens include the cached ones, which are subtracted."""

from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.conversion.lost import usage_details
from gatehouse.engine.conversation.decoding.answers import decode
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
    #: Mistral's field, used if the details are missing
    num_cached_tokens: int | None = None


def usage_of(shape: UsageShape | None) -> Usage | None:
    if shape is None:
        return None
    details = shape.prompt_tokens_details
    prompt = max(shape.prompt_tokens or 0, 0)
    cached = min(max((shape.num_cached_tokens if details is None else details.cached_tokens) or 0, 0), prompt)
    output = max(shape.completion_tokens or 0, 0)
    reasoning = 0
    if shape.completion_tokens_details is not None:
        reasoning = max(shape.completion_tokens_details.reasoning_tokens or 0, 0)
        # OpenAI includes reasoning in the completion tokens. Some compatible servers do not, as their total shows.
        if reasoning and shape.total_tokens == prompt + output + reasoning:
            output += reasoning
    return Usage(
        input_tokens=prompt - cached,
        cached_tokens=cached,
        output_tokens=output,
        reasoning_tokens=min(reasoning, output),
    )


#: numbers that the converted usage contains
_KEPT: Final = frozenset({
    "prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "num_cached_tokens", "reasoning_tokens",
    "prompt_cache_hit_tokens", "prompt_cache_miss_tokens", "text_tokens",
})  # fmt: skip
_shape: msgspec.json.Decoder[UsageShape | None] = msgspec.json.Decoder(UsageShape | None)


def read_usage(usage: msgspec.Raw) -> tuple[Usage | None, tuple[str, ...]]:
    """Return the usage of an answer that is converted, and the names of the numbers that it lacks. Raises
    `NotConvertible`."""
    raw = bytes(usage)
    if raw == b"null":
        return None, ()
    return usage_of(decode(_shape, raw)), usage_details(raw, _KEPT)


def usage_fields(usage: Usage) -> dict[str, Any]:
    """Return the usage in OpenAI's fields. Tokens written to a cache are prompt tokens too."""
    prompt = usage.input_tokens + usage.cached_tokens + usage.cache_write_tokens
    fields: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
    if usage.cache_write_tokens:
        fields["prompt_tokens_details"]["cache_write_tokens"] = usage.cache_write_tokens
    if usage.reasoning_tokens:
        fields["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return fields
