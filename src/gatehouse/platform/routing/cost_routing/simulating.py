"""Simulates routing of a described request, with the code that routes real requests. Nothing is sent.

The current state applies: policy rules, model access of the group, the registry, kill switches, and this worker's
health, open circuits and latencies.
"""

from decimal import Decimal
from typing import Any, Final

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.exchange import (
    CallRequest,
    HostContext,
    Identified,
    NotRouted,
    PolicyChoice,
    Received,
    Routed,
    RoutingNeeds,
)
from gatehouse.engine.fields.tables import TOOLS
from gatehouse.engine.money.bound import PriceUnknown
from gatehouse.engine.money.estimate import estimate, routing_needs
from gatehouse.engine.ports import Ports
from gatehouse.engine.routing.cap import CostCapExceeded
from gatehouse.engine.routing.chain import Chooser
from gatehouse.engine.stages.candidates.route import AUTO
from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.platform.routing.cost_routing.candidates import Considered
from gatehouse.platform.routing.cost_routing.schemas import (
    CapCheck,
    Fallback,
    Refused,
    Selected,
    Simulated,
    SimulatedRequest,
)
from gatehouse.policy.catalog import Candidate, RoutingPolicyRecord, Strategy
from gatehouse.policy.routing import bits, compile_routing_policy, options_of
from gatehouse.policy.snapshot import Snapshot

_REASONS: Final[dict[Strategy, str]] = {
    "cost_optimized": "the cheapest capable model",
    "quality_optimized": "first in the fallback chain, or the dearest capable model",
    "latency_optimized": "the lowest median latency of the last five minutes",
    "balanced": "the best of cost and latency together",
    "round_robin": "its turn",
    "manual_fallback": "first in the fallback chain",
}


def simulate(
    chooser: Chooser, ports: Ports, snapshot: Snapshot, record: RoutingPolicyRecord, request: SimulatedRequest
) -> Simulated:
    """Return what the policy of `record` would do with `request`, whether or not the policy is enabled."""
    options = options_of(snapshot.providers, snapshot.models.values())
    policy = compile_routing_policy(record, options)
    call_request = _call_request(snapshot, request, ports)
    routed = chooser.routed(call_request, ports, policy, trial=True)
    assert routed.choice is not None
    considered = Considered(
        chooser=chooser,
        ports=ports,
        call_request=call_request,
        policy=policy,
        filters=record.model_filters,
        options=options,
        routed=routed,
    )
    return _result(call_request, routed.choice, routed, considered)


def _call_request(snapshot: Snapshot, request: SimulatedRequest, ports: Ports) -> CallRequest:
    received = Received(
        request_id="simulation",
        method="POST",
        path="/v1/chat/completions",
        headers={},
        client_address="",
        received_at=ports.clock.now(),
        started=ports.clock.monotonic(),
        dialect="openai_chat",
    )
    groups = () if request.group_id is None else (request.group_id,)
    caller = Caller(kind=CallerKind.USER, tenant_id=snapshot.tenant_id, groups=groups)
    # Rules about the cost use `max_tokens`.
    call = ModelCall(
        dialect="openai_chat",
        model=request.model or AUTO,
        stream="streaming" in request.capabilities_needed,
        body={**_fields(request.request_fields), "max_tokens": request.estimated_output_tokens},
    )
    requirements = RoutingNeeds(
        input_tokens=request.estimated_input_tokens,
        output_tokens=request.estimated_output_tokens,
        needs=bits(request.capabilities_needed),
        counted=True,
    )
    host = HostContext(routing_needs=requirements)
    identified = Identified(received=received, caller=caller, policy=snapshot, scope="chat:write", host=host)
    return CallRequest(identified=identified, call=call)


def _fields(names: list[str]) -> dict[str, Any]:
    """Return a body with these fields, each with a value other than its default."""
    tools = [{"type": name.removeprefix(TOOLS)} for name in names if name.startswith(TOOLS)]
    fields: dict[str, Any] = {name: True for name in names if not name.startswith(TOOLS)}
    return {**fields, "tools": tools} if tools else fields


def _result(
    call_request: CallRequest, choice: PolicyChoice, routed: Routed | NotRouted, considered: Considered
) -> Simulated:
    chain = routed.chain if isinstance(routed, Routed) else ()
    # The first choice is shown even where the cost cap refuses it.
    selected = chain[0] if chain else choice.first
    refusal = routed.error if isinstance(routed, NotRouted) else None
    estimated_cost = None if choice.first is None else _cost(call_request, choice.first)
    cap = choice.policy.cap
    shown = None if selected is None else _selected(call_request, choice, selected, routed)
    return Simulated(
        selected_model=shown,
        fallback_sequence=[
            Fallback(
                provider=candidate.provider.id,
                model_id=candidate.model.model_id,
                credential=candidate.credential,
                estimated_cost_usd=_cost(call_request, candidate),
            )
            for candidate in chain[1:]
        ],
        candidates=considered.shown("" if shown is None else shown.reason),
        cost_cap_check=CapCheck(
            estimated_cost_usd=estimated_cost,
            limit_usd=None if cap is None else cap.max_cost_per_request_usd,
            would_block=isinstance(refusal, CostCapExceeded | PriceUnknown),
        ),
        refusal=None if refusal is None else Refused(code=refusal.code, message=refusal.text),
    )


def _cost(call_request: CallRequest, candidate: Candidate) -> Decimal | None:
    return estimate(candidate.model, routing_needs(call_request))


def _selected(
    call_request: CallRequest, choice: PolicyChoice, selected: Candidate, routed: Routed | NotRouted
) -> Selected:
    return Selected(
        provider=selected.provider.id,
        model_id=selected.model.model_id,
        credential=selected.credential,
        reason=_reason(call_request, choice, selected, routed),
    )


def _reason(call_request: CallRequest, choice: PolicyChoice, selected: Candidate, routed: Routed | NotRouted) -> str:
    deployment = routed.deployment_of(selected) if isinstance(routed, Routed) else None
    name = f"{selected.provider.id}/{selected.model.model_id}"
    if choice.first is not None and selected != choice.first:
        return "use_cheapest: the cheapest capable model under the cost cap"
    if call_request.call.model == AUTO:
        reason = f"{choice.policy.strategy}: {_REASONS[choice.policy.strategy]}"
    elif deployment is not None and isinstance(routed, Routed) and routed.alias is not None:
        reason = f"{routed.alias.balance}: first of the alias {deployment.alias}, in tier {deployment.tier}"
    elif call_request.call.model in {name, selected.model.model_id}:
        reason = "named by the request"
    else:
        reason = "the named model cannot answer now; next in the fallback chain, or where a policy rule sends it"
    holds = isinstance(routed, Routed) and routed.hold is not None
    return f"{reason}; a person is asked first" if holds else reason
