"""Defines the key by which usage records are counted, and converts counts into rows (`platform.records.arrays`)."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Final, NamedTuple

from gatehouse.platform.records import arrays

COLUMNS: Final = arrays.Columns(
    "tenant_id uuid, day date, user_id uuid, group_id uuid, provider text, model_id text, records bigint"
)


class UsageCountKey(NamedTuple):
    """The key of a count. `day` is the UTC day of the record's timestamp."""

    tenant_id: str
    day: date
    user_id: str | None
    group_id: str | None
    provider: str | None
    model_id: str | None


def rows(counts: Mapping[UsageCountKey, int]) -> Iterator[arrays.Row]:
    for (tenant_id, day, user_id, group_id, provider, model_id), records in counts.items():
        yield (
            arrays.cached_text(tenant_id),
            str(day),
            arrays.text(user_id),
            arrays.cached_text(group_id),
            arrays.cached_text(provider),
            arrays.cached_text(model_id),
            repr(records),
        )
