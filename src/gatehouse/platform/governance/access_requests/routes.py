"""Endpoints of access requests."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from gatehouse.foundation.http.lists import PageWindow, page_window, sort_parameter
from gatehouse.platform.governance.access_requests import service
from gatehouse.platform.governance.access_requests.errors import AccessRequestNotFound, SortsPendingOnly
from gatehouse.platform.governance.access_requests.schemas import (
    AccessApproval,
    AccessRequest,
    AccessRequestsPage,
    NewAccessRequest,
    RequestableModelsPage,
    Sort,
    Status,
)
from gatehouse.platform.governance.access_requests.table import AccessRequestRow, page_of_requests
from gatehouse.platform.governance.approvals.schemas import Decision
from gatehouse.platform.governance.approvals.service import MayNotApprove
from gatehouse.platform.request.callers import (
    RESPONSES,
    Admin,
    AdminReader,
    CallerLacksScope,
    PersonReader,
    PersonWriter,
)
from gatehouse.platform.request.injected import Changing, InSplitTransactions, Session, loaded
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["Access requests"], responses=RESPONSES)

_OWN = "/api/access-requests"
_ALL = "/api/admin/access-requests"

_any_request = loaded(AccessRequestRow, "access_request_id", AccessRequestNotFound)


async def _own_request(
    caller: PersonWriter, row: Annotated[AccessRequestRow, Depends(_any_request)]
) -> AccessRequestRow:
    if row.user_id != caller.user_id:
        raise AccessRequestNotFound
    return row


LoadedRequest = Annotated[AccessRequestRow, Depends(_any_request)]
OwnAccessRequest = Annotated[AccessRequestRow, Depends(_own_request)]
Window = Annotated[PageWindow, Depends(page_window(default=50, maximum=200))]
Order = Annotated[Sort, sort_parameter()]


@router.get(_OWN, response_model=AccessRequestsPage)
async def list_own_access_requests(
    caller: PersonReader, session: Session, window: Window, status: Status | None = None, sort: Order = "-created_at"
) -> dict[str, Any]:
    """Lists your own requests, by default newest first. With the `sort` `limit_usd`, requests without this limit come
    last."""
    rows, total = await page_of_requests(session, window, status=status, sort=sort, user_id=caller.user_id)
    return window.envelope("items", rows, total)


@router.post(
    _OWN,
    status_code=201,
    response_model=AccessRequest,
    responses={
        409: {
            "description": "You have a pending request for the same model or period, or you or the organization"
            " have the maximum number of pending requests."
        }
    },
)
async def create_access_request(caller: PersonWriter, body: NewAccessRequest, change: Changing) -> object:
    """Requests a restricted model, or a higher limit of your own budget. An administrator decides."""
    return await service.create(change, caller, body)


@router.get(_OWN + "/models", response_model=RequestableModelsPage)
async def list_requestable_models(
    caller: PersonReader,
    session: Session,
    window: Window,
    search: Annotated[
        str | None, Query(max_length=255, description="A part of the display name or of `provider/model-id`.")
    ] = None,
) -> dict[str, Any]:
    """Lists the models that you can request, by name. They are active and restricted, your groups have no rule for
    them, and you have no pending request for them."""
    return await service.page_of_models(session, caller, window, search)


@router.delete(_OWN + "/{access_request_id}", status_code=204)
async def withdraw_access_request(caller: PersonWriter, row: OwnAccessRequest, change: Changing) -> None:
    """Withdraws one of your own requests. The response is 409 if the request is not pending."""
    service.withdraw(change, row)


@router.get(_ALL, response_model=AccessRequestsPage)
async def list_access_requests(
    caller: AdminReader, session: Session, window: Window, status: Status | None = None, sort: Order = "-created_at"
) -> dict[str, Any]:
    """Lists the requests of all users, by default newest first. `sort=limit_usd` and `sort=-limit_usd` require
    `status=pending`; otherwise the response is 400 `invalid_sort`. Requests without this limit come last."""
    # Only pending requests can be sorted by the limit, because their number is limited. Other requests are sorted by
    # time, for which there is an index.
    if status != "pending" and sort.endswith("limit_usd"):
        raise SortsPendingOnly
    rows, total = await page_of_requests(session, window, status=status, sort=sort)
    return window.envelope("items", rows, total)


@router.post(
    _ALL + "/{access_request_id}/approve",
    response_model=AccessRequest,
    responses={
        403: {"description": "`own_request`: the request is your own. `person_required`: only users approve."},
        409: {
            "description": "The request is not pending, or the approval would have no effect. The message contains"
            " the reason."
        },
    },
)
async def approve_access_request(
    caller: Admin,
    row: LoadedRequest,
    change: Changing,
    *,
    transactions: InSplitTransactions,
    host: TheHost,
    body: AccessApproval | None = None,
) -> object:
    """Approves the request and grants it: the requester becomes a member of a group that allows the model, or gets a
    budget. The grant is active on every worker when the response is sent."""
    # An approval changes groups, which requires the scope groups:write in addition to admin:write.
    if row.kind == "model" and not caller.has_scope("groups:write"):
        raise CallerLacksScope("The credential lacks the scope groups:write.")
    try:
        return await service.approve(
            change, caller, row, body or AccessApproval(), by_machines=host.settings.approval_by_machines
        )
    except MayNotApprove as error:
        async with transactions.changing() as separate_change:
            service.record_refusal(separate_change, row, error)
        raise


@router.post(_ALL + "/{access_request_id}/deny", response_model=AccessRequest)
async def deny_access_request(
    caller: Admin, row: LoadedRequest, change: Changing, body: Decision | None = None
) -> object:
    """Denies the request. The response is 409 if the request is not pending."""
    return service.deny(change, caller, row, body or Decision())
