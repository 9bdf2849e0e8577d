"""Reads suppressions and custom patterns for a tenant's policy."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.governance import DlpRuleRecord

_PATTERNS = text(
    "SELECT id::text AS id, name, entity_type, pattern, action_tier, confidence_threshold, context_words"
    " FROM dlp_custom_patterns WHERE tenant_id = :tenant AND enabled ORDER BY created_at, id"
)
_SUPPRESSED = text("SELECT pattern_id FROM dlp_suppressions WHERE tenant_id = :tenant")


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[DlpRuleRecord, ...]:
    """Return the enabled custom patterns as regex rules."""
    rows = await session.execute(_PATTERNS, {"tenant": tenant_id})
    return tuple(
        DlpRuleRecord(
            id=row.id,
            name=row.name,
            detector_type="regex",
            entity_type=row.entity_type,
            action=row.action_tier,
            threshold=row.confidence_threshold,
            pattern=row.pattern,
            context=tuple(row.context_words),
            custom=True,
        )
        for row in rows
    )


async def suppressions(session: AsyncSession, tenant_id: TenantId) -> frozenset[str]:
    """Return the ids of the suppressed built-in patterns."""
    return frozenset((await session.execute(_SUPPRESSED, {"tenant": tenant_id})).scalars())
