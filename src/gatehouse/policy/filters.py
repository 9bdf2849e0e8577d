"""Compiles content filters. They are evaluated in order (docs/content-filters.md)."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from uuid import UUID

import msgspec

from gatehouse.detection.keywords import Keywords
from gatehouse.policy.governance import FilterRecord, FilterType


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """A content filter. Its type determines which of `keywords`, `topics` and `instruction` is set. If `group_id` is
    None, the filter applies to all members. A topic counts if its score is at least `threshold`."""

    id: str
    name: str
    filter_type: FilterType
    group_id: UUID | None = None
    keywords: Keywords | None = None
    topics: tuple[str, ...] = ()
    threshold: float = 0.5
    instruction: str | None = None


class FilterSet(msgspec.Struct, frozen=True, kw_only=True):
    """All content filters of an organization. `keywords` has the keywords of all filters, for a first search in one
    pass, because most texts contain none of them."""

    filters: tuple[Filter, ...] = ()
    keywords: Keywords | None = None

    def of(self, groups: Collection[UUID]) -> tuple[Filter, ...]:
        """Return the filters that apply to a member of these groups, in order."""
        return tuple(
            content_filter
            for content_filter in self.filters
            if content_filter.group_id is None or content_filter.group_id in groups
        )


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


#: Compiled keyword lists are cached, because every change of a policy compiles its filters again, mostly with unchanged
#: keywords.
_keywords = lru_cache(maxsize=2_000)(Keywords)
