"""Calls between peers, on the port of the administration API (docs/outposts.md, "Several outposts, one budget"). Peers
are authenticated by the outposts' certificates and not by the admin token."""

from collections.abc import Callable
from typing import Annotated, Final, TypeVar
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from gatehouse.engine.rate_limits.selection import address_key
from gatehouse.foundation.errors import BadRequest, NotFound, Unavailable
from gatehouse.foundation.secrets.tokens import bearer_token
from gatehouse.outpost.admin.access import count, host_of
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.platform_link.peers import (
    PROOF,
    PeerMessage,
    ShareRequest,
)

T = TypeVar("T")

router = APIRouter(prefix="/peer", include_in_schema=False)

#: Maximum number of calls a minute of one peer, which sends its state every second and requests shares. It is also the
#: maximum of calls a minute from one address without a verified token.
_CALLS_PER_MINUTE: Final = 6_000


class StateNotStored(Unavailable):
    message = "The state cannot be stored now, because writing to the disk fails. Try again in a moment."


class InvalidPeerMessage(BadRequest):
    message = "The body is not a valid peer message."


async def among_peers(request: Request, host: Annotated[OutpostHost, Depends(host_of)]) -> OutpostHost:
    """Returns the host. Raises `NotFound` if this outpost has no peers."""
    if not host.peers.all:
        raise NotFound
    return host


async def _count_unproven(request: Request, host: OutpostHost) -> None:
    """Counts a call without a verified token by its address. Such calls are counted separately from peers' calls, so
    that a stranger at a peer's address cannot use up the limit of the peer's calls, which report its kill switch."""
    await count(host, f"peer-unproven|{address_key(request.state.client_address)}", _CALLS_PER_MINUTE, "peer")


async def proven(request: Request, host: Annotated[OutpostHost, Depends(among_peers)]) -> UUID:
    """Returns the id of the peer whose token the request carries. Raises `NoPeer`, `RateLimited`."""
    token = bearer_token(request.headers)
    if not host.peers.has_verified(token):
        await _count_unproven(request, host)
    peer_id = host.peers.verify_token(token)
    await count(host, f"peer|{peer_id}", _CALLS_PER_MINUTE, "peer")
    return peer_id


PeeredHost = Annotated[OutpostHost, Depends(among_peers)]
ProvenPeer = Annotated[UUID, Depends(proven)]


@router.get("/id")
async def read_id(host: PeeredHost, request: Request) -> Response:
    """Returns the outpost's id. A peer's token for this outpost must have this id as its audience."""
    await _count_unproven(request, host)
    return Response(msgspec.json.encode({"id": host.id}), media_type="application/json")


@router.post("/state")
async def exchange_state(peer_id: ProvenPeer, host: PeeredHost, request: Request) -> Response:
    message = await _body(request, msgspec.json.Decoder(PeerMessage).decode)
    if message.id != peer_id:
        raise InvalidPeerMessage
    try:
        return _answer(host, peer_id, await host.peers.receive(peer_id, message))
    except OSError:
        raise StateNotStored from None


@router.post("/share")
async def give_share(peer_id: ProvenPeer, host: PeeredHost, request: Request) -> Response:
    share_request = await _body(request, msgspec.json.Decoder(ShareRequest).decode)
    try:
        return _answer(host, peer_id, await host.peers.give(peer_id, share_request))
    except OSError:
        raise StateNotStored from None


async def _body(request: Request, decode: Callable[[bytes], T]) -> T:
    """Returns the decoded body, whose size the shell has limited. Raises `InvalidPeerMessage`."""
    try:
        return decode(await request.body())
    except msgspec.DecodeError:
        raise InvalidPeerMessage from None


def _answer(host: OutpostHost, peer_id: UUID, content: object) -> Response:
    return Response(
        msgspec.json.encode(content), media_type="application/json", headers={PROOF: host.peers.token(peer_id)}
    )
