"""The tokens of a model call in disjoint classes: each token is counted in one of them."""

import msgspec


class Usage(msgspec.Struct, kw_only=True, gc=False):
    """`input_tokens` excludes tokens read from a cache or written to it. `reasoning_tokens` are a part of
    `output_tokens`, as far as the provider reports them; they are counted there and only shown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
