"""`POST /oauth/token` and the key set. Neither has a caller: the credentials are in the request, or nobody's secret."""

from typing import Final

from fastapi import APIRouter, Request, Response

from gatehouse.foundation import jwt, tokens
from gatehouse.platform.access.tokens import codes, form
from gatehouse.platform.access.tokens.errors import NO_STORE, UnsupportedGrantType
from gatehouse.platform.access.tokens.schemas import TOKEN_FORM, AccessToken, KeySet, PersonTokens, TokenError
from gatehouse.platform.access.tokens.service import Origin, TokenDesk
from gatehouse.platform.ports import Host, TheHost

router = APIRouter(tags=["Tokens"])

#: Verifiers elsewhere look again after so long at the latest, and at once when they meet an unknown key id.
_KEYS_CACHED: Final = {"Cache-Control": "public, max-age=300"}


@router.post(
    "/oauth/token",
    response_model=AccessToken | PersonTokens,
    openapi_extra=TOKEN_FORM,
    responses={
        400: {"description": "The request, its grant type, its code or its scope is not valid.", "model": TokenError},
        401: {"description": "The client is unknown or disabled, or its secret is wrong.", "model": TokenError},
    },
)
async def issue_token(request: Request, response: Response, host: TheHost) -> AccessToken | PersonTokens:
    """An access token for a client's id and secret (grant `client_credentials`), or a person's tokens for the code with
    which they came back from `/oauth/authorize` (grant `authorization_code`).

    Id and secret are in the form, or HTTP Basic. A public client sends its id alone, and proves itself by the code's
    verifier."""
    fields = await form.read(request)
    response.headers.update(NO_STORE)
    (grant,) = form.needed(fields, "grant_type")
    state = request.scope["state"]
    origin, desk = Origin(state["request_id"], state["client_address"]), _desk(request, host)
    match grant:
        case "client_credentials":
            return await desk.by_client_credentials(form.client_of(request, fields), fields.get("scope"), origin)
        case "authorization_code":
            given = form.client_of(request, fields, or_public=True)
            code, redirect_uri, verifier = form.needed(fields, "code", "redirect_uri", "code_verifier")
            client, tenant_id = await desk.client_and_tenant_of(given, tokens.digest(code), origin)
            trade = codes.Trade(client.client_id, code, redirect_uri, verifier)
            return await codes.redeem(request, host, trade, tenant_id)
    raise UnsupportedGrantType


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
