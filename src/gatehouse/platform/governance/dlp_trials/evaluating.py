"""What the organization's policy does about a text, and why (reference 3, Endpoints, DLP rules: evaluate)."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from gatehouse.engine.dlp.decide import Hit
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.dlp_input import owner
from gatehouse.platform.governance.dlp_trials.errors import GroupNotFound, OrganizationNotFound, UserNotFound
from gatehouse.platform.governance.dlp_trials.examining import Examined, examine
from gatehouse.platform.governance.dlp_trials.schemas import EvaluatedMatch, Evaluation, MatchedRule, NewEvaluation
from gatehouse.platform.governance.dlp_trials.table import group_exists, groups_of
from gatehouse.platform.requests import Apart
from gatehouse.policy.dlp import STRENGTH, DlpPolicy, Rule

#: Matches of a rule that are shown.
MOST_MATCHES: Final = 20
#: Sentences of the trace.
_LONGEST_TRACE: Final = 1_000


async def evaluate(parts: Apart, ports: Ports, asked: NewEvaluation) -> Evaluation:
    """Raises `OrganizationNotFound`, `GroupNotFound`, `UserNotFound`."""
    if asked.org_id not in (None, parts.tenant_id):
        raise OrganizationNotFound
    groups = await _groups(parts, asked)
    policy = (await ports.policies.current(parts.tenant_id)).dlp
    trace = _preface(policy, asked, groups)
    examined = await examine(policy, ports, asked.text, groups, trace, owner=owner(parts.caller))
    matched = _matched(examined.decision.hits)
    return Evaluation(
        text_length=len(asked.text),
        org_id=parts.tenant_id,
        rules_evaluated=len(_rules(policy)),
        rules_matched=len({rule.rule_id for rule in matched}),
        final_action=examined.effect,
        matched_rules=matched,
        suppressed_rule_ids=sorted(policy.suppressed),
        custom_org_patterns=list(policy.custom_patterns),
        decision_trace=[*_shortened(trace), _conclusion(examined)],
    )


async def _groups(parts: Apart, asked: NewEvaluation) -> tuple[UUID, ...]:
    if asked.group_id is None and asked.user_id is None:
        return ()
    groups: dict[UUID, None] = {}
    async with parts.reading() as session:
        if asked.user_id is not None:
            memberships = await groups_of(session, asked.user_id)
            if memberships is None:
                raise UserNotFound
            groups.update(dict.fromkeys(memberships))
        if asked.group_id is not None:
            if not await group_exists(session, asked.group_id):
                raise GroupNotFound
            groups[asked.group_id] = None
    return tuple(groups)


def _preface(policy: DlpPolicy, asked: NewEvaluation, groups: Sequence[UUID]) -> list[str]:
    if not policy.enabled:
        return []
    trace = [f"{len(asked.text)} code points, {len(_rules(policy))} rules in force"]
    for pattern_id in sorted(policy.suppressed):
        kept = ", but a compliance bundle keeps it in force" if pattern_id in policy.patterns else ""
        trace.append(f"{pattern_id}: suppressed{kept}")
    for group in groups:
        overrides = policy.overrides.get(group, {})
        told = ", ".join(f"{entity}: {action}" for entity, action in sorted(overrides.items()))
        trace.append(f"group {group}: {told or 'no overrides'}")
    return trace


def _rules(policy: DlpPolicy) -> set[str]:
    """Ids of all rules in force."""
    tiers = (policy.patterns, policy.entities, policy.labels)
    return {rule.id for tier in tiers for rules in tier.values() for rule in rules}


def _matched(hits: Sequence[Hit]) -> list[MatchedRule]:
    """One entry a rule, the strongest action first."""
    by_rule: dict[str, list[Hit]] = {}
    for hit in hits:
        by_rule.setdefault(hit.rule.id, []).append(hit)
    matched = [_shown(of_rule[0].rule, of_rule) for of_rule in by_rule.values()]
    return sorted(matched, key=lambda rule: -STRENGTH[rule.action_tier])


def _shown(rule: Rule, hits: Sequence[Hit]) -> MatchedRule:
    return MatchedRule(
        rule_id=rule.id,
        rule_name=rule.name,
        detector_type=rule.detector_type,
        entity_type=rule.entity_type,
        action_tier=rule.action,
        match_count=len(hits),
        matches=[
            EvaluatedMatch(start=hit.finding.start, end=hit.finding.end, score=round(hit.finding.score, 4))
            for hit in hits[:MOST_MATCHES]
        ],
        source="platform" if rule.source == "platform" else "organization",
    )


def _shortened(trace: list[str]) -> list[str]:
    if len(trace) <= _LONGEST_TRACE:
        return trace
    return [*trace[:_LONGEST_TRACE], f"and {len(trace) - _LONGEST_TRACE} more"]


def _conclusion(examined: Examined) -> str:
    decisive = examined.decision.decisive
    if decisive is not None and decisive.effect == examined.effect:
        return f"final action: {examined.effect}, decided by {decisive.rule.name}"
    return f"final action: {examined.effect}" + ("" if examined.failures else ", nothing matched")
