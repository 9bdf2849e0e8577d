"""Measures the time of a routing decision: `.venv/bin/python -m bench.routing` (from the root of the repository).

There is one organization with 20 or 200 models of 10 providers, and 50 policies with a cost cap, a latency budget and a
chain of three models. The measurement includes the steps between the decoded body and the budgets: the capabilities
that the call needs, the order of the models, the check of each candidate, and the cost cap. The figures are
microseconds, the minimum of 200 rounds."""

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Final
from uuid import UUID

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import CallRequest, Identified, Received
from gatehouse.engine.measures.latency import Latencies
from gatehouse.engine.ports import Ports
from gatehouse.engine.routing.chain import Chooser
from gatehouse.engine.routing.circuits import Circuits
from gatehouse.engine.routing.cooldowns import Cooldowns
from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.identity import Caller, CallerKind, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.policy.catalog import (
    ChainEntry,
    CostCap,
    ModelRecord,
    ProviderRecord,
    RoutingPolicyRecord,
    Strategy,
    TenantRecords,
)
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.snapshot import Snapshot

TENANT: Final = TenantId(UUID("00000000-0000-7000-8000-0000000000aa"))
STRATEGIES: Final[tuple[Strategy, ...]] = (
    "cost_optimized", "quality_optimized", "latency_optimized", "balanced", "round_robin", "manual_fallback",
)  # fmt: skip
ROUNDS: Final = 200
TIMES: Final = 40
BODY: Final = b'{"model":"%s","messages":[{"role":"user","content":"' + b"Good morning. " * 70 + b'"}]}'


class _Switches:
    """Switches and circuits for which every model is enabled and healthy."""

    def switched_off(self, tenant_id: object, candidate: object) -> bool:
        return False

    def healthy(self, tenant_id: object, provider_id: object) -> bool:
        return True


def organization(strategy: Strategy | None, number: int) -> Snapshot:
    providers = tuple(ProviderRecord(id=f"p{at}", name="p", kind="openai_compatible") for at in range(10))
    models = tuple(
        ModelRecord(
            id=new_id(), provider=f"p{at % 10}", model_id=f"m{at}", is_default=at == 0, context_window=128_000,
            capabilities={"streaming": True, "vision": at % 2 == 0, "function_calling": True},
            cost_per_input_token=Decimal(at * 37 % 101 + 1) / 10**7,
            cost_per_output_token=Decimal(at * 53 % 97 + 1) / 10**6,
        )
        for at in range(number)
    )  # fmt: skip
    chain = tuple(ChainEntry(provider=f"p{at}", model_id=f"m{at}", priority=at) for at in range(3))
    policies = tuple(
        RoutingPolicyRecord(
            id=new_id(), name="p", strategy=strategy, group_ids=(new_id(),) if made else (), fallback_chain=chain,
            cost_cap=CostCap(max_cost_per_request_usd=Decimal(1), action_on_exceed="block"), latency_budget_ms=5_000,
        )
        for made in range(50)
    ) if strategy else ()  # fmt: skip
    compiled = compile_policy(
        TenantRecords(tenant_id=TENANT, revision=1, providers=providers, models=models, routing_policies=policies)
    )
    assert isinstance(compiled, Snapshot)
    return compiled


def best(work: Callable[[], object]) -> float:
    """Return the minimum microseconds of one call."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(TIMES):
            work()
        rounds.append((time.perf_counter() - began) / TIMES * 1e6)
    return min(rounds)


def decision(snapshot: Snapshot, model: bytes) -> float:
    latencies = Latencies()
    for at, entry in enumerate(snapshot.models.values()):
        latencies.answered(entry.id, 100 + at * 31 % 900, stream=False)
    ports = Ports(
        credentials=None, policies=None, limits=None, counters=None, switches=_Switches(), spend=None, approvals=None,
        secrets=None, journal=None, outbound=None, clock=SYSTEM_CLOCK, latencies=latencies,
    )  # type: ignore[arg-type] # fmt: skip
    body = BODY.replace(b"%s", model)
    received = Received(
        request_id="r", method="POST", path="/v1/chat/completions", headers={}, client_address="192.0.2.1",
        received_at=0.0, started=0.0, dialect="openai_chat", body=body,
    )  # fmt: skip
    caller = Caller(kind=CallerKind.API_KEY, tenant_id=TENANT, groups=(new_id(), new_id()))
    identified = Identified(received=received, caller=caller, policy=snapshot, scope="chat:write")
    call = DIALECTS["openai_chat"].decode(body)
    chooser = Chooser(Circuits(SYSTEM_CLOCK), Cooldowns(SYSTEM_CLOCK), pipeline.CANDIDATE)

    def decide() -> object:
        return chooser.choose(CallRequest(identified=identified, call=call), ports)

    return best(decide)


def main() -> None:
    bare = organization(None, 200)
    print(f"no policy          auto {decision(bare, b'auto'):6.1f}   named {decision(bare, b'p1/m1'):6.1f}")
    for number in (20, 200):
        print(f"{number} models, 50 policies")
        for strategy in STRATEGIES:
            snapshot = organization(strategy, number)
            print(f"{strategy:18} auto {decision(snapshot, b'auto'):6.1f}   named {decision(snapshot, b'p1/m1'):6.1f}")


if __name__ == "__main__":
    main()
