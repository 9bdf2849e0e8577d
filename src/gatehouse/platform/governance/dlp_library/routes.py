"""Endpoints of the pattern library and the taxonomy."""

from fastapi import APIRouter

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.models import ENTITIES
from gatehouse.detection.pattern import CATEGORIES, Category, Pattern
from gatehouse.platform.governance.dlp_library.schemas import (
    AvailablePatterns,
    EntityTypes,
    EntityTypeShown,
    LibraryPattern,
)
from gatehouse.platform.request.callers import RESPONSES, AdminReader

router = APIRouter(prefix="/api/admin/dlp-rules", tags=["DLP"], responses=RESPONSES)


@router.get("/available-patterns", response_model=AvailablePatterns)
async def list_available_patterns(caller: AdminReader, category: Category | None = None) -> AvailablePatterns:
    """Lists the built-in patterns by category. A pattern is active unless it is suppressed or replaced by a rule."""
    names = CATEGORIES if category is None else (category,)
    categories = {
        name: [_library_pattern(pattern) for pattern in BUILT_IN if pattern.category == name] for name in names
    }
    return AvailablePatterns(total_patterns=sum(map(len, categories.values())), categories=categories)


@router.get("/entity-types", response_model=EntityTypes)
async def list_entity_types(caller: AdminReader) -> EntityTypes:
    """Lists the entity types that the built-in patterns and the recognisers detect. Group overrides and compliance
    bundles refer to these names."""
    patterns_by_type: dict[str, list[Pattern]] = {}
    for pattern in BUILT_IN:
        patterns_by_type.setdefault(pattern.entity_type, []).append(pattern)
    names = sorted({*patterns_by_type, *ENTITIES})
    return EntityTypes(
        total=len(names), entity_types=[_entity_type(name, patterns_by_type.get(name, [])) for name in names]
    )


def _entity_type(name: str, patterns: list[Pattern]) -> EntityTypeShown:
    return EntityTypeShown(
        entity_type=name,
        category=patterns[0].category if patterns else "pii",
        detectors=[*(["regex"] if patterns else []), *(["ner"] if name in ENTITIES else [])],
        patterns=[pattern.id for pattern in patterns],
    )


def _library_pattern(pattern: Pattern) -> LibraryPattern:
    return LibraryPattern(
        id=pattern.id,
        name=pattern.name,
        entity_type=pattern.entity_type,
        confidence_threshold=pattern.threshold,
        action_tier=pattern.action,
        category=pattern.category,
    )
