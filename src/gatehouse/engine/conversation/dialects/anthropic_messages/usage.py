"""Anthropic's usage: its classes are disjoint already. A stream tells it in pieces, of which the last one holds."""

from typing import Any

import msgspec

from gatehouse.engine.conversation.usage import Usage


class UsageShape(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


def merged(before: Usage | None, told: UsageShape | None) -> Usage | None:
    """What is known after `told`: a field that it leaves out stays as it was."""
    if told is None:
        return before
    known = before or Usage()
    return Usage(
        input_tokens=_either(told.input_tokens, known.input_tokens),
        output_tokens=_either(told.output_tokens, known.output_tokens),
        cached_tokens=_either(told.cache_read_input_tokens, known.cached_tokens),
        cache_write_tokens=_either(told.cache_creation_input_tokens, known.cache_write_tokens),
    )


def told_by(usage: Usage | None) -> dict[str, Any]:
    usage = usage or Usage()
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def _either(told: int | None, known: int) -> int:
    return known if told is None else max(told, 0)
