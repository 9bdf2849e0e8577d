"""The cost routing endpoints (docs/cost-routing.md)."""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends

from gatehouse.foundation.http.bodies import Id
from gatehouse.foundation.http.lists import OptionalWindow, optional_window, search_parameter, sort_parameter
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.cost_routing import policy_records, service
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
from gatehouse.platform.routing.cost_routing.service import InvalidRoutingPolicyField, RoutingPolicyNotFound
from gatehouse.platform.routing.cost_routing.simulating import simulate
from gatehouse.platform.routing.cost_routing.table import RoutingPolicyRow, existing_groups, fetch_window, list_query
from gatehouse.policy.catalog import Strategy

router = APIRouter(prefix="/api/admin/cost-routing", tags=["Cost routing"], responses=RESPONSES)

LoadedPolicy = Annotated[RoutingPolicyRow, Depends(loaded(RoutingPolicyRow, "policy_id", RoutingPolicyNotFound))]
Search = Annotated[str | None, search_parameter("Part of the name or the description.")]
Sort = Literal["name", "-name", "strategy", "-strategy", "created_at", "-created_at"]
Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]
_CONFLICT: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "A group already has an enabled policy, or the organization an enabled default."}
}


@router.get("/policies", response_model=Policies)
async def list_routing_policies(
    caller: AdminReader,
    session: Session,
    window: Window,
    *,
    search: Search = None,
    enabled: bool | None = None,
    group_id: Id | None = None,
    strategy: Strategy | None = None,
    sort: Annotated[Sort, sort_parameter()] = "created_at",
) -> object:
    """Lists the organization's policies, by default all of them, the oldest first. `total` is the number of all
    matching policies, regardless of `limit` and `offset`."""
    query = list_query(search=search, enabled=enabled, group_id=group_id, strategy=strategy, sort=sort)
    rows, total = await fetch_window(session, query, window)
    return {"policies": [service.shown(row) for row in rows], "total": total}


@router.post("/policies", status_code=201, response_model=Policy, responses=_CONFLICT)
async def create_routing_policy(caller: Admin, body: NewPolicy, change: Changing) -> object:
    """Adds a policy. It applies to calls that start after the response, on every worker."""
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
        record = policy_records.record(row)
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
    """Returns which models answered requests, and the cost, for today or for the last 7 or 30 days including today
    (UTC)."""
    return await service.analytics(session, period, policy_id=policy_id, group_id=group_id)
