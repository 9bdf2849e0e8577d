"""The library's endpoints (reference 3, Endpoints, DLP rules: available-patterns; decisions of the contract: DLP)."""

from fastapi import APIRouter

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.models import ENTITIES
from gatehouse.detection.pattern import CATEGORIES, Category, Pattern
from gatehouse.platform.callers import RESPONSES, AdminReader
from gatehouse.platform.governance.dlp_library.schemas import (
    AvailablePatterns,
    EntityTypes,
    EntityTypeShown,
    LibraryPattern,
)

router = APIRouter(prefix="/api/admin/dlp-rules", tags=["DLP"], responses=RESPONSES)


@router.get("/available-patterns", response_model=AvailablePatterns)
async def list_available_patterns(caller: AdminReader, category: Category | None = None) -> AvailablePatterns:
    """The built-in patterns by category: in force for everybody, unless suppressed or replaced by a rule."""
    wanted = CATEGORIES if category is None else (category,)
    shown = {name: [_shown(pattern) for pattern in BUILT_IN if pattern.category == name] for name in wanted}
    return AvailablePatterns(total_patterns=sum(map(len, shown.values())), categories=shown)


@router.get("/entity-types", response_model=EntityTypes)
async def list_entity_types(caller: AdminReader) -> EntityTypes:
    """The taxonomy: what the built-in patterns and the recognisers find. Group overrides and compliance bundles name
    these."""
    by_pattern: dict[str, list[Pattern]] = {}
    for pattern in BUILT_IN:
        by_pattern.setdefault(pattern.entity_type, []).append(pattern)
    names = sorted({*by_pattern, *ENTITIES})
    return EntityTypes(total=len(names), entity_types=[_type(name, by_pattern.get(name, [])) for name in names])


def _type(name: str, patterns: list[Pattern]) -> EntityTypeShown:
    return EntityTypeShown(
        entity_type=name,
        category=patterns[0].category if patterns else "pii",
        detectors=[*(["regex"] if patterns else []), *(["ner"] if name in ENTITIES else [])],
        patterns=[pattern.id for pattern in patterns],
    )


def _shown(pattern: Pattern) -> LibraryPattern:
    return LibraryPattern(
        id=pattern.id,
        name=pattern.name,
        entity_type=pattern.entity_type,
        confidence_threshold=pattern.threshold,
        action_tier=pattern.action,
        category=pattern.category,
    )
