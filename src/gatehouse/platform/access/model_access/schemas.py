"""Request and response bodies of the model access endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.policy.model_access import AccessType

#: At most 63 characters for the provider's name, a slash, and at most 255 characters for the model's id.
ModelName = Annotated[str, Field(min_length=1, max_length=319, examples=["openai/gpt-4o-mini"])]


class NewRule(Body):
    model_id: Annotated[ModelName, Field(description="`provider/model-id` of an entry of the catalog.")]
    access_type: Annotated[AccessType, Field(examples=["DENY"])]


class ModelAccessRule(ResponseBody):
    id: UUID
    group_id: UUID
    model_id: str
    access_type: AccessType
    created_at: datetime


class ModelRules(ResponseBody):
    """A model with the rules of the requested groups."""

    model_id: Annotated[str, Field(examples=["openai/gpt-4o-mini"])]
    display_name: str | None
    access: Annotated[
        Literal["open", "restricted"] | None,
        Field(description="Null: the catalog lacks the model, and only rules name it."),
    ]
    rules: Annotated[list[ModelAccessRule], Field(description="The rules of the groups in `group_id`.")]
