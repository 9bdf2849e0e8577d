"""The entity types of the built-in patterns and of the recognizers, in alphabetical order."""

from typing import Final

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.models import ENTITIES

#: Syntax of an entity type. The built-in ones are lower-case snake case.
ENTITY_TYPE_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_-]{0,62}$"

TAXONOMY: Final[tuple[str, ...]] = tuple(sorted({pattern.entity_type for pattern in BUILT_IN} | set(ENTITIES)))
