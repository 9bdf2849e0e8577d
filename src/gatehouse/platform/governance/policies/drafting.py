"""Validates and compiles drafts of policy rules as if they were active."""

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import msgspec

from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.platform.governance.policies.schemas import NewPolicy, PolicyDraft
from gatehouse.platform.governance.policies.service import (
    BadField,
    check_action,
    check_condition,
    check_target,
    is_terminal,
)
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.platform.routing.model_catalog.table import catalog_keys
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord
from gatehouse.policy.rules.evaluation import RuleSet, compile_rules


async def compile_draft(transactions: SplitTransactions, draft: PolicyDraft, records: GovernanceRecords) -> RuleSet:
    """Compile a draft. Raises `Unprocessable` with the names of the fields. The draft is compiled as if the
    configuration `governance_enabled` were true."""
    drafted = [(f"rules.{index}", rule) for index, rule in enumerate(draft.rules or ())]
    if draft.add_rule is not None:
        drafted.append(("add_rule", draft.add_rule))
    async with transactions.reading() as session:
        targets = {target for _, rule in drafted if (target := _target(rule)) is not None}
        known_targets = await catalog_keys(session, list(targets))
    faults = await asyncio.to_thread(_faults, drafted, known_targets)
    if faults:
        raise Unprocessable(faults=faults)
    rules = records.policy_rules if draft.rules is None else ()
    rules += tuple(_record(rule) for _, rule in drafted if rule.enabled)
    # The sort is stable. Among equal priorities the oldest rule comes first, so the draft's rules come last.
    ordered = tuple(sorted(rules, key=lambda rule: rule.priority))
    in_force = msgspec.structs.replace(records, policy_rules=ordered, governance_enabled=True)
    rule_set, _ = await asyncio.to_thread(compile_rules, in_force)
    return rule_set


def _target(rule: NewPolicy) -> tuple[str, str] | None:
    """Return provider and model id of `route_to`."""
    if rule.route_to is None:
        return None
    provider, _, model_id = rule.route_to.partition("/")
    return provider, model_id


def _faults(drafted: Sequence[tuple[str, NewPolicy]], known_targets: set[tuple[str, str]]) -> list[FieldFault]:
    """Return the faults of `drafted`, which are pairs of field path and rule."""
    faults: list[FieldFault] = []
    for path, rule in drafted:
        try:
            check_condition(rule.condition)
            check_action(rule.action, rule.condition)
            check_target(rule.action, rule.route_to, is_known=_target(rule) in known_targets)
        except BadField as error:
            faults += [FieldFault(f"{path}.{fault.field}", fault.message) for fault in error.faults]
    return faults


def _record(rule: NewPolicy) -> PolicyRuleRecord:
    return PolicyRuleRecord(
        id=uuid4(),
        name=rule.name,
        priority=rule.priority,
        condition=rule.condition,
        action=rule.action,
        route_to=rule.route_to,
        terminal=is_terminal(rule),
        message=rule.message,
    )
