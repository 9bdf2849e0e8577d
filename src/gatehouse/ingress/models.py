"""Answers `GET /v1/models` with the models and aliases that the caller may use, in the format of the caller's client.

Requests with the header `anthropic-version` receive the format of Anthropic, whose list has pages. All others receive
the format of OpenAI, whose list has a single page. With the parameter `search`, the page has the first matching models.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.exchange import Answer, CheckedCaller, Received
from gatehouse.engine.run import Engine
from gatehouse.engine.stages.candidates.route import ModelNotFound
from gatehouse.engine.usable_models import usable_aliases, usable_models
from gatehouse.foundation.http.envelopes import ANTHROPIC, GATEWAY, ErrorFormat
from gatehouse.policy.catalog import ModelRecord

#: maximum of `limit`, and its default
MAX_PAGE_MODELS: Final = 1000
MAX_SEARCH_CHARACTERS: Final = 255


class Model(msgspec.Struct):
    id: str
    created: int
    owned_by: str
    object: str = "model"


class ModelList(msgspec.Struct):
    data: list[Model]
    object: str = "list"


class AnthropicModel(msgspec.Struct):
    id: str
    display_name: str
    created_at: str
    max_input_tokens: int | None
    max_tokens: int | None
    lifecycle: str = "active"
    type: str = "model"


class AnthropicModels(msgspec.Struct):
    data: list[AnthropicModel]
    first_id: str | None
    last_id: str | None
    has_more: bool = False


def for_anthropic(x: Received) -> bool:
    return "anthropic-version" in x.headers


def error_format(x: Received) -> ErrorFormat:
    return ANTHROPIC if for_anthropic(x) else GATEWAY


async def model_list(engine: Engine, x: CheckedCaller, name: str) -> Answer:
    """Return the list of models, or only the model `name` if it is not empty. Raises `ModelNotFound`."""
    usable = {alias.model_id: alias for alias in usable_aliases(x.identified, engine.ports)}
    models = usable_models(x.identified, engine.ports)
    usable |= {f"{model.provider}/{model.model_id}": model for model in models}
    anthropic = for_anthropic(x.identified.received)
    if name:
        if name not in usable:
            raise ModelNotFound.named(name)
        return _answer(_for_anthropic(name, usable[name]) if anthropic else _for_openai(name, usable[name]), x)
    parameters = dict(parse_qsl(x.identified.received.query, keep_blank_values=True))
    if anthropic:
        return _answer(_anthropic_page(usable, parameters), x)
    if "search" not in parameters:
        return _answer(_openai_list(usable), x)
    names = _matching(usable, parameters["search"])
    matching = {name: usable[name] for name in names[: _limit(parameters.get("limit"))]}
    return _answer(_openai_list(matching), x, {"x-total-count": str(len(names))})


def _openai_list(models: Mapping[str, ModelRecord]) -> ModelList:
    return ModelList(data=[_for_openai(name, model) for name, model in models.items()])


def _matching(usable: Mapping[str, ModelRecord], search: str) -> list[str]:
    """Return the sorted names that contain the text, or whose display names do. Raises `InvalidField`."""
    if len(search) > MAX_SEARCH_CHARACTERS:
        raise InvalidField("search", f"`search` must have at most {MAX_SEARCH_CHARACTERS} characters.")
    part = search.casefold()
    return sorted(
        name
        for name, model in usable.items()
        if part in name.casefold() or part in (model.display_name or "").casefold()
    )


def _anthropic_page(usable: Mapping[str, ModelRecord], parameters: Mapping[str, str]) -> AnthropicModels:
    """Return one page. Raises `InvalidField`."""
    limit = _limit(parameters.get("limit"))
    names = list(usable)
    after, before = _position(names, parameters, "after_id"), _position(names, parameters, "before_id")
    if after is not None and before is not None:
        raise InvalidField("before_id", "`before_id` cannot be combined with `after_id`.")
    if before is not None:
        start, end = max(before - limit, 0), before
        has_more = start > 0
    else:
        start = 0 if after is None else after + 1
        end = start + limit
        has_more = end < len(names)
    models = [_for_anthropic(name, usable[name]) for name in names[start:end]]
    return AnthropicModels(
        data=models,
        first_id=models[0].id if models else None,
        last_id=models[-1].id if models else None,
        has_more=has_more,
    )


def _limit(value: str | None) -> int:
    if value is None:
        return MAX_PAGE_MODELS
    if not (value.isascii() and value.isdecimal()) or len(value) > 4 or not 1 <= int(value) <= MAX_PAGE_MODELS:
        raise InvalidField("limit", f"`limit` must be a whole number from 1 to {MAX_PAGE_MODELS}.")
    return int(value)


def _position(names: Sequence[str], parameters: Mapping[str, str], field: str) -> int | None:
    name = parameters.get(field)
    if name is None:
        return None
    if name not in names:
        raise InvalidField(field, f"`{field}` is not the id of a model that you may use.")
    return names.index(name)


def _for_openai(name: str, model: ModelRecord) -> Model:
    return Model(id=name, created=int(model.created_at), owned_by=model.provider)


def _for_anthropic(name: str, model: ModelRecord) -> AnthropicModel:
    return AnthropicModel(
        id=name,
        display_name=model.display_name or model.model_id,
        created_at=f"{datetime.fromtimestamp(int(model.created_at), UTC):%Y-%m-%dT%H:%M:%SZ}",
        max_input_tokens=model.context_window,
        max_tokens=model.max_output_tokens,
    )


def _answer(content: msgspec.Struct, x: CheckedCaller, extra_headers: Mapping[str, str] | None = None) -> Answer:
    headers = {"content-type": "application/json", **(extra_headers or {})}
    if x.rate is not None:
        headers.update(x.rate.headers())
    return Answer(status=200, headers=headers, body=msgspec.json.encode(content))
