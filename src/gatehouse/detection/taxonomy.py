"""The taxonomy: the entity types of the built-in patterns and of the recognisers, in order of the alphabet."""

from typing import Final

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.models import ENTITIES

TAXONOMY: Final[tuple[str, ...]] = tuple(sorted({pattern.entity_type for pattern in BUILT_IN} | set(ENTITIES)))
