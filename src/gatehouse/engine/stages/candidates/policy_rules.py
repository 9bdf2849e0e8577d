"""Evaluates the organization's policy rules for every candidate (docs/policies.md)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.exchange import CallRequest, computed_once
from gatehouse.engine.fields.naming import all_names
from gatehouse.engine.money.bound import caller_output_limit
from gatehouse.engine.money.estimate import texts
from gatehouse.engine.ports import Ports
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.verdict import ALLOW, ApprovalResult, Ask, Hold, Refuse, Reroute, Verdict
from gatehouse.foundation.errors import Forbidden
from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.policy.catalog import Candidate
from gatehouse.policy.rules.conditions import EXAMPLES
from gatehouse.policy.rules.evaluation import (
    Context,
    PolicyRule,
    RuleSet,
    Ruling,
    context_of,
    decide,
)

#: Maximum number of events in the record of a request.
_MAX_EVENTS: Final = 100
#: Maximum number of names of fields that are stored in a sample.
_MAX_SAMPLED_FIELDS: Final = 300
#: Number of bytes of UTF-8 that are treated as one token.
_BYTES_PER_TOKEN: Final = 4


class PolicyViolation(Forbidden):
    """A policy rule refuses the call: 403 with `rule_id`. The same request is refused again until the policy
    changes."""

    type = "policy_violation"
    code = "policy_violation"


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict | Reroute:
    rules = x.identified.policy.rules
    # A sample describes only the first candidate that is judged.
    sample = x.sample if x.sample is not None and x.sample.texts and x.sample.facts is None else None
    if not rules.rules and sample is None:
        return ALLOW
    model = f"{candidate.provider.id}/{candidate.model.model_id}"
    if sample is not None:
        sample.facts = _all_variables(x, candidate, model)
    ruling = decide(rules.rules, _context(x, candidate, model, rules), model)
    if sample is not None:
        sample.policy_action = ruling.action
    note(x, ruling, model)
    rule = ruling.decisive
    if rule is None or ruling.action in {"ALLOW", "LOG"}:
        return ALLOW
    if ruling.action == "ROUTE":
        return _reroute(x, rule)
    if ruling.action == "REQUIRE_APPROVAL" and x.identified.policy.feature_flags.get("human_in_loop", False):
        return approval_hold(x, rule, model)
    return Refuse(violation(rule))


def violation(rule: PolicyRule, message: str | None = None) -> PolicyViolation:
    """Return the refusal by a rule."""
    text = message or rule.message or f"The organization's policy rule {rule.name!r} does not permit this request."
    return PolicyViolation(text, rule_id=rule.id)


def _reroute(x: CallRequest, rule: PolicyRule) -> Verdict | Reroute:
    policy = x.identified.policy
    model = policy.find_model(rule.route_to or "")
    provider = policy.providers.get(model.provider) if model is not None else None
    if model is None or provider is None:
        text = (
            f"The policy rule {rule.name!r} routes this request to a model that is not in the catalog or is inactive."
        )
        return Refuse(violation(rule, text))
    return Reroute(
        Candidate(provider, model), violation(rule, f"The policy rule {rule.name!r} routes this request in a circle.")
    )


def approval_hold(x: CallRequest, rule: PolicyRule, model: str) -> Hold:
    """Return the verdict that holds a call until a person has decided. `model` is the name of the model or tool."""

    def settled(result: ApprovalResult) -> None:
        x.rule_events.append(_event(rule, result, model))

    denied = f"The request requires an approval ({rule.name}), which was denied or not granted in time."
    ask = Ask(reason=f"{rule.name} asks for approval of {model}", rule_id=rule.id, rule_name=rule.name)
    refusal = violation(rule, denied)
    refusal.headers["X-DLP-Action"] = "CANCEL"
    return Hold(ask, refusal, settled)


def note(x: CallRequest, ruling: Ruling, model: str) -> None:
    """Record one event for each rule and result. The event identifies the first candidate with that result."""
    noted = {(event.rule_id, event.result) for event in x.rule_events}
    for rule, result, _ in ruling.results:
        if result == "matched" and rule.action == "ALLOW":
            continue
        if (rule.id, result) not in noted and len(x.rule_events) < _MAX_EVENTS:
            x.rule_events.append(_event(rule, result, model))


def _event(rule: PolicyRule, result: str, model: str) -> RuleEvent:
    return RuleEvent(
        kind="policy_rule", rule_id=rule.id, rule_name=rule.name, action=rule.action, result=result, model=model
    )


def _context(x: CallRequest, candidate: Candidate, model: str, rules: RuleSet) -> Context:
    """Return the variables of conditions for this candidate. Only variables that the rules use are computed."""
    of_request, needs = _of_request(x), rules.needs
    of_candidate = _candidate_variables(x, candidate, model, needs, of_request.tokens)
    return context_of({**of_request.variables, **of_candidate}, needs)


class _OfRequest(NamedTuple):
    """The variables that the rules use and that are the same for all candidates. `tokens` is None if no rule needs the
    number of tokens."""

    variables: Mapping[str, Any]
    tokens: int | None


@computed_once
def _of_request(x: CallRequest) -> _OfRequest:
    needs = x.identified.policy.rules.needs
    tokens = None if needs.isdisjoint({"tokens", "cost_usd"}) else _tokens(x)
    return _OfRequest(request_variables(x, needs, tokens), tokens)


def _all_variables(x: CallRequest, candidate: Candidate, model: str) -> dict[str, Any]:
    """Return all variables for a sample, including those that no rule uses."""
    every = frozenset(EXAMPLES)
    tokens = _tokens(x)
    variables = request_variables(x, every, tokens) | _candidate_variables(x, candidate, model, every, tokens)
    del variables["request"]["fields"][_MAX_SAMPLED_FIELDS:]
    return variables


def _candidate_variables(
    x: CallRequest, candidate: Candidate, model: str, needs: frozenset[str], tokens: int | None
) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    if "model" in needs:
        variables["model"] = model
    if "provider" in needs:
        variables["provider"] = candidate.provider.id
    if not needs.isdisjoint({"model_risk_tier", "validation_status"}):
        variables["model_risk_tier"], variables["validation_status"] = x.identified.policy.rules.registry_status(model)
    if "cost_usd" in needs:
        variables["cost_usd"] = _cost(x.call, candidate, tokens or 0)
    return variables


def request_variables(x: CallRequest, needs: frozenset[str], tokens: int | None) -> dict[str, Any]:
    """Return the variables in `needs` that do not depend on a candidate."""
    received, caller = x.identified.received, x.identified.caller
    variables: dict[str, Any] = {}
    if "user" in needs:
        variables["user"] = user_of(caller)
    if "groups" in needs:
        variables["groups"] = [str(group) for group in caller.groups]
    if "dlp" in needs:
        variables["dlp"] = _dlp_variable(x)
    if "tokens" in needs:
        variables["tokens"] = tokens
    if "ip" in needs:
        variables["ip"] = received.client_address
    if "request" in needs:
        variables["request"] = {"fields": all_names(x.call.dialect, x.call.body)}
    if "time" in needs:
        variables["time"] = datetime.fromtimestamp(received.received_at, UTC)
    return variables


def user_of(caller: Caller) -> dict[str, str]:
    """Return the attributes of the caller that conditions can use. For an OAuth client, the role is `client` and the id
    is the client's id."""
    machine = caller.kind is CallerKind.OAUTH_CLIENT
    return {
        "id": caller.actor_id,
        "email": caller.email or "",
        "role": "client" if machine else caller.role.value,
        "kind": caller.kind.value,
    }


