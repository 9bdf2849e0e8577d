"""Endpoints of approvals."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from gatehouse.foundation.http.lists import PageWindow, page_window, sort_parameter
from gatehouse.platform.governance.approvals import service
from gatehouse.platform.governance.approvals.schemas import Approval, ApprovalsPage, Decision, Sort, Status
from gatehouse.platform.governance.approvals.service import ApprovalNotFound, MayNotApprove, SortsPendingOnly
from gatehouse.platform.governance.approvals.table import ApprovalRow, page_of_approvals
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["Approvals"], responses=RESPONSES)

_BASE = "/api/admin/approvals"

LoadedApproval = Annotated[ApprovalRow, Depends(loaded(ApprovalRow, "approval_id", ApprovalNotFound))]
Window = Annotated[PageWindow, Depends(page_window(default=50, maximum=200))]


@router.get(_BASE, response_model=ApprovalsPage)
async def list_approvals(
    caller: AdminReader,
    session: Session,
    window: Window,
    *,
    status: Status | None = None,
    sort: Annotated[Sort, sort_parameter()] = "-created_at",
) -> dict[str, Any]:
    """Lists approvals of all statuses, by default newest first. `expires_at` sorts only the approvals that wait:
    without `status=pending`, the response is 400 `invalid_sort`."""
    if status != "pending" and sort.endswith("expires_at"):
        raise SortsPendingOnly
    rows, total = await page_of_approvals(session, window, status, sort)
    return window.envelope("items", rows, total)


@router.get(_BASE + "/{approval_id}", response_model=Approval)
async def read_approval(caller: AdminReader, approval: LoadedApproval) -> object:
    """Returns one approval: its reason and its status. It never contains text of the request."""
    return approval


@router.post(
    _BASE + "/{approval_id}/approve",
    response_model=Approval,
    responses={403: {"description": "`own_request`: the request is your own. `person_required`: only users approve."}},
)
async def approve_request(
    caller: Admin,
    approval: LoadedApproval,
    change: Changing,
    *,
    transactions: InSplitTransactions,
    host: TheHost,
    decision: Decision | None = None,
) -> object:
    """Approves the request, which then proceeds. The response is 409 if the approval is not pending."""
    try:
        return await service.approve(change, caller, approval, decision, by_machines=host.settings.approval_by_machines)
    except MayNotApprove as error:
        async with transactions.changing() as separate_change:
            service.record_refusal(separate_change, approval, error)
        raise


@router.post(_BASE + "/{approval_id}/deny", response_model=Approval)
async def deny_request(
    caller: Admin, approval: LoadedApproval, change: Changing, decision: Decision | None = None
) -> object:
    """Denies the request. Its caller gets 403 with `X-DLP-Action: CANCEL`. The response is 409 if the approval is not
    pending."""
    return service.deny(change, caller, approval, decision)
