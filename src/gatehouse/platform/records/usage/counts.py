"""What usage records are counted by, and the counts as the drain inserts them."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Final, NamedTuple

from gatehouse.platform.records import arrays

COLUMNS: Final = arrays.Columns(
    "tenant_id uuid, day date, user_id uuid, group_id uuid, provider text, model_id text, records bigint"
)


class Kind(NamedTuple):
    """`day` is that of the record's timestamp (UTC)."""

    tenant_id: str
    day: date
    user_id: str | None
    group_id: str | None
    provider: str | None
    model_id: str | None


def rows(counts: Mapping[Kind, int]) -> Iterator[arrays.Row]:
    for (tenant_id, day, user_id, group_id, provider, model_id), records in counts.items():
        yield (
            arrays.known_text(tenant_id),
            str(day),
            arrays.text(user_id),
            arrays.known_text(group_id),
            arrays.known_text(provider),
            arrays.known_text(model_id),
            repr(records),
        )
