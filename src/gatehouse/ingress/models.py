"""Answers `GET /v1/models` with the models that the caller may use, in the format of the caller's client.

Requests with the header `anthropic-version` receive the format of Anthropic. All others receive the format of OpenAI.
The list is a single page.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from gatehouse.engine.exchange import Answer, Identified, Received
from gatehouse.engine.run import Engine
from gatehouse.engine.stages.candidates.route import ModelNotFound
from gatehouse.foundation.http.envelopes import ANTHROPIC, GATEWAY, ErrorForm
from gatehouse.policy.records import ModelRecord


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


def error_form(x: Received) -> ErrorForm:
    return ANTHROPIC if for_anthropic(x) else GATEWAY


async def model_list(engine: Engine, x: Identified, name: str) -> Answer:
    """Return the list of models, or only the model `name` if it is not empty. Raises `ModelNotFound`."""
    usable = {f"{model.provider}/{model.model_id}": model for model in await engine.usable_models(x)}
    anthropic = for_anthropic(x.received)
    if name:
        if name not in usable:
            raise ModelNotFound.named(name)
        return _answer(_for_anthropic(name, usable[name]) if anthropic else _for_openai(name, usable[name]), x)
    return _answer(_anthropic_page(usable) if anthropic else _openai_page(usable), x)


def _openai_page(usable: Mapping[str, ModelRecord]) -> ModelList:
    return ModelList(data=[_for_openai(name, model) for name, model in usable.items()])


def _anthropic_page(usable: Mapping[str, ModelRecord]) -> AnthropicModels:
    models = [_for_anthropic(name, model) for name, model in usable.items()]
    return AnthropicModels(
        data=models, first_id=models[0].id if models else None, last_id=models[-1].id if models else None
    )


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


def _answer(content: msgspec.Struct, x: Identified) -> Answer:
    headers = {"content-type": "application/json"}
    if x.rate is not None:
        headers.update(x.rate.headers())
    return Answer(status=200, headers=headers, body=msgspec.json.encode(content))
