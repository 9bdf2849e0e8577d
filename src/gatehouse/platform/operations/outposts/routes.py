"""The endpoints of outposts (docs/outpost-protocol.md)."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from gatehouse.foundation.http.lists import PageWindow, page_window, sort_parameter
from gatehouse.ingress.credentials import credential_of
from gatehouse.platform.operations.outposts import polling, service
from gatehouse.platform.operations.outposts.polling import WaitingOutposts
from gatehouse.platform.operations.outposts.schemas import NewTrust, OutpostList, Records, RecordsStored, Sort, Trust
from gatehouse.platform.request.callers import RESPONSES, AdminReader, OutpostCaller, PlatformClient
from gatehouse.platform.request.injected import Changing
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["Outposts"], responses=RESPONSES)

Window = Annotated[PageWindow, Depends(page_window(default=50, maximum=200))]

#: Longest wait, which is less than the usual response timeout of proxies (60 seconds).
MAX_WAIT_SECONDS: Final = 55
_JOSE: Final = "application/jose"
_BUNDLE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The bundle, as a JWS in compact form. `ETag` identifies it.",
        "content": {_JOSE: {"schema": {"type": "string"}}},
    },
    304: {
        "description": "The bundle is unchanged. With `Retry-After`: too many outposts wait, so the call did not wait."
    },
}


async def _waiting(request: Request) -> WaitingOutposts:
    """Return the registry of the outposts that wait on this worker. The first call creates it."""
    state = request.app.state
    if not hasattr(state, "outposts_waiting"):
        state.outposts_waiting = WaitingOutposts()
    waiting: WaitingOutposts = state.outposts_waiting
    return waiting


@router.get("/api/v1/admin/outposts", response_model=OutpostList)
async def list_outposts(
    caller: AdminReader, window: Window, host: TheHost, *, sort: Annotated[Sort, sort_parameter()] = "-seen_at"
) -> object:
    """Returns the outposts of the organization, by default the one that connected last first. Each has the time of its
    last connection, its active policy, its certificate, and the number of its uploaded records. Outposts without a
    value for the `sort` come last. The portal registers, names and revokes outposts."""
    return await service.listed(caller, host, window, sort)


@router.put("/v1/platform/outpost-trust", response_model=Trust)
async def set_outpost_trust(caller: PlatformClient, body: NewTrust, change: Changing) -> Trust:
    """Replaces the trusted outposts and their organizations. The body is the complete list. After the response,
    certificates whose serial numbers are not in the list are refused."""
    return await service.trust(change, body)


@router.get("/v1/outposts/policy-bundle", response_class=Response, responses=_BUNDLE)
async def read_policy_bundle(
    caller: OutpostCaller,
    request: Request,
    host: TheHost,
    waiting: Annotated[WaitingOutposts, Depends(_waiting)],
    *,
    wait: Annotated[
        int,
        Query(
            ge=0,
            le=MAX_WAIT_SECONDS,
            description="Maximum time in seconds to wait for a bundle that is not in `If-None-Match`.",
        ),
    ] = 0,
    if_none_match: Annotated[str, Header(max_length=4096)] = "",
) -> Response:
    """Returns the policy and the callers of the outpost's organization, signed for this outpost only. If the
    organization enables it (`outpost_provider_credentials`), the bundle includes the credentials of providers and MCP
    servers, sealed to the key of the certificate."""
    token = credential_of(request.state.received) or ""
    polled = await polling.bundle(caller, host, waiting, token=token, if_none_match=if_none_match, wait_seconds=wait)
    headers = {"ETag": polled.etag}
    if polled.retry_after is not None:
        headers["Retry-After"] = str(polled.retry_after)
    if polled.signed is None:
        return Response(status_code=304, headers=headers)
    return Response(polled.signed, media_type=_JOSE, headers=headers)


@router.post(
    "/v1/outposts/records",
    response_model=RecordsStored,
    responses={
        409: {
            "description": "Earlier records are missing. `expected_sequence` is the number of the next record to send."
        }
    },
)
async def store_records(caller: OutpostCaller, body: Records, host: TheHost) -> object:
    """Stores records of the outpost's requests in order. Each record is stored once; records that are already stored
    are skipped."""
    return await service.store(caller, host, body)
