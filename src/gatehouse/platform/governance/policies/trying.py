"""Evaluates policy rules on a described request, with the function that decides about real requests."""

from typing import Any, Final

from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.candidates.policy_rules import user_of
from gatehouse.foundation.clock import utc_now
from gatehouse.platform.governance.policies.schemas import (
    PolicyTrial,
    PolicyTried,
    TrialContext,
    TrialDlp,
    TrialToolCall,
    TriedRule,
)
from gatehouse.platform.governance.policies.service import BadField, check_condition
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.policy.rules.cel_library import cel
from gatehouse.policy.rules.conditions import (
    EXAMPLES,
    FUNCTIONS,
    TOOL_CALL,
    ConditionFailed,
    compile_condition,
    evaluate,
)
from gatehouse.policy.rules.evaluation import (
    RuleResult,
    RuleSet,
    context_of,
    decide,
    matched,
)

_ALL: Final = frozenset(EXAMPLES.keys() | FUNCTIONS.keys())


async def try_out(
    transactions: SplitTransactions, ports: Ports, trial: PolicyTrial, client_address: str
) -> PolicyTried:
    """Evaluate a condition or the active rules. Raises `BadField` for a condition that does not compile."""
    rules = (await ports.policies.current(transactions.tenant_id)).rules
    variables = _variables(trial.context or TrialContext(), rules, transactions, client_address)
    if trial.condition is not None:
        return _try_condition(trial.condition, variables)
    trace: list[RuleResult] = []
    is_tool_call = trial.context is not None and trial.context.mcp is not None
    applicable = rules.tool_rules if is_tool_call else rules.rules
    ruling = decide(applicable, _context(variables), variables["model"], trace)
    decisive = ruling.decisive
    return PolicyTried(
        matched=any(map(matched, ruling.results)),
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


def _try_condition(condition: str, variables: dict[str, Any]) -> PolicyTried:
    check_condition(condition)
    is_match, error = False, None
    try:
        is_match = evaluate(compile_condition(condition), _context(variables))
    except ConditionFailed as failure:
        error = str(failure)
    return PolicyTried(
        matched=is_match,
        error=error,
        action=None,
        rule_id=None,
        rule_name=None,
        route_to=None,
        rules=[],
        context=variables,
    )


def _context(variables: dict[str, Any]) -> cel.Context:
    """Return the evaluation context of the variables. Raises `BadField` for arguments that cannot be evaluated."""
    try:
        return context_of(variables, _ALL)
    except ValueError:
        raise BadField("context.mcp.arguments", "has a value that cannot be evaluated") from None


def _variables(
    context: TrialContext, rules: RuleSet, transactions: SplitTransactions, client_address: str
) -> dict[str, Any]:
    status = rules.registry_status(context.model)
    caller = transactions.caller
    return {
        "model": context.model,
        "provider": context.model.partition("/")[0] if context.provider is None else context.provider,
        "model_risk_tier": context.model_risk_tier or status.risk_tier,
        "validation_status": context.validation_status or status.validation_status,
        "user": context.user.model_dump() if context.user else user_of(caller),
        "groups": [str(group) for group in caller.groups] if context.groups is None else context.groups,
        "dlp": (context.dlp or TrialDlp.model_validate({})).model_dump(),
        "tokens": context.tokens,
        "cost_usd": context.cost_usd,
        "ip": context.ip or client_address,
        "request": context.request.model_dump() if context.request else {"fields": []},
        "time": context.time or utc_now(),
        TOOL_CALL: (context.mcp or TrialToolCall.model_validate({})).model_dump(),
    }
