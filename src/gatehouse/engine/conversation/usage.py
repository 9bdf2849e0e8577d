"""Tokens of one model call as disjoint classes: no token is counted in two of them."""

import msgspec


class Usage(msgspec.Struct, kw_only=True, gc=False):
    """`input_tokens` are those read at full price: cached ones and ones written to a cache stand apart."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
