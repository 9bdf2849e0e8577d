"""Simulation and routing give the same result for ten thousand random organizations, policies and requests."""

import random
from decimal import Decimal
from typing import Any, Final, get_args

import msgspec
from tests.support.engine import TENANT, EngineHarness

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import CallRequest, Identified, NotRouted, Routed
from gatehouse.engine.money.estimate import routing_needs
from gatehouse.foundation.ids import new_id
from gatehouse.platform.routing.cost_routing.schemas import Simulated, SimulatedRequest
from gatehouse.platform.routing.cost_routing.simulating import simulate
from gatehouse.policy.catalog import (
    CapAction,
    ChainEntry,
    CostCap,
    ModelFilters,
    RoutingPolicyRecord,
    Strategy,
)
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord
from gatehouse.policy.model_access import ModelAccessRecord
from gatehouse.policy.routing import CAPABILITY_BITS

CASES: Final = 10_000
PROVIDERS: Final = ("one", "two", "three")
GROUP: Final = new_id()
TOOL: Final = {"type": "function", "function": {"name": "f", "parameters": {}}}


def organization(chance: random.Random) -> EngineHarness:
    harness = EngineHarness()
    for provider in PROVIDERS:
        harness.serve(provider, *(f"m{number}" for number in range(chance.randrange(1, 4))))
    harness.models = [
        msgspec.structs.replace(
            model,
            is_active=chance.random() < 0.9,
            is_default=chance.random() < 0.1,
            access=chance.choice(("open", "open", "restricted")),
            context_window=chance.choice((None, 100, 100_000)),
            max_output_tokens=chance.choice((None, 50, 5_000)),
            capabilities={
                name: chance.random() < 0.6
                for name in ("vision", "function_calling", "structured_output", "streaming")
                if chance.random() < 0.8
            },
            cost_per_input_token=price(chance),
            cost_per_output_token=price(chance),
        )
        for model in harness.models
    ]
    harness.unhealthy = {provider for provider in PROVIDERS if chance.random() < 0.15}
    harness.off = {model.model_id for model in harness.models if chance.random() < 0.1}
    harness.model_access = tuple(
        ModelAccessRecord(
            group_id=GROUP, model=f"{model.provider}/{model.model_id}", access_type=chance.choice(("ALLOW", "DENY"))
        )
        for model in harness.models
        if chance.random() < 0.2
    )
    if chance.random() < 0.2:
        rule = PolicyRuleRecord(
            id=new_id(), name="r", priority=1, condition=chance.choice(('provider == "two"', "tokens > 300")),
            action=chance.choice(("BLOCK", "ROUTE")), route_to="one/m0",
        )  # fmt: skip
        harness.governance = GovernanceRecords(policy_rules=(rule,))
    for model in harness.models:
        if chance.random() < 0.7:
            for stream in (False, True):
                harness.ports.latencies.answered(model.id, chance.uniform(10, 2_000), stream=stream)
    harness.routing_policies = (policy(chance),)
    return harness


def price(chance: random.Random) -> Decimal | None:
    return None if chance.random() < 0.1 else Decimal(chance.randrange(0, 50)) / 1_000_000


def policy(chance: random.Random) -> RoutingPolicyRecord:
    cap = CostCap(
        max_cost_per_request_usd=Decimal(chance.randrange(1, 30_000)) / 1_000_000,
        action_on_exceed=chance.choice(get_args(CapAction)),
    )
    return RoutingPolicyRecord(
        id=new_id(),
        name="p",
        strategy=chance.choice(get_args(Strategy)),
        model_filters=ModelFilters(
            min_context_window=chance.choice((None, None, 1_000)),
            required_capabilities=tuple(name for name in CAPABILITY_BITS if chance.random() < 0.05),
            excluded_models=frozenset({"one/m0"} if chance.random() < 0.2 else ()),
            included_providers=frozenset(PROVIDERS[:2] if chance.random() < 0.2 else ()),
        ),
        fallback_chain=tuple(
            ChainEntry(
                provider=chance.choice(PROVIDERS), model_id=f"m{number}", priority=chance.randrange(5),
                cost_weight=chance.choice((0.5, 1.0, 2.0)),
            )
            for number in range(chance.randrange(4))
        ),
        cost_cap=chance.choice((None, cap)),
        latency_budget_ms=chance.choice((None, 800)),
    )  # fmt: skip


def body(chance: random.Random) -> dict[str, Any]:
    named = f"{chance.choice(PROVIDERS)}/m{chance.randrange(3)}"
    body: dict[str, Any] = {
        "model": chance.choice(("auto", "auto", named, "m0")),
        "messages": [{"role": "user", "content": "word " * chance.choice((1, 50, 500))}],
        "stream": chance.random() < 0.3,
    }
    if chance.random() < 0.7:
        body["max_tokens"] = chance.choice((1, 100, 3_000))
    if chance.random() < 0.2:
        body["tools"] = [TOOL]
    if chance.random() < 0.2:
        body["response_format"] = {"type": "json_object"}
    return body


async def test_simulate_and_routing_agree() -> None:
    chance = random.Random(20_261_122)
    harness, routed = organization(chance), 0
    for case in range(CASES):
        if case % 5 == 0:
            harness = organization(chance)
            snapshot = await harness.current(TENANT)
        received = harness.request(body(chance))
        assert harness.caller is not None
        caller = msgspec.structs.replace(harness.caller, groups=chance.choice(((), (GROUP,))))
        identified = Identified(received=received, caller=caller, policy=snapshot, scope="chat:write")
        requested = CallRequest(identified=identified, call=DIALECTS["openai_chat"].decode(received.body))
        # Round-robin turns and latency trials are excluded, so that only the choice is compared.
        result = snapshot.routing.of(())
        assert result is not None
        described = request(requested)
        text = simulate(harness.engine.chooser, harness.ports, snapshot, harness.routing_policies[0], described)
        for model in harness.models:
            harness.ports.latencies.may_try(model.id)
        verdict = harness.engine.chooser.choose(requested, harness.ports)
        assert summary_of(verdict) == shown(text), (case, described)
        routed += not isinstance(verdict, NotRouted)
    # Both results occur often, so the comparison is meaningful.
    assert CASES / 4 < routed < CASES


def request(call: CallRequest) -> SimulatedRequest:
    """Return the call as a person would describe it to the simulation."""
    needs = routing_needs(call)
    return SimulatedRequest(
        model=call.call.model,
        estimated_input_tokens=needs.input_tokens,
        estimated_output_tokens=needs.output_tokens,
        capabilities_needed=[name for name, bit in CAPABILITY_BITS.items() if needs.needs & bit],  # type: ignore[misc]
        group_id=next(iter(call.identified.caller.groups), None),
    )


def summary_of(verdict: Routed | NotRouted) -> tuple[list[str], str | None]:
    if isinstance(verdict, NotRouted):
        return [], verdict.error.code
    return [f"{candidate.provider.id}/{candidate.model.model_id}" for candidate in verdict.chain], None


def shown(simulation: Simulated) -> tuple[list[str], str | None]:
    if simulation.refusal is not None:
        return [], simulation.refusal.code
    assert simulation.selected_model is not None
    chain = [simulation.selected_model, *simulation.fallback_sequence]
    return [f"{candidate.provider}/{candidate.model_id}" for candidate in chain], None
