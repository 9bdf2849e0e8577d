"""What usage records are counted by, and the counts as the drain copies them."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Final, NamedTuple

from gatehouse.platform.records import copying

COLUMNS: Final = "tenant_id, day, user_id, group_id, provider, model_id, records"


class Kind(NamedTuple):
    """`day` is that of the record's timestamp (UTC)."""

    tenant_id: str
    day: date
    user_id: str | None
    group_id: str | None
    provider: str | None
    model_id: str | None


def lines(counts: Mapping[Kind, int]) -> Iterator[str]:
    for (tenant_id, day, user_id, group_id, provider, model_id), records in counts.items():
        yield "\t".join((
            tenant_id,
            str(day),
            copying.known(user_id),
            copying.known(group_id),
            copying.known_text(provider),
            copying.known_text(model_id),
            repr(records),
        ))  # fmt: skip
