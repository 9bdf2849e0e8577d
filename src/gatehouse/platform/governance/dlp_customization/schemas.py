"""Bodies of the endpoints of suppressions and custom patterns."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from gatehouse.detection.pattern import ActionTier, Category
from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted, partial
from gatehouse.platform.governance.dlp_fields import ContextWords, EntityType, Name, Regex, StreamMaxLength, Threshold


class NewSuppression(Body):
    pattern_id: Annotated[
        str, Field(min_length=1, max_length=100, description="Id of a built-in pattern.", examples=["email"])
    ]
    reason: Annotated[str | None, Field(max_length=1_000, examples=["Support answers customers by name."])] = None


class Suppression(ResponseBody):
    id: UUID
    pattern_id: str
    reason: str | None
    created_by: str | None
    created_at: datetime


class NewCustomPattern(Body):
    name: Name
    entity_type: EntityType
    pattern: Regex
    action_tier: Annotated[ActionTier, Field(examples=["redact"])]
    category: Category = "pii"
    confidence_threshold: Threshold = 0.5
    context_words: ContextWords = Field(default_factory=list)
    enabled: bool = True


@partial
class CustomPatternUpdate(NewCustomPattern):
    """A partial update: omitted fields keep their values."""

    action_tier: Annotated[ActionTier, Field(default_factory=omitted, examples=["block"])]


class CustomPattern(ResponseBody):
    id: UUID
    name: str
    entity_type: str
    pattern: str
    action_tier: ActionTier
    category: Category
    confidence_threshold: float
    context_words: list[str]
    enabled: bool
    stream_max_length: StreamMaxLength
    created_at: datetime
    updated_at: datetime
