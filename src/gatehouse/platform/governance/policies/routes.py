"""Endpoints of policy rules. `test` and `replay` are registered before `{policy_id}`, which would match them."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from gatehouse.foundation.http.lists import (
    OptionalWindow,
    optional_window,
    search_parameter,
    sort_parameter,
    windowed,
)
from gatehouse.platform.governance.policies import drafting, replaying, service, trying
from gatehouse.platform.governance.policies.schemas import (
    NewPolicy,
    NewPolicyReplay,
    PoliciesReplayed,
    Policy,
    PolicyTrial,
    PolicyTried,
    PolicyUpdate,
    Sort,
)
from gatehouse.platform.governance.policies.service import PolicyNotFound
from gatehouse.platform.governance.policies.table import PolicyRow, list_query
from gatehouse.platform.governance.replays import recorded
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost
from gatehouse.policy.governance import PolicyAction

router = APIRouter(prefix="/api/admin/policies", tags=["Policies"], responses=RESPONSES)

LoadedPolicy = Annotated[PolicyRow, Depends(loaded(PolicyRow, "policy_id", PolicyNotFound))]
Search = Annotated[str | None, search_parameter("Part of the name or the description.")]
Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]
_CONFLICT: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "The name is taken, or the limit of rules is reached."}
}


@router.get("", response_model=list[Policy])
async def list_policies(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Search = None,
    enabled: Annotated[bool | None, Query(description="Only enabled, or only disabled ones.")] = None,
    action: Annotated[PolicyAction | None, Query(description="Only rules with this action.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "priority",
) -> object:
    """Lists the organization's policy rules, by default all of them, in the order of evaluation. The header
    `X-Total-Count` is the number of all matching rules, regardless of `limit` and `offset`."""
    query = list_query(search=search, enabled=enabled, action=action, sort=sort)
    return await windowed(session, query, window, response)


@router.post("", status_code=201, response_model=Policy, responses=_CONFLICT)
async def create_policy(caller: Admin, body: NewPolicy, change: Changing) -> object:
    """Adds a rule. For an invalid condition the response is 400 with the reason and the position, and nothing is
    stored."""
    return await service.create(change, body)


@router.post("/test", response_model=PolicyTried)
async def test_policies(
    caller: Admin, body: PolicyTrial, request: Request, transactions: InSplitTransactions, host: TheHost
) -> PolicyTried:
    """Evaluates a condition, or the active rules, on a described request. Stores nothing."""
    return await trying.try_out(transactions, host.ports, body, request.scope["state"]["client_address"])


@router.post(
    "/replay",
    response_model=PoliciesReplayed,
    responses={429: {"description": "A replay is running on this worker."}},
)
async def replay_policies(
    caller: Admin, body: NewPolicyReplay, transactions: InSplitTransactions, host: TheHost
) -> PoliciesReplayed:
    """Evaluates a draft of policy rules on samples of the organization's own requests, and compares it with the active
    rules and with the recorded decisions. Changes nothing. The audit chain records the access to the samples.
    """
    snapshot = await host.ports.policies.current(transactions.tenant_id)
    draft = await drafting.compile_draft(transactions, body, snapshot.dlp.records)
    samples = await recorded.read(
        transactions, host.sealer, body.recorded, draft="policies", label_kind="expected_action"
    )
    return await replaying.replay(draft, snapshot.rules, samples)


@router.get("/{policy_id}", response_model=Policy)
async def read_policy(caller: AdminReader, policy: LoadedPolicy) -> object:
    """Returns one rule."""
    return policy


@router.put("/{policy_id}", response_model=Policy, responses=_CONFLICT)
async def update_policy(caller: Admin, policy: LoadedPolicy, body: PolicyUpdate, change: Changing) -> object:
    """Changes the fields in the body. The change is active when the response arrives."""
    return await service.update(change, policy, body)


@router.delete("/{policy_id}", status_code=204)
async def delete_policy(caller: Admin, policy: LoadedPolicy, change: Changing) -> None:
    """Removes a rule."""
    await service.delete(change, policy)
