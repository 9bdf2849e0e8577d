"""The cost routing endpoints (docs/cost-routing.md)."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends

from gatehouse.foundation.http.bodies import Id
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.cost_routing import bundle, service
from gatehouse.platform.routing.cost_routing.errors import InvalidRoutingPolicyField, RoutingPolicyNotFound
from gatehouse.platform.routing.cost_routing.schemas import (
    Analytics,
    NewPolicy,
    Policies,
    Policy,
    PolicyUpdate,
    Simulated,
    Simulation,
    Span,
)
from gatehouse.platform.routing.cost_routing.simulating import simulate
from gatehouse.platform.routing.cost_routing.table import RoutingPolicyRow, all_policies, existing_groups
from gatehouse.policy.records import Strategy

router = APIRouter(prefix="/api/admin/cost-routing", tags=["Cost routing"], responses=RESPONSES)

LoadedPolicy = Annotated[RoutingPolicyRow, Depends(loaded(RoutingPolicyRow, "policy_id", RoutingPolicyNotFound))]
_CONFLICT: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "A group already has an enabled policy, or the organization an enabled default."}
}


@router.get("/policies", response_model=Policies)
async def list_routing_policies(
    caller: AdminReader,
    session: Session,
    *,
    enabled: bool | None = None,
    group_id: Id | None = None,
    strategy: Strategy | None = None,
) -> object:
    """Lists the organization's policies, the oldest first."""
    rows = await all_policies(session, enabled=enabled, group_id=group_id, strategy=strategy)
    return {"policies": [service.shown(row) for row in rows], "total": len(rows)}


@router.post("/policies", status_code=201, response_model=Policy, responses=_CONFLICT)
async def create_routing_policy(caller: Admin, body: NewPolicy, change: Changing) -> object:
    """Adds a policy. It is in force on every worker once this is answered."""
    return service.shown(await service.create(change, body))


@router.get("/policies/{policy_id}", response_model=Policy)
async def read_routing_policy(caller: AdminReader, policy: LoadedPolicy) -> object:
    """Returns one policy."""
    return service.shown(policy)


@router.put("/policies/{policy_id}", response_model=Policy, responses=_CONFLICT)
async def replace_routing_policy(caller: Admin, policy: LoadedPolicy, body: NewPolicy, change: Changing) -> object:
    """Replaces a policy. Fields that are not sent get their defaults."""
    return service.shown(await service.replace(change, policy, body))


@router.patch("/policies/{policy_id}", response_model=Policy, responses=_CONFLICT)
async def update_routing_policy(caller: Admin, policy: LoadedPolicy, body: PolicyUpdate, change: Changing) -> object:
    """Changes the fields that are sent."""
    return service.shown(await service.update(change, policy, body))


@router.delete("/policies/{policy_id}", status_code=204)
async def delete_routing_policy(caller: Admin, policy: LoadedPolicy, change: Changing) -> None:
    """Removes a policy. Its groups then use the organization's default."""
    await service.delete(change, policy)


@router.post("/simulate", response_model=Simulated, responses={404: {"description": "There is no such policy."}})
async def simulate_routing(
    caller: Admin, body: Simulation, transactions: InSplitTransactions, host: TheHost
) -> Simulated:
    """Returns what a policy would do with a described request. Nothing is sent to a provider."""
    async with transactions.reading() as session:
        row = await session.get(RoutingPolicyRow, body.policy_id)
        if row is None:
            raise RoutingPolicyNotFound
        group_id = body.request.group_id
        if group_id is not None and not await existing_groups(session, [group_id]):
            raise InvalidRoutingPolicyField("request.group_id", "is no group of this organization")
        record = bundle.record(row)
    snapshot = await host.ports.policies.current(transactions.tenant_id)
    return simulate(host.engine.chooser, host.ports, snapshot, record, body.request)


@router.get("/analytics", response_model=Analytics)
async def read_routing_analytics(
    caller: AdminReader,
    session: Session,
    *,
    period: Span = "day",
    policy_id: Id | None = None,
    group_id: Id | None = None,
) -> Analytics:
    """Returns which models answered requests, and the cost: of today, or of the last 7 or 30 days (UTC) with today."""
    return await service.analytics(session, period, policy_id=policy_id, group_id=group_id)
