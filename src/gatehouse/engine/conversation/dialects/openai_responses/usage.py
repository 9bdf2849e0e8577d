"""Converts the usage of responses to disjoint classes of tokens. The API counts cached tokens as input tokens, so they
are subtracted."""

import msgspec

from gatehouse.engine.conversation.usage import Usage


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class UsageShape(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None


def usage_of(shape: UsageShape | None) -> Usage | None:
    """Return the usage. The output tokens include those of the reasoning."""
    if shape is None:
        return None
    read = max(shape.input_tokens or 0, 0)
    details = shape.input_tokens_details
    cached = 0 if details is None else min(max(details.cached_tokens or 0, 0), read)
    return Usage(input_tokens=read - cached, cached_tokens=cached, output_tokens=max(shape.output_tokens or 0, 0))
