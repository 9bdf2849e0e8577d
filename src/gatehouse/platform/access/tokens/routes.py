"""`POST /oauth/token` and the key set. Neither has a caller: the credentials are in the request, or nobody's secret."""

from typing import Final

from fastapi import APIRouter, Request, Response

from gatehouse.foundation import jwt
from gatehouse.platform.access.tokens import form
from gatehouse.platform.access.tokens.errors import NO_STORE, InvalidTokenRequest, UnsupportedGrantType
from gatehouse.platform.access.tokens.schemas import TOKEN_FORM, AccessToken, KeySet, TokenError
from gatehouse.platform.access.tokens.service import Origin, TokenDesk
from gatehouse.platform.ports import Host, TheHost

router = APIRouter(tags=["Tokens"])

#: Verifiers elsewhere look again after so long at the latest, and at once when they meet an unknown key id.
_KEYS_CACHED: Final = {"Cache-Control": "public, max-age=300"}


@router.post(
    "/oauth/token",
    response_model=AccessToken,
    openapi_extra=TOKEN_FORM,
    responses={
        400: {"description": "The request, its grant type or its scope is not valid.", "model": TokenError},
        401: {"description": "The client is unknown or disabled, or its secret is wrong.", "model": TokenError},
    },
)
async def issue_token(request: Request, response: Response, host: TheHost) -> AccessToken:
    """An access token for a client's id and secret (grant `client_credentials`), in the form or as HTTP Basic."""
    fields = await form.read(request)
    grant = fields.get("grant_type")
    if grant is None:
        raise InvalidTokenRequest("grant_type: missing.")
    if grant != "client_credentials":
        raise UnsupportedGrantType
    given = form.client_of(request, fields)
    state = request.scope["state"]
    origin = Origin(state["request_id"], state["client_address"])
    response.headers.update(NO_STORE)
    return await _desk(request, host).by_client_credentials(given, fields.get("scope"), origin)


@router.get("/.well-known/jwks.json", response_model=KeySet)
async def key_set(response: Response, host: TheHost) -> object:
    """The public keys of every token that may still be good."""
    response.headers.update(_KEYS_CACHED)
    return jwt.key_set(host.replica.signing_keys.values())


def _desk(request: Request, host: Host) -> TokenDesk:
    """The worker's, made at its first token request."""
    state = request.app.state
    if not hasattr(state, "token_desk"):
        state.token_desk = TokenDesk(host.database, host.signer, host.clock)
    desk: TokenDesk = state.token_desk
    return desk
