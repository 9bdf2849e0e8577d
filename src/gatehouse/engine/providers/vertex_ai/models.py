"""Vertex AI's lists of models, by publisher."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.providers.kind import ProviderModel
from gatehouse.engine.providers.wires import fetch
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderRecord

#: Maximum number of pages of a publisher's list.
MAX_PAGES: Final = 10
_MODELS_A_PAGE: Final = 200

#: Beginnings of the names of models that can be called. The lists also contain models for other purposes.
_CALLABLE_NAMES: Final = {"google": ("gemini", "text-embedding", "multilingual-embedding"), "anthropic": ("claude",)}
#: Statuses of the answer if the project may not read a publisher's list.
_NOT_LISTED: Final = frozenset({400, 403, 404})


class _Model(msgspec.Struct):
    name: str


class _PublisherModels(msgspec.Struct, rename="camel"):
    publisher_models: list[_Model] = []
    next_page_token: str = ""


async def list_publisher_models(
    outbound: Outbound,
    base: str,
    record: ProviderRecord,
    failure: Callable[[int, Mapping[str, str], bytes, Iterable[str]], ProviderFailed],
) -> list[ProviderModel]:
    """Return the models that can be called. Raises `ProviderFailed` if Google's list fails."""
    callable_models: list[ProviderModel] = []
    for publisher, names in _CALLABLE_NAMES.items():
        try:
            listed = await _list(outbound, f"{base}/v1beta1/publishers/{publisher}/models", record, failure)
        except ProviderFailed as failed:
            if publisher == "google" or failed.status not in _NOT_LISTED:
                raise
            continue
        ids = (model.name.rpartition("/")[2] for model in listed)
        callable_models += [
            ProviderModel(model_id=model_id, supports_streaming=None if "embedding" in model_id else True)
            for model_id in ids
            if model_id.startswith(names) or (publisher == "google" and "embedding" in model_id)
        ]
    return callable_models


async def _list(
    outbound: Outbound,
    url: str,
    record: ProviderRecord,
    failure: Callable[[int, Mapping[str, str], bytes, Iterable[str]], ProviderFailed],
) -> list[_Model]:
    models: list[_Model] = []
    token = ""
    for _ in range(MAX_PAGES):
        query = f"?pageSize={_MODELS_A_PAGE}" + (f"&pageToken={quote(token, safe='')}" if token else "")
        page = await fetch(outbound, url + query, {}, record, _PublisherModels, failure=failure)
        models += page.publisher_models
        token = page.next_page_token
        if not token:
            break
    return models
