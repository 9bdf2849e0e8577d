"""Converts Anthropic's usage. Its classes of tokens are disjoint. In a stream, several events report it, and the last
value of each field counts."""

from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.conversion.lost import usage_details
from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.usage import Usage


class UsageShape(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


def merged(previous: Usage | None, update: UsageShape | None) -> Usage | None:
    """Return the usage after an update. Fields that the update omits keep their values."""
    if update is None:
        return previous
    usage = previous or Usage()
    return Usage(
        input_tokens=_updated(update.input_tokens, usage.input_tokens),
        output_tokens=_updated(update.output_tokens, usage.output_tokens),
        cached_tokens=_updated(update.cache_read_input_tokens, usage.cached_tokens),
        cache_write_tokens=_updated(update.cache_creation_input_tokens, usage.cache_write_tokens),
    )


#: numbers that the converted usage contains
_KEPT: Final = frozenset({*UsageShape.__struct_fields__, "ephemeral_5m_input_tokens"})
_shape: msgspec.json.Decoder[UsageShape | None] = msgspec.json.Decoder(UsageShape | None)


def read_usage(previous: Usage | None, update: msgspec.Raw) -> tuple[Usage | None, tuple[str, ...]]:
    """Return the usage of an answer that is converted, and the names of the numbers that it lacks. Raises
    `NotConvertible`."""
    raw = bytes(update)
    if raw == b"null":
        return previous, ()
    return merged(previous, decode(_shape, raw)), usage_details(raw, _KEPT)


def usage_fields(usage: Usage | None) -> dict[str, Any]:
    usage = usage or Usage()
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def _updated(value: int | None, previous: int) -> int:
    return previous if value is None else max(value, 0)
