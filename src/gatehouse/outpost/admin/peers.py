"""What peers say to each other, on the administration's port (decisions 9). Certificates open it, and the admin token
does not."""

from collections.abc import Callable
from typing import Annotated, Final, TypeVar
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from gatehouse.engine.limits import address_key
from gatehouse.foundation.errors import BadRequest, NotFound, PayloadTooLarge, Unavailable
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.outpost.admin.access import count, host_of
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.peers import MOST_BYTES, PROOF, Told, Wanted

T = TypeVar("T")

router = APIRouter(prefix="/peer", include_in_schema=False)

#: Calls a minute of one peer, which sends its state each second and asks for shares; and calls a minute from one
#: address whose token is not verified.
_PER_MINUTE: Final = 6_000


class NotKept(Unavailable):
    message = "It cannot be written down here now."


class BadTalk(BadRequest):
    message = "This is not what peers say."


async def among_peers(request: Request, host: Annotated[OutpostHost, Depends(host_of)]) -> OutpostHost:
    """404 where this outpost has no peers."""
    if not host.peers.all:
        raise NotFound
    return host


async def _count_unproven(request: Request, host: OutpostHost) -> None:
    """Counts a call without a verified token by its address, apart from peers' calls: a stranger behind a peer's
    address must not use up the limit of the calls by which that peer reports its kill switch."""
    addresses: ClientAddresses = request.app.state.addresses
    await count(host, f"peer-unproven|{address_key(addresses.of_scope(request.scope))}", _PER_MINUTE, "peer")


async def proven(request: Request, host: Annotated[OutpostHost, Depends(among_peers)]) -> UUID:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else ""
    if not host.peers.has_verified(token):
        await _count_unproven(request, host)
    peer_id = host.peers.proven(token)
    await count(host, f"peer|{peer_id}", _PER_MINUTE, "peer")
    return peer_id


Meshed = Annotated[OutpostHost, Depends(among_peers)]
Shown = Annotated[UUID, Depends(proven)]


@router.get("/id")
async def read_id(host: Meshed, request: Request) -> Response:
    """Whom a token has to name."""
    await _count_unproven(request, host)
    return Response(msgspec.json.encode({"id": host.id}), media_type="application/json")


@router.post("/state")
async def talk(peer_id: Shown, host: Meshed, request: Request) -> Response:
    told = await _body(request, msgspec.json.Decoder(Told).decode)
    if told.id != peer_id:
        raise BadTalk
    try:
        return _answer(host, peer_id, await host.peers.heard(peer_id, told))
    except OSError:
        raise NotKept from None


@router.post("/share")
async def give_share(peer_id: Shown, host: Meshed, request: Request) -> Response:
    wanted = await _body(request, msgspec.json.Decoder(Wanted).decode)
    try:
        return _answer(host, peer_id, await host.peers.give(peer_id, wanted))
    except OSError:
        raise NotKept from None


async def _body(request: Request, decode: Callable[[bytes], T]) -> T:
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > MOST_BYTES:
            raise PayloadTooLarge
    try:
        return decode(content)
    except msgspec.DecodeError:
        raise BadTalk from None


def _answer(host: OutpostHost, peer_id: UUID, told: object) -> Response:
    return Response(
        msgspec.json.encode(told), media_type="application/json", headers={PROOF: host.peers.token(peer_id)}
    )
