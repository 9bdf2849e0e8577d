"""A model call as the pipeline sees it: what the client asked, decoded once, unknown fields kept."""

from collections.abc import Mapping
from typing import Any

import msgspec


class ModelCall(msgspec.Struct, kw_only=True):
    """`body` is the decoded request without gateway-only fields (`fallbacks`). `model` is as requested:
    `provider/model-id`, a bare id or `auto`. `headers` are those of the client that a provider of the same dialect
    should see."""

    dialect: str
    model: str
    stream: bool
    body: dict[str, Any]
    #: the bytes that `body` was read from
    came: bytes = b""
    #: `body` as it was read, written by `decoding.encode`
    read: bytes = b""
    #: whether no number of `came` has more digits than were read
    exact: bool = True
    fallbacks: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    #: what the answer may take, in tokens, where the caller says nothing: sent along to the provider
    output_limit: int | None = None
