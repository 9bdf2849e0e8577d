"""Bodies of the registry's endpoints: the union of both variants' fields (reference 3, Model registry entry)."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BeforeValidator, Field, WithJsonSchema

from gatehouse.foundation.http.bodies import Body, Shown, unsent
from gatehouse.platform.governance.model_registry.states import FirstStatus, RiskTier, Status
from gatehouse.platform.routing.fields import Line, ModelId

#: As the gateway calls it in `provider/model-id`: no slashes, no spaces.
Provider = Annotated[str, Field(pattern=r"^[^\s/\x00-\x1f\x7f]{1,63}$", examples=["openai"])]
Description = Annotated[str, Field(max_length=2_000)]


def _as_object(tags: object) -> object:
    """A list of tags is an object of keys without values."""
    if not isinstance(tags, list):
        return tags
    if not all(isinstance(tag, str) for tag in tags):
        raise ValueError("must be a list of texts, or an object of texts")
    return dict.fromkeys(tags, "")


_TEXT = {"type": "string", "minLength": 1, "maxLength": 100}
Tags = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=100)], Annotated[str, Field(max_length=255)]],
    Field(max_length=100),
    BeforeValidator(_as_object),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": _TEXT, "maxItems": 100},
                {
                    "type": "object",
                    "additionalProperties": {"type": "string", "maxLength": 255},
                    "propertyNames": {"minLength": 1, "maxLength": 100},
                    "maxProperties": 100,
                },
            ],
            "description": "A list, or an object of key to value; whichever it was, answers show what the variant has.",
            "examples": [["customer-facing"], {"team": "payments"}],
        }
    ),
]


class NewRegisteredModel(Body):
    """`risk_tier` is required in variant B."""

    model_id: ModelId
    provider: Provider
    display_name: Annotated[Line | None, Field(description="Omitted: the model's id.", examples=["GPT-4o mini"])] = None
    risk_tier: Annotated[RiskTier | None, Field(examples=["tier_2"])] = None
    validation_status: FirstStatus = "draft"
    owner: Annotated[Line | None, Field(description="Who is accountable.", examples=["Model risk"])] = None
    description: Description | None = None
    tags: Tags = Field(default_factory=dict)


class RegisteredModelUpdate(Body):
    """Partial: what is left out stays. `tags` are replaced whole."""

    model_id: Annotated[str, Field(default_factory=unsent, description="Cannot change.")]
    provider: Annotated[str, Field(default_factory=unsent, description="Cannot change.")]
    display_name: Annotated[Line | None, Field(description="Null: the model's id again.", examples=["GPT-4o mini"])] = (
        None
    )
    risk_tier: Annotated[RiskTier, Field(default_factory=unsent)]
    validation_status: Annotated[Status, Field(default_factory=unsent, examples=["pending_validation"])]
    owner: Annotated[Line | None, Field(examples=["Model risk"])] = None
    description: Description | None = None
    tags: Annotated[Tags, Field(default_factory=unsent)]


class RegisteredModel(Shown):
    id: UUID
    model_id: str
    provider: str
    display_name: str
    risk_tier: RiskTier
    validation_status: Status
    owner: str | None
    description: str | None
    tags: Annotated[list[str] | dict[str, str], Field(description="A list in variant A, an object in B.")]
    request_count_30d: Annotated[int, Field(description="Calls that the model answered, today and 29 days before.")]
    first_seen_at: Annotated[datetime | None, Field(description="By discovery; null for what was entered by hand.")]
    last_seen_at: datetime | None
    tenant_id: UUID
    created_at: datetime
    updated_at: datetime


class RegisteredModelsPage(Shown):
    """Variant A."""

    items: list[RegisteredModel]
    total: int
    limit: int
    offset: int


class RegisteredModelsPageB(Shown):
    """Variant B."""

    models: list[RegisteredModel]
    total: int
    limit: int
    offset: int
