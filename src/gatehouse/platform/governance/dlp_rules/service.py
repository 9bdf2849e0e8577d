"""Creates, changes, deletes, checks and exports DLP rules."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.detection.entities.offered import Recognisers
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.http.lists import OptionalWindow, count_query
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance import checked_patterns
from gatehouse.platform.governance.dlp_fields import MAX_RULES
from gatehouse.platform.governance.dlp_rules import config
from gatehouse.platform.governance.dlp_rules.schemas import DlpRulesExport, DlpRuleUpdate, ExportedRule, NewDlpRule
from gatehouse.platform.governance.dlp_rules.table import (
    DlpRuleRow,
    DlpRuleVersionRow,
    all_rules,
    count_rules,
    versions_of,
)

#: Version of the export's format.
EXPORT_VERSION = "1.0"


class DlpRuleNotFound(NotFound):
    message = "DLP rule not found"


class TooManyRules(Conflict):
    code = "too_many_rules"
    message = "The organization has the maximum number of DLP rules. Remove some first."


class DuplicateName(Conflict):
    """A file that is imported in `skip` mode contains two rules of the same name, so that it is ambiguous which one
    counts."""

    code = "name_conflict"

    def __init__(self, name: str) -> None:
        super().__init__(f"rules: {name!r} occurs twice in the import.")


async def create(change: Change, new: NewDlpRule, recognisers: Recognisers) -> DlpRuleRow:
    """Add a rule. Raises `TooManyRules`, or `Unprocessable` if the configuration is invalid."""
    await check(new, recognisers)
    await require_room(change.session, ScopedLock.DLP_RULES, count_rules, limit=MAX_RULES, full=TooManyRules)
    row = add_row(change, new)
    change.record("dlp_rule.created", "dlp_rule", row.id, **_audit_details(row))
    touch_policy(change)
    return row


async def update(change: Change, row: DlpRuleRow, body: DlpRuleUpdate, recognisers: Recognisers) -> DlpRuleRow:
    """Change a rule. The merged rule is validated as a whole, because a configuration is valid for one detector type
    only. Raises `Unprocessable`."""
    changes = body.sent()
    await check(NewDlpRule.model_construct(**{**values(row), **changes}), recognisers)
    change_row(change, row, changes)
    change.record("dlp_rule.updated", "dlp_rule", row.id, **_audit_details(row), changed=sorted(changes))
    touch_policy(change)
    return row


async def delete(change: Change, row: DlpRuleRow) -> None:
    _add_version(change, row.id, "delete", values(row), None)
    await change.session.delete(row)
    change.record("dlp_rule.deleted", "dlp_rule", row.id, **_audit_details(row))
    touch_policy(change)


async def versions(
    session: AsyncSession, rule_id: UUID, window: OptionalWindow
) -> tuple[Sequence[DlpRuleVersionRow], int]:
    """Return a page of the versions of a rule, even if the rule is removed, and the number of all its versions. Raises
    `DlpRuleNotFound` if there are none."""
    query = versions_of(rule_id)
    total = (await session.execute(count_query(query))).scalar_one()
    if total == 0:
        raise DlpRuleNotFound
    return (await session.scalars(window.apply(query))).all(), total


async def export(session: AsyncSession) -> DlpRulesExport:
    rules = [ExportedRule.model_validate(row) for row in await all_rules(session)]
    tenant_id = session.info["tenant_id"]
    return DlpRulesExport(version=EXPORT_VERSION, exported_at=utc_now(), tenant_id=tenant_id, rules=rules)


async def check(rule: NewDlpRule, recognisers: Recognisers) -> None:
    """Validate a rule. Its pattern is compiled in a thread. Raises `Unprocessable` with the name of the field."""
    if (pattern := pattern_of(rule, recognisers)) is not None:
        await checked_patterns.require_valid("config_json.pattern", pattern)


def pattern_of(rule: NewDlpRule, recognisers: Recognisers) -> str | None:
    """Return the rule's own pattern, not compiled, or None. Raises `Unprocessable` if the configuration is invalid."""
    rule_config = config.read(rule, recognisers)
    return rule_config.pattern if isinstance(rule_config, config.RegexConfig) else None


def add_row(change: Change, new: NewDlpRule) -> DlpRuleRow:
    """Add a row and its first version, without an audit event."""
    now = utc_now()
    row = DlpRuleRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **new.model_dump())
    change.session.add(row)
    _add_version(change, row.id, "create", None, values(row))
    return row


def change_row(change: Change, row: DlpRuleRow, changes: dict[str, Any]) -> None:
    """Change a row and add a version, without an audit event."""
    before = values(row)
    row.assign(changes)
    _add_version(change, row.id, "update", before, values(row))


def touch_policy(change: Change) -> None:
    """Request a recompilation of the policy. The response waits until the new policy is active."""
    change.touch("policy", change.tenant_id, urgent=True)


def values(row: DlpRuleRow) -> dict[str, Any]:
    """Return a rule's fields without its id, as in exports and versions."""
    return {name: getattr(row, name) for name in ExportedRule.model_fields}


def _add_version(
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


def _audit_details(row: DlpRuleRow) -> dict[str, Any]:
    """Return the fields for the audit event. `config_json` is left out, because a pattern may contain the text that it
    matches. The versions of the rule contain it."""
    return {name: value for name, value in values(row).items() if name != "config_json"}
