"""The outposts' endpoints (decisions 8, Wires)."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from gatehouse.ingress.credentials import presented
from gatehouse.platform.callers import RESPONSES, OutpostCaller, PlatformClient
from gatehouse.platform.operations.outposts import polling, service
from gatehouse.platform.operations.outposts.polling import Waiting
from gatehouse.platform.operations.outposts.schemas import NewTrust, Records, RecordsStored, Trust
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing

router = APIRouter(tags=["Outposts"], responses=RESPONSES)

#: Seconds: less than what proxies in between wait for an answer.
MOST_SECONDS: Final = 55
_JOSE: Final = "application/jose"
_BUNDLE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The bundle, as a JWS in compact form. `ETag` names it.",
        "content": {_JOSE: {"schema": {"type": "string"}}},
    },
    304: {"description": "Nothing has changed. With `Retry-After`: too many wait already, so this was answered now."},
}


def _waiting(request: Request) -> Waiting:
    """The worker's, made when the first outpost comes."""
    state = request.app.state
    if not hasattr(state, "outposts_waiting"):
        state.outposts_waiting = Waiting()
    waiting: Waiting = state.outposts_waiting
    return waiting


@router.put("/v1/platform/outpost-trust", response_model=Trust)
async def set_outpost_trust(caller: PlatformClient, body: NewTrust, change: Changing) -> Trust:
    """Says whom the platform believes to be an outpost, and of which organization. All of it each time: a certificate
    whose serial number is not in it is refused from the answer on."""
    return await service.trust(change, body)


@router.get("/v1/outposts/policy-bundle", response_class=Response, responses=_BUNDLE)
async def read_policy_bundle(
    caller: OutpostCaller,
    request: Request,
    host: TheHost,
    waiting: Annotated[Waiting, Depends(_waiting)],
    *,
    wait: Annotated[
        int, Query(ge=0, le=MOST_SECONDS, description="Seconds to wait for another one than those in `If-None-Match`.")
    ] = 0,
    if_none_match: Annotated[str, Header(max_length=4096)] = "",
) -> Response:
    """The policy of the outpost's organization, and who may call, signed for this outpost alone. Providers' credentials
    are in it where the organization sends them (`outpost_provider_credentials`), sealed to the certificate's key."""
    token = presented(request.state.received) or ""
    polled = await polling.bundle(caller, host, waiting, token=token, known=if_none_match, seconds=wait)
    headers = {"ETag": polled.etag}
    if polled.retry_after is not None:
        headers["Retry-After"] = str(polled.retry_after)
    if polled.signed is None:
        return Response(status_code=304, headers=headers)
    return Response(polled.signed, media_type=_JOSE, headers=headers)


@router.post(
    "/v1/outposts/records",
    response_model=RecordsStored,
    responses={409: {"description": "Records are missing before these: `expected_sequence` is the one to come next."}},
)
async def store_records(caller: OutpostCaller, body: Records, host: TheHost) -> object:
    """Takes what the outpost has answered, in order and once each: what was there already is passed over."""
    return await service.store(caller, host, body)
