"""Content filters, compiled: in the order in which they are looked at (reference 3, Content filter)."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from uuid import UUID

import msgspec

from gatehouse.detection.keywords import Keywords
from gatehouse.policy.governance import FilterRecord, FilterType


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What of `keywords`, `topics` and `instruction` is there depends on the type. `group_id` None: for everybody. A
    topic counts with a score of at least `threshold`."""

    id: str
    name: str
    filter_type: FilterType
    group_id: UUID | None = None
    keywords: Keywords | None = None
    topics: tuple[str, ...] = ()
    threshold: float = 0.5
    instruction: str | None = None


class FilterSet(msgspec.Struct, frozen=True, kw_only=True):
    """`keywords` are all filters' together: mostly none of them is there, and one pass tells."""

    filters: tuple[Filter, ...] = ()
    keywords: Keywords | None = None

    def of(self, groups: Collection[UUID]) -> tuple[Filter, ...]:
        """Those that hold for a member of these groups, in order."""
        return tuple(each for each in self.filters if each.group_id is None or each.group_id in groups)


def compile_filters(records: Sequence[FilterRecord]) -> FilterSet:
    filters = tuple(map(_filter, records))
    words = tuple(word for record in records for word in record.keywords)
    return FilterSet(filters=filters, keywords=_keywords(words) if words else None)


def _filter(record: FilterRecord) -> Filter:
    return Filter(
        id=str(record.id),
        name=record.name,
        filter_type=record.filter_type,
        group_id=record.group_id,
        keywords=_keywords(record.keywords) if record.keywords else None,
        topics=record.topics,
        threshold=record.threshold,
        instruction=record.instruction,
    )


#: A policy is compiled anew whenever anything of it changes; its word lists are mostly the same as before.
_keywords = lru_cache(maxsize=2_000)(Keywords)
