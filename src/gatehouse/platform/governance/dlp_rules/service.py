"""The rules of DLP rules."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.detection.entities.offered import Recognisers
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.change import Change
from gatehouse.platform.governance import checked_patterns
from gatehouse.platform.governance.dlp_fields import MOST
from gatehouse.platform.governance.dlp_rules import config
from gatehouse.platform.governance.dlp_rules.errors import DlpRuleNotFound, TooManyRules
from gatehouse.platform.governance.dlp_rules.schemas import DlpRulesExport, DlpRuleUpdate, ExportedRule, NewDlpRule
from gatehouse.platform.governance.dlp_rules.table import (
    DlpRuleRow,
    DlpRuleVersionRow,
    all_rules,
    count_rules,
    versions_of,
)

#: Of the envelope (reference 1, Versioning).
EXPORT_VERSION = "1.0"


async def create(change: Change, new: NewDlpRule, recognisers: Recognisers) -> DlpRuleRow:
    """Raises `TooManyRules`, and `Unprocessable` where the configuration is not good; then nothing changes."""
    await judge(new, recognisers)
    await require_room(change.session, ScopedLock.DLP_RULES, count_rules, limit=MOST, full=TooManyRules)
    row = added(change, new)
    change.record("dlp_rule.created", "dlp_rule", row.id, **_told(row))
    touch(change)
    return row


async def update(change: Change, row: DlpRuleRow, body: DlpRuleUpdate, recognisers: Recognisers) -> DlpRuleRow:
    """The rule as it would be is judged whole: what was good for one detector need not be for another."""
    sent = body.sent()
    await judge(NewDlpRule.model_construct(**{**values(row), **sent}), recognisers)
    changed(change, row, sent)
    change.record("dlp_rule.updated", "dlp_rule", row.id, **_told(row), changed=sorted(sent))
    touch(change)
    return row


async def delete(change: Change, row: DlpRuleRow) -> None:
    _version(change, row.id, "delete", values(row), None)
    await change.session.delete(row)
    change.record("dlp_rule.deleted", "dlp_rule", row.id, **_told(row))
    touch(change)


async def versions(session: AsyncSession, rule_id: UUID) -> Sequence[DlpRuleVersionRow]:
    """Of a removed rule too: its history is what an auditor asks for. Raises `DlpRuleNotFound`."""
    found = await versions_of(session, rule_id)
    if not found:
        raise DlpRuleNotFound
    return found


async def export(session: AsyncSession) -> DlpRulesExport:
    rules = [ExportedRule.model_validate(row) for row in await all_rules(session)]
    tenant_id = session.info["tenant_id"]
    return DlpRulesExport(version=EXPORT_VERSION, exported_at=utc_now(), tenant_id=tenant_id, rules=rules)


async def judge(rule: NewDlpRule, recognisers: Recognisers) -> None:
    """Compiles aside. Raises `Unprocessable` that names the field."""
    if (pattern := pattern_of(rule, recognisers)) is not None:
        await checked_patterns.refuse_bad("config_json.pattern", pattern)


def pattern_of(rule: NewDlpRule, recognisers: Recognisers) -> str | None:
    """The pattern of its own, to be checked, if it has one. Raises `Unprocessable` where its configuration is wrong."""
    known = config.read(rule, recognisers)
    return known.pattern if isinstance(known, config.RegexConfig) else None


def added(change: Change, new: NewDlpRule) -> DlpRuleRow:
    now = utc_now()
    row = DlpRuleRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **new.model_dump())
    change.session.add(row)
    _version(change, row.id, "create", None, values(row))
    return row


def changed(change: Change, row: DlpRuleRow, sent: dict[str, Any]) -> None:
    before = values(row)
    for name, value in sent.items():
        setattr(row, name, value)
    row.updated_at = utc_now()
    _version(change, row.id, "update", before, values(row))


def touch(change: Change) -> None:
    """The policy is compiled anew. The answer waits for it: what it says is then in force."""
    change.touch("policy", change.tenant_id, urgent=True)


def values(row: DlpRuleRow) -> dict[str, Any]:
    """A rule without its id: as it is exported, and as a version holds it."""
    return {name: getattr(row, name) for name in ExportedRule.model_fields}


def _version(
    change: Change, rule_id: UUID, change_type: str, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> None:
    change.session.add(
        DlpRuleVersionRow(
            id=new_id(),
            tenant_id=change.tenant_id,
            rule_id=rule_id,
            changed_by=change.caller.actor_id if change.caller else None,
            change_type=change_type,
            old_values=old,
            new_values=new,
            changed_at=utc_now(),
        )
    )


def _told(row: DlpRuleRow) -> dict[str, Any]:
    """Without the configuration, which versions hold: patterns may spell out what they look for."""
    return {name: value for name, value in values(row).items() if name != "config_json"}
