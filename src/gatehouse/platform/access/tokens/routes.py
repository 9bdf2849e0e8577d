"""Endpoints of tokens and of the key set. Neither has an authenticated caller: a token request contains the client's
credentials, and the key set is public."""

from typing import Final

from fastapi import APIRouter, Request, Response

from gatehouse.administration.changes import RequestOrigin
from gatehouse.foundation import jwt
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.tokens import codes, form
from gatehouse.platform.access.tokens.errors import NO_STORE, UnsupportedGrantType
from gatehouse.platform.access.tokens.schemas import TOKEN_FORM, AccessToken, KeySet, PersonTokens, TokenError
from gatehouse.platform.access.tokens.service import TokenIssuer
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(tags=["Tokens"])

#: Verifiers outside this platform reload the keys after `max-age`, and at once for an unknown key id.
_KEY_SET_HEADERS: Final = {"Cache-Control": "public, max-age=300"}


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
    """Returns an access token for a client's id and secret (grant `client_credentials`), or a user's tokens for a code
    from `/oauth/authorize` (grant `authorization_code`).

    The form or HTTP Basic contains id and secret. A public client sends only its id, and authenticates by the code
    verifier."""
    fields = await form.read(request)
    response.headers.update(NO_STORE)
    (grant,) = form.required_fields(fields, "grant_type")
    audience = form.audience(fields, host.issuer)
    origin, token_issuer = RequestOrigin.of(request), _token_issuer(request, host)
    match grant:
        case "client_credentials":
            return await token_issuer.issue_for_client(
                form.client_credentials(request, fields), fields.get("scope"), origin, audience=audience
            )
        case "authorization_code":
            credentials = form.client_credentials(request, fields, allow_public=True)
            code, redirect_uri, verifier = form.required_fields(fields, "code", "redirect_uri", "code_verifier")
            client, tenant_id = await token_issuer.authenticate_for_code(credentials, tokens.digest(code), origin)
            exchange = codes.CodeExchange(client.client_id, code, redirect_uri, verifier, audience)
            return await codes.redeem(request, host, exchange, tenant_id)
    raise UnsupportedGrantType


@router.get("/.well-known/jwks.json", response_model=KeySet)
async def key_set(response: Response, host: TheHost) -> object:
    """Returns the public keys of all tokens that may still be valid."""
    response.headers.update(_KEY_SET_HEADERS)
    return jwt.key_set(host.replica.signing_keys.values())


def _token_issuer(request: Request, host: Host) -> TokenIssuer:
    """Return the worker's token issuer, created at its first token request."""
    state = request.app.state
    if not hasattr(state, "token_issuer"):
        state.token_issuer = TokenIssuer(host.database, host.signer, host.clock)
    token_issuer: TokenIssuer = state.token_issuer
    return token_issuer
