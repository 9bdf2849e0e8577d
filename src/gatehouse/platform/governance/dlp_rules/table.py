"""Rows and queries of DLP rules and their versions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.detection.custom import stream_max_length
from gatehouse.foundation.http.lists import containing, sorted_by
from gatehouse.foundation.storage.rows import TenantRow


class DlpRuleRow(TenantRow):
    __tablename__ = "dlp_rules"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    detector_name: Mapped[str]
    detector_type: Mapped[str]
    entity_type: Mapped[str]
    action_tier: Mapped[str]
    enabled: Mapped[bool]
    confidence_threshold: Mapped[float]
    config_json: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    @property
    def stream_max_length(self) -> int | None:
        pattern = self.config_json.get("pattern") if self.detector_type == "regex" else None
        return None if pattern is None else stream_max_length(pattern)


class DlpRuleVersionRow(TenantRow):
    """A version of a rule. `old_values` is SQL NULL if the rule was created, `new_values` if it was deleted."""

    __tablename__ = "dlp_rule_versions"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    rule_id: Mapped[UUID]
    changed_by: Mapped[str | None]
    change_type: Mapped[str]
    old_values: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    new_values: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    changed_at: Mapped[datetime]


def list_query(*, search: str | None, enabled: bool | None, detector_type: str | None, sort: str) -> Select[DlpRuleRow]:
    """Return the query of rules by part of the name or the entity type, state and detector."""
    query = containing(select(DlpRuleRow), search, DlpRuleRow.detector_name, DlpRuleRow.entity_type)
    if enabled is not None:
        query = query.where(DlpRuleRow.enabled == enabled)
    if detector_type is not None:
        query = query.where(DlpRuleRow.detector_type == detector_type)
    columns = {
        name: getattr(DlpRuleRow, name)
        for name in ("detector_name", "detector_type", "entity_type", "action_tier", "created_at", "updated_at")
    }
    return sorted_by(query, sort, columns, unique=DlpRuleRow.id)


async def all_rules(session: AsyncSession, *, lock: bool = False) -> Sequence[DlpRuleRow]:
    """Return the tenant's rules, oldest first. `lock` locks the rows until the transaction ends."""
    query = select(DlpRuleRow).order_by(DlpRuleRow.created_at, DlpRuleRow.id)
    return (await session.scalars(query.with_for_update() if lock else query)).all()


async def count_rules(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(DlpRuleRow))).scalar_one()


def versions_of(rule_id: UUID) -> Select[DlpRuleVersionRow]:
    """Return the query of the versions of a rule, newest first, even if the rule is removed."""
    query = select(DlpRuleVersionRow).where(DlpRuleVersionRow.rule_id == rule_id)
    return query.order_by(DlpRuleVersionRow.changed_at.desc(), DlpRuleVersionRow.id.desc())
