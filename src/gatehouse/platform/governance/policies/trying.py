"""What rules say about a request that is made up: the same function decides as for real ones."""

from typing import Any, Final

from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.policy_rules import user_of
from gatehouse.foundation.clock import utc_now
from gatehouse.platform.governance.policies.schemas import PolicyTrial, PolicyTried, TrialContext, TrialDlp, TriedRule
from gatehouse.platform.governance.policies.service import check_condition
from gatehouse.platform.requests import Apart
from gatehouse.policy.conditions import EXAMPLES, FUNCTIONS, Failed, compiled, holds
from gatehouse.policy.rules import RuleSet, Said, context_of, decide, matched

_ALL: Final = frozenset(EXAMPLES.keys() | FUNCTIONS.keys())


async def try_out(parts: Apart, ports: Ports, trial: PolicyTrial, client_address: str) -> PolicyTried:
    """Raises `BadField` for a condition that does not compile."""
    rules = (await ports.policies.current(parts.tenant_id)).rules
    variables = _variables(trial.context or TrialContext(), rules, parts, client_address)
    if trial.condition is not None:
        return _alone(trial.condition, variables)
    trace: list[Said] = []
    ruling = decide(rules.rules, context_of(variables, _ALL), variables["model"], trace)
    decisive = ruling.decisive
    return PolicyTried(
        matched=any(map(matched, ruling.said)),
        error=None,
        action=ruling.action,
        rule_id=decisive.id if decisive else None,
        rule_name=decisive.name if decisive else None,
        route_to=decisive.route_to if decisive and ruling.action == "ROUTE" else None,
        rules=[
            TriedRule(
                id=rule.id, name=rule.name, action=rule.action, terminal=rule.terminal, result=result, reason=reason
            )
            for rule, result, reason in trace
        ],
        context=variables,
    )


def _alone(condition: str, variables: dict[str, Any]) -> PolicyTried:
    check_condition(condition)
    holds_, error = False, None
    try:
        holds_ = holds(compiled(condition), context_of(variables, _ALL))
    except Failed as failed:
        error = str(failed)
    return PolicyTried(
        matched=holds_,
        error=error,
        action=None,
        rule_id=None,
        rule_name=None,
        route_to=None,
        rules=[],
        context=variables,
    )


def _variables(given: TrialContext, rules: RuleSet, parts: Apart, client_address: str) -> dict[str, Any]:
    standing = rules.standing(given.model)
    caller = parts.caller
    return {
        "model": given.model,
        "provider": given.model.partition("/")[0] if given.provider is None else given.provider,
        "model_risk_tier": given.model_risk_tier or standing.risk_tier,
        "validation_status": given.validation_status or standing.validation_status,
        "user": given.user.model_dump() if given.user else user_of(caller),
        "groups": [str(group) for group in caller.groups] if given.groups is None else given.groups,
        "dlp": (given.dlp or TrialDlp.model_validate({})).model_dump(),
        "tokens": given.tokens,
        "cost_usd": given.cost_usd,
        "ip": given.ip or client_address,
        "request": given.request.model_dump() if given.request else {"fields": []},
        "time": given.time or utc_now(),
    }
