"""A model call in the pipeline: the client's request, decoded once, with its unknown fields."""

from collections.abc import Mapping
from typing import Any

import msgspec


class ModelCall(msgspec.Struct, kw_only=True):
    """A model call. `body` is the decoded request without fields that only the gateway reads (`fallbacks`). `model` is
    the requested name: `provider/model-id`, a bare id or `auto`. `headers` are the client's headers that are passed to
    a provider of the same dialect."""

    dialect: str
    model: str
    stream: bool
    body: dict[str, Any]
    #: the client's bytes from which `body` was decoded
    came: bytes = b""
    #: the decoded `body`, encoded by `decoding.encode` before any change
    read: bytes = b""
    #: whether decoding kept all digits of all numbers in `came`
    exact: bool = True
    fallbacks: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    #: limit of the answer in tokens if the caller sets none; sent to the provider
    output_limit: int | None = None
