"""`GET /v1/models`: the models that the caller may use, as OpenAI lists them (decisions 4)."""

import msgspec

from gatehouse.engine.exchange import Answer, Identified
from gatehouse.engine.run import Engine
from gatehouse.engine.stages.route import ModelNotFound
from gatehouse.policy.records import ModelRecord


class Model(msgspec.Struct):
    id: str
    created: int
    owned_by: str
    object: str = "model"


class Models(msgspec.Struct):
    data: list[Model]
    object: str = "list"


async def model_list(engine: Engine, x: Identified, name: str) -> Answer:
    """All of them, or the one that the path names. Raises `ModelNotFound`."""
    usable = [_shown(model) for model in await engine.usable_models(x)]
    if not name:
        return _answer(Models(data=usable), x)
    found = next((model for model in usable if model.id == name), None)
    if found is None:
        raise ModelNotFound.named(name)
    return _answer(found, x)


def _shown(model: ModelRecord) -> Model:
    return Model(id=f"{model.provider}/{model.model_id}", created=int(model.created_at), owned_by=model.provider)


def _answer(shown: Model | Models, x: Identified) -> Answer:
    headers = {"content-type": "application/json"}
    if x.rate is not None:
        headers.update(x.rate.headers())
    return Answer(status=200, headers=headers, body=msgspec.json.encode(shown))
