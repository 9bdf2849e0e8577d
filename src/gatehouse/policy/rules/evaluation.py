"""Compiles the rules of the policy engine, and evaluates them (docs/policies.md)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from gatehouse.policy.governance import GovernanceRecords, PolicyAction, PolicyRuleRecord
from gatehouse.policy.rules.cel_library import cel
from gatehouse.policy.rules.conditions import (
    EXAMPLES,
    FUNCTIONS,
    TOOL_CALL,
    BadCondition,
    ConditionFailed,
    compile_condition,
    evaluate,
    reads_arguments,
)

#: The strength of each action. If several rules match, the strongest action applies.
POLICY_ACTION_STRENGTH: Final[Mapping[PolicyAction, int]] = {
    "LOG": 0,
    "ALLOW": 0,
    "REQUIRE_APPROVAL": 1,
    "ROUTE": 2,
    "BLOCK": 3,
}
#: Validation status of a model that is not in the registry.
UNREGISTERED: Final = "unregistered"

#: The variables and functions with which rules are evaluated.
Context: TypeAlias = cel.Context

Result: TypeAlias = Literal["matched", "failed", "unmatched"]


class PolicyRule(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled rule. `route_to` is `provider/model-id`; it is only set for the action ROUTE."""

    id: str
    name: str
    action: PolicyAction
    program: cel.Program
    route_to: str | None = None
    terminal: bool = True
    message: str | None = None
    #: whether it is evaluated for calls of tools, and not for model calls
    is_for_tools: bool = False


class RegistryStatus(NamedTuple):
    """The status of a model in the model registry."""

    risk_tier: str
    validation_status: str


class RuleSet(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled rules of an organization. `rules` are those of model calls, and `tool_rules` those of calls of
    tools, both in the order of their evaluation. `needs` has the names of the variables and functions that the rules
    use."""

    rules: tuple[PolicyRule, ...] = ()
    tool_rules: tuple[PolicyRule, ...] = ()
    #: whether rules read the arguments of tool calls
    reads_arguments: bool = False
    needs: frozenset[str] = frozenset()
    registry: Mapping[str, RegistryStatus] = {}
    unregistered: RegistryStatus = RegistryStatus("tier_4", UNREGISTERED)

    def registry_status(self, model: str) -> RegistryStatus:
        """Return the registry status of a model, which is named as `provider/model-id`."""
        return self.registry.get(model, self.unregistered)


class RuleResult(NamedTuple):
    """The result of one rule. `reason` is set if its evaluation failed."""

    rule: PolicyRule
    result: Result
    reason: str | None = None


class Ruling(NamedTuple):
    """The result of all rules. `decisive` is the first rule with the strongest action, or None if no rule matched.
    `results` has the rules that matched or failed, in order."""

    action: PolicyAction
    decisive: PolicyRule | None
    results: Sequence[RuleResult]


def compile_rules(records: GovernanceRecords) -> tuple[RuleSet, list[str]]:
    """Return the active rules, and the faults in the records. If `governance_enabled` is false, no rules are active."""
    faults: list[str] = []
    rules: list[PolicyRule] = []
    may_read_arguments = False
    for record in records.policy_rules if records.governance_enabled else ():
        try:
            rules.append(rule_of(record))
        except BadCondition as error:
            faults.append(f"policy rule {record.name!r}: condition {error}")
            continue
        may_read_arguments |= rules[-1].is_for_tools and reads_arguments(record.condition)
    used_names = {name for rule in rules for name in rule.program.variables()}
    if any("in_range" in rule.program.functions() for rule in rules):
        used_names.add("in_range")
    rule_set = RuleSet(
        rules=tuple(rule for rule in rules if not rule.is_for_tools),
        tool_rules=tuple(rule for rule in rules if rule.is_for_tools),
        reads_arguments=may_read_arguments,
        needs=frozenset(used_names & (EXAMPLES.keys() | FUNCTIONS.keys())),
        registry={
            f"{entry.provider}/{entry.model_id}": RegistryStatus(entry.risk_tier, entry.validation_status)
            for entry in records.registry
        },
        unregistered=RegistryStatus(records.unregistered_model_tier, UNREGISTERED),
    )
    return rule_set, faults


def rule_of(record: PolicyRuleRecord) -> PolicyRule:
    """Compile a rule. Raises `BadCondition`."""
    program = compile_condition(record.condition)
    return PolicyRule(
        id=str(record.id),
        name=record.name,
        action=record.action,
        program=program,
        route_to=record.route_to,
        terminal=record.terminal,
        message=record.message,
        is_for_tools=TOOL_CALL in program.variables(),
    )


def context_of(variables: Mapping[str, Any], needs: frozenset[str]) -> cel.Context:
    """Return the context in which the rules are evaluated for one candidate. Functions are only added if a rule uses
    them, because they cost more than variables."""
    functions = {name: function for name, function in FUNCTIONS.items() if name in needs}
    return cel.Context(variables=dict(variables), functions=functions)


def decide(
    rules: Sequence[PolicyRule], context: cel.Context, model: str, trace: list[RuleResult] | None = None
) -> Ruling:
    """Evaluate the rules in order, until a terminal rule matches. The strongest action of the matching rules applies
    (`POLICY_ACTION_STRENGTH`).

    If the evaluation of a condition fails, a rule with the action BLOCK is treated as matched, and a rule with another
    action is treated as unmatched. A rule with the action ROUTE to `model`, the current candidate, is treated as ALLOW,
    because the call already goes to this model. The result of every evaluated rule is appended to `trace`."""
    results: list[RuleResult] = []
    decisive: PolicyRule | None = None
    action: PolicyAction = "ALLOW"
    for rule in rules:
        result = _evaluate(rule, context)
        if trace is not None:
            trace.append(result or RuleResult(rule, "unmatched"))
        if result is None:
            continue
        results.append(result)
        if not matched(result):
            continue
        rule_action: PolicyAction = "ALLOW" if rule.route_to == model else rule.action
        if decisive is None or POLICY_ACTION_STRENGTH[rule_action] > POLICY_ACTION_STRENGTH[action]:
            decisive, action = rule, rule_action
        if rule.terminal:
            break
    return Ruling(action, decisive, results)


def _evaluate(rule: PolicyRule, context: cel.Context) -> RuleResult | None:
    """Return the result of a rule, or None if the rule did not match. Most rules do not match."""
    try:
        return RuleResult(rule, "matched") if evaluate(rule.program, context) else None
    except ConditionFailed as error:
        return RuleResult(rule, "failed", str(error))


def matched(result: RuleResult) -> bool:
    """Return whether a result is treated as matched. If the evaluation of a rule failed, it is treated as matched only
    if its action is BLOCK."""
    return result.result == "matched" or (result.result == "failed" and result.rule.action == "BLOCK")
