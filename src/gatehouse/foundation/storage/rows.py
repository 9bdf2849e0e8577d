"""What every table has in common. A family's `table.py` declares its rows on `Row`."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, MetaData, Numeric, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from gatehouse.foundation.identity import TenantId

#: Counts that outgrow 32 bits.
Big = Annotated[int, mapped_column(BigInteger)]


class Row(DeclarativeBase):
    """Text is unbounded in the database (limits are the schemas'), moments are in UTC, objects are JSONB."""

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


class TenantRow(Row):
    """A row that belongs to a tenant: PostgreSQL's row-level security asks for it too."""

    __abstract__ = True

    tenant_id: Mapped[TenantId] = mapped_column(index=False)
