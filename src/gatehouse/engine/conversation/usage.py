"""The tokens of a model call in disjoint classes: each token is counted in one of them."""

import msgspec


class Usage(msgspec.Struct, kw_only=True, gc=False):
    """Numbers of tokens. `input_tokens` excludes tokens read from a cache or written to it. `output_tokens` includes
    `reasoning_tokens`, which are only shown, if the provider reports them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
