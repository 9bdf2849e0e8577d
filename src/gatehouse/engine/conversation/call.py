"""A model call as the pipeline sees it: what the client asked, decoded once, unknown fields kept."""

from collections.abc import Mapping
from typing import Any

import msgspec


class ModelCall(msgspec.Struct, kw_only=True):
    """`body` is the decoded request without gateway-only fields (`fallbacks`). `raw` is the same as bytes where the
    client's own may still be used unchanged, else None. `model` is as requested: `provider/model-id`, a bare id or
    `auto`. `headers` are those of the client that a provider of the same dialect should see."""

    dialect: str
    model: str
    stream: bool
    body: dict[str, Any]
    fallbacks: tuple[str, ...] = ()
    raw: bytes | None = None
    headers: Mapping[str, str] = {}
