"""Bodies of the pattern library's endpoints."""

from typing import Annotated, Literal

from pydantic import Field

from gatehouse.detection.pattern import ActionTier, Category
from gatehouse.foundation.http.bodies import ResponseBody


class LibraryPattern(ResponseBody):
    id: Annotated[str, Field(description="The id that a suppression refers to.")]
    name: str
    entity_type: str
    confidence_threshold: float
    action_tier: ActionTier
    category: Category


class AvailablePatterns(ResponseBody):
    total_patterns: int
    categories: dict[str, list[LibraryPattern]]


class EntityTypeShown(ResponseBody):
    entity_type: Annotated[str, Field(examples=["credit_card"])]
    category: Category | None
    detectors: Annotated[list[Literal["regex", "ner"]], Field(description="Detectors of this entity type.")]
    patterns: Annotated[list[str], Field(description="Ids of the built-in patterns that detect it.")]


class EntityTypes(ResponseBody):
    total: int
    entity_types: list[EntityTypeShown]
