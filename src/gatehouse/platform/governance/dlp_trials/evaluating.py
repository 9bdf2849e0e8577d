"""Evaluates the organization's policy on a text, with a trace of the decision."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from gatehouse.engine.dlp.decide import Hit
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.calls.dlp_input import owner
from gatehouse.foundation.errors import NotFound
from gatehouse.platform.governance.dlp_trials.examining import Examined, examine
from gatehouse.platform.governance.dlp_trials.schemas import EvaluatedMatch, Evaluation, MatchedRule, NewEvaluation
from gatehouse.platform.governance.dlp_trials.table import group_exists, groups_of
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.policy.dlp.compiled import DLP_ACTION_STRENGTH, CompiledDlpRule, DlpPolicy

#: Maximum number of matches of one rule in the response.
MAX_MATCHES: Final = 20
#: Maximum number of sentences of the trace.
_MAX_TRACE_SENTENCES: Final = 1_000


class TrialOrganizationNotFound(NotFound):
    message = "Organization not found"


class TrialGroupNotFound(NotFound):
    message = "Group not found"


class TrialUserNotFound(NotFound):
    message = "User not found"


async def evaluate(transactions: SplitTransactions, ports: Ports, body: NewEvaluation) -> Evaluation:
    """Evaluate the active policy. Raises `TrialOrganizationNotFound`, `TrialGroupNotFound`, `TrialUserNotFound`."""
    if body.org_id not in (None, transactions.tenant_id):
        raise TrialOrganizationNotFound
    groups = await _groups(transactions, body)
    policy = (await ports.policies.current(transactions.tenant_id)).dlp
    trace = _trace_start(policy, body, groups)
    examined = await examine(policy, ports, body.text, groups, trace, owner=owner(transactions.caller))
    matched = _matched(examined.decision.hits)
    return Evaluation(
        text_length=len(body.text),
        org_id=transactions.tenant_id,
        rules_evaluated=len(_rules(policy)),
        rules_matched=len({rule.rule_id for rule in matched}),
        final_action=examined.effect,
        matched_rules=matched,
        suppressed_rule_ids=sorted(policy.suppressed),
        custom_org_patterns=list(policy.custom_patterns),
        decision_trace=[*_truncated(trace), _conclusion(examined)],
    )


async def _groups(transactions: SplitTransactions, body: NewEvaluation) -> tuple[UUID, ...]:
    if body.group_id is None and body.user_id is None:
        return ()
    groups: dict[UUID, None] = {}
    async with transactions.reading() as session:
        if body.user_id is not None:
            memberships = await groups_of(session, body.user_id)
            if memberships is None:
                raise TrialUserNotFound
            groups.update(dict.fromkeys(memberships))
        if body.group_id is not None:
            if not await group_exists(session, body.group_id):
                raise TrialGroupNotFound
            groups[body.group_id] = None
    return tuple(groups)


def _trace_start(policy: DlpPolicy, body: NewEvaluation, groups: Sequence[UUID]) -> list[str]:
    if not policy.enabled:
        return []
    trace = [f"{len(body.text)} code points, {len(_rules(policy))} active rules"]
    for pattern_id in sorted(policy.suppressed):
        kept = ", but a compliance bundle keeps it active" if pattern_id in policy.patterns else ""
        trace.append(f"{pattern_id}: suppressed{kept}")
    for group in groups:
        overrides = policy.overrides.get(group, {})
        actions = ", ".join(f"{entity}: {action}" for entity, action in sorted(overrides.items()))
        trace.append(f"group {group}: {actions or 'no overrides'}")
    return trace


def _rules(policy: DlpPolicy) -> set[str]:
    """Return the ids of all active rules."""
    tiers = (policy.patterns, policy.entities, policy.labels)
    return {rule.id for tier in tiers for rules in tier.values() for rule in rules}


def _matched(hits: Sequence[Hit]) -> list[MatchedRule]:
    """Return one entry for each rule, the strongest action first."""
    hits_by_rule: dict[str, list[Hit]] = {}
    for hit in hits:
        hits_by_rule.setdefault(hit.rule.id, []).append(hit)
    matched = [_matched_rule(rule_hits[0].rule, rule_hits) for rule_hits in hits_by_rule.values()]
    return sorted(matched, key=lambda rule: -DLP_ACTION_STRENGTH[rule.action_tier])


def _matched_rule(rule: CompiledDlpRule, hits: Sequence[Hit]) -> MatchedRule:
    return MatchedRule(
        rule_id=rule.id,
        rule_name=rule.name,
        detector_type=rule.detector_type,
        entity_type=rule.entity_type,
        action_tier=rule.action,
        match_count=len(hits),
        matches=[
            EvaluatedMatch(start=hit.finding.start, end=hit.finding.end, score=round(hit.finding.score, 4))
            for hit in hits[:MAX_MATCHES]
        ],
        source="platform" if rule.source == "platform" else "organization",
    )


def _truncated(trace: list[str]) -> list[str]:
    if len(trace) <= _MAX_TRACE_SENTENCES:
        return trace
    return [*trace[:_MAX_TRACE_SENTENCES], f"and {len(trace) - _MAX_TRACE_SENTENCES} more"]


def _conclusion(examined: Examined) -> str:
    decisive = examined.decision.decisive
    if decisive is not None and decisive.effect == examined.effect:
        return f"final action: {examined.effect}, decided by {decisive.rule.name}"
    return f"final action: {examined.effect}" + ("" if examined.failures else ", nothing matched")
