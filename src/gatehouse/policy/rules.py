"""The compiled rules of the policy engine, and the one function that decides by them (decisions of the contract:
Policy engine)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from gatehouse.policy.cel_library import cel
from gatehouse.policy.conditions import EXAMPLES, FUNCTIONS, BadCondition, Failed, compiled, holds
from gatehouse.policy.governance import GovernanceRecords, PolicyAction, PolicyRuleRecord

#: Which of several actions counts.
STRENGTH: Final[Mapping[PolicyAction, int]] = {"LOG": 0, "ALLOW": 0, "REQUIRE_APPROVAL": 1, "ROUTE": 2, "BLOCK": 3}
#: Of a model that the registry does not have.
UNREGISTERED: Final = "unregistered"

Result: TypeAlias = Literal["matched", "failed", "unmatched"]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """`route_to` is `provider/model-id`, for ROUTE alone."""

    id: str
    name: str
    action: PolicyAction
    program: cel.Program
    route_to: str | None = None
    terminal: bool = True
    message: str | None = None


class Standing(NamedTuple):
    """What the model registry says of a model."""

    risk_tier: str
    validation_status: str


class RuleSet(msgspec.Struct, frozen=True, kw_only=True):
    """`rules` in the order in which they are looked at; `needs` the variables that they name."""

    rules: tuple[Rule, ...] = ()
    needs: frozenset[str] = frozenset()
    registry: Mapping[str, Standing] = {}
    unregistered: Standing = Standing("tier_4", UNREGISTERED)

    def standing(self, model: str) -> Standing:
        """Of `provider/model-id`."""
        return self.registry.get(model, self.unregistered)


class Facts(NamedTuple):
    """What a request's rules are asked about. `context` holds the variables, of which those of a candidate are set
    anew for each; `tokens` is None where no rule asks for them."""

    context: cel.Context
    tokens: int | None


class Said(NamedTuple):
    """One rule's part in a decision; `reason` where it failed."""

    rule: Rule
    result: Result
    reason: str | None = None


class Ruling(NamedTuple):
    """`decisive` is the first rule with the strongest action, None where no rule matched; `said` are the rules that
    matched or failed, in order."""

    action: PolicyAction
    decisive: Rule | None
    said: Sequence[Said]


def compile_rules(records: GovernanceRecords) -> tuple[RuleSet, list[str]]:
    """The rules in force, and what is wrong with the records. None are in force without `governance_enabled`."""
    faults: list[str] = []
    rules: list[Rule] = []
    for record in records.policy_rules if records.governance_enabled else ():
        try:
            rules.append(rule_of(record))
        except BadCondition as error:
            faults.append(f"policy rule {record.name!r}: condition {error}")
    named = {name for rule in rules for name in rule.program.variables()}
    if any("in_range" in rule.program.functions() for rule in rules):
        named.add("in_range")
    rule_set = RuleSet(
        rules=tuple(rules),
        needs=frozenset(named & (EXAMPLES.keys() | FUNCTIONS.keys())),
        registry={f"{e.provider}/{e.model_id}": Standing(e.risk_tier, e.validation_status) for e in records.registry},
        unregistered=Standing(records.unregistered_model_tier, UNREGISTERED),
    )
    return rule_set, faults


def rule_of(record: PolicyRuleRecord) -> Rule:
    """Raises `BadCondition`."""
    return Rule(
        id=str(record.id),
        name=record.name,
        action=record.action,
        program=compiled(record.condition),
        route_to=record.route_to,
        terminal=record.terminal,
        message=record.message,
    )


def context_of(variables: Mapping[str, Any], needs: frozenset[str]) -> cel.Context:
    """For one request's evaluations. Functions cost more than variables, and few rules call one."""
    functions = {name: function for name, function in FUNCTIONS.items() if name in needs}
    return cel.Context(variables=dict(variables), functions=functions)


def decide(rules: Sequence[Rule], context: cel.Context, model: str, trace: list[Said] | None = None) -> Ruling:
    """In order, until a terminal rule matches. The strongest action of those that matched counts: BLOCK, ROUTE,
    REQUIRE_APPROVAL, then ALLOW and LOG. A condition that fails counts as matched for BLOCK and as unmatched for all
    else. ROUTE to `model`, which is what is asked about, is as good as ALLOW: the call is there. `trace` takes every
    rule that was looked at."""
    said: list[Said] = []
    decisive: Rule | None = None
    action: PolicyAction = "ALLOW"
    for rule in rules:
        outcome = _asked(rule, context)
        if trace is not None:
            trace.append(outcome or Said(rule, "unmatched"))
        if outcome is None:
            continue
        said.append(outcome)
        if not matched(outcome):
            continue
        does: PolicyAction = "ALLOW" if rule.route_to == model else rule.action
        if decisive is None or STRENGTH[does] > STRENGTH[action]:
            decisive, action = rule, does
        if rule.terminal:
            break
    return Ruling(action, decisive, said)


def _asked(rule: Rule, context: cel.Context) -> Said | None:
    """None: it did not match, which most rules do."""
    try:
        return Said(rule, "matched") if holds(rule.program, context) else None
    except Failed as error:
        return Said(rule, "failed", str(error))


def matched(said: Said) -> bool:
    """Whether it counts as matched."""
    return said.result == "matched" or (said.result == "failed" and said.rule.action == "BLOCK")
