"""The taxonomy: the entity types of the built-in patterns and of the recognisers, in order of the alphabet."""

from typing import Final

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.models import ENTITIES

#: What an entity type may look like. The taxonomy writes them in lower-case snake case; an organization's own may look
#: otherwise.
ENTITY_TYPE_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_-]{0,62}$"

TAXONOMY: Final[tuple[str, ...]] = tuple(sorted({pattern.entity_type for pattern in BUILT_IN} | set(ENTITIES)))
