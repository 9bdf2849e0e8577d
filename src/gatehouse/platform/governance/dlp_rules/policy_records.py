"""Reads an organization's DLP rules for its policy."""

from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.detection.entities.choosing import own_name
from gatehouse.foundation.identity import TenantId
from gatehouse.policy.governance import DlpRuleRecord

_QUERY = text(
    "SELECT id::text AS id, detector_name, detector_type, entity_type, action_tier, confidence_threshold, config_json"
    " FROM dlp_rules WHERE tenant_id = :tenant AND enabled ORDER BY created_at, id"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[DlpRuleRecord, ...]:
    rows = await session.execute(_QUERY, {"tenant": tenant_id})
    return tuple(record(row, row.id) for row in rows)


def record(rule: Any, rule_id: str) -> DlpRuleRecord:
    """Return the policy record of a stored row or of a draft rule."""
    config = rule.config_json
    return DlpRuleRecord(
        id=rule_id,
        name=rule.detector_name,
        detector_type=rule.detector_type,
        entity_type=rule.entity_type,
        action=rule.action_tier,
        threshold=rule.confidence_threshold,
        pattern=config.get("pattern"),
        context=tuple(config.get("context") or ()),
        entities=tuple(dict.fromkeys(map(own_name, config.get("entities") or ()))),
        labels=tuple(config.get("labels") or ()),
        label_threshold=config.get("threshold", 0.5),
        reversible=config.get("reversible", False),
    )
