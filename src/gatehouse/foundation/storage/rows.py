"""The base classes of all tables. A family's `table.py` declares its rows on `Row`."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, MetaData, Numeric, Text, Uuid, inspect
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: a 64-bit integer, for counts that exceed 32 bits
Big = Annotated[int, mapped_column(BigInteger)]


class Row(DeclarativeBase):
    """The base class of rows. Text has no limit in the database, because the schemas of bodies have limits. Times are
    in UTC. Objects are JSONB."""

    metadata = MetaData()
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text(),
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB(),
        list[str]: JSONB(),
        Decimal: Numeric(),
        UUID: Uuid(),
        TenantId: Uuid(),
    }

    def differing(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns those values that differ from the values of the row. Keys are column names."""
        return {name: value for name, value in values.items() if getattr(self, name) != value}

    def assign(self, values: Mapping[str, Any]) -> None:
        """Sets these columns, and sets `updated_at` to the current time."""
        for name, value in {**values, "updated_at": utc_now()}.items():
            setattr(self, name, value)

    def entity_tag(self) -> str | None:
        """Returns the version of the row for `ETag`: `updated_at` in microseconds. Returns None for a row without
        `updated_at`, and for a deleted row. A row that was never stored, such as a default, has a version."""
        state = inspect(self)
        updated_at: datetime | None = getattr(self, "updated_at", None)
        if updated_at is None or not (state.persistent or state.transient):
            return None
        return f'"{(updated_at - _EPOCH) // timedelta(microseconds=1):x}"'


class TenantRow(Row):
    """A row of a tenant. PostgreSQL's row-level security also reads `tenant_id`."""

    __abstract__ = True

    tenant_id: Mapped[TenantId] = mapped_column(index=False)