def _dlp_variable(x: CallRequest) -> dict[str, Any]:
    """Return the DLP findings in the request, whatever action was taken on them."""
    counts: dict[str, int] = {}
    for event in x.inspection.events() if x.inspection else ():
        if event.rule_id is not None:
            counts[event.entity_type] = counts.get(event.entity_type, 0) + event.match_count
    action = (x.inspection and x.inspection.action) or "ALLOW"
    return {"action": action, "entities": sorted(counts), "counts": counts}


def _tokens(x: CallRequest) -> int:
    """Estimate the number of input tokens: texts by their length, and inputs that are already tokens by their number.
    Images are treated as 0."""
    described = x.identified.host.routing_needs
    if described is not None:
        return described.input_tokens
    body = x.call.body
    size = sum(len(text.encode("utf-8", "replace")) for text in texts(body))
    value = body.get("input")
    written = 0
    if isinstance(value, list):
        written = sum(len(item) if isinstance(item, list) else 1 for item in value if not isinstance(item, str))
    return -(-size // _BYTES_PER_TOKEN) + written


def _cost(call: ModelCall, candidate: Candidate, tokens: int) -> float | None:
    """Return the cost of the call with the longest output that it may have, or None if a price is unknown."""
    model = candidate.model
    if model.cost_per_input_token is None or model.cost_per_output_token is None:
        return None
    limit = caller_output_limit(call) or model.max_output_tokens or 0
    return float(model.cost_per_input_token * tokens + model.cost_per_output_token * limit)
