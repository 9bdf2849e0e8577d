"""Endpoints of the OpenID provider (docs/openid.md; OpenID Connect Core and Discovery)."""

from typing import Any, Final

from fastapi import APIRouter, Request, Response

from gatehouse.foundation.identity import SCOPES
from gatehouse.foundation.secrets.tokens import bearer_token
from gatehouse.platform.access.openid import authorization, service
from gatehouse.platform.access.openid.schemas import AUTHORIZATION_FORM, AUTHORIZATION_QUERY, Discovery, UserInfo
from gatehouse.platform.access.tokens.claims import BY_SCOPE
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["OpenID"])

_HTML_CONTENT: Final[dict[str, Any]] = {"content": {"text/html": {"schema": {"type": "string"}}}}
_AUTHORIZE_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    303: {"description": "Back to the application with `code` or `error`, or to the sign-in page first."},
    400: {"description": "The client or the redirect URI is not valid. The response is a page.", **_HTML_CONTENT},
    404: {"description": "PUBLIC_URL is not set.", **_HTML_CONTENT},
    429: {"description": "Too many requests.", **_HTML_CONTENT},
    503: {"description": "Closed for maintenance.", **_HTML_CONTENT},
}

_USERINFO_ROUTE: Final[dict[str, Any]] = {
    "response_model": UserInfo,
    "response_model_exclude_unset": True,
    "openapi_extra": {"security": [{"bearer": []}]},
    "responses": {401: {"description": "The access token is not valid, has expired, or its session has ended."}},
}


@router.get(
    authorization.PATH,
    status_code=303,
    response_class=Response,
    responses=_AUTHORIZE_RESPONSES,
    openapi_extra=AUTHORIZATION_QUERY,
)
async def authorize(request: Request, host: TheHost) -> Response:
    """Signs a user in for an application. A browser with a session is redirected back with a code at once. Any other
    browser is redirected to the sign-in page first. For browsers."""
    return await service.authorize(request, host)


@router.post(
    authorization.PATH,
    status_code=303,
    response_class=Response,
    responses=_AUTHORIZE_RESPONSES | {303: {"description": "To the same endpoint by GET."}},
    openapi_extra=AUTHORIZATION_FORM,
)
async def authorize_by_form(request: Request) -> Response:
    """Accepts the same parameters in a form (OpenID Connect Core, 3.1.2.1). For browsers. The response redirects to the
    GET endpoint, because a browser sends the session cookie with that request but not with another site's form."""
    return await service.redirect_to_query(request)


# OpenID Connect Core, 5.3, requires both methods.
@router.get("/oauth/userinfo", **_USERINFO_ROUTE)
@router.post("/oauth/userinfo", **_USERINFO_ROUTE)
async def userinfo(request: Request, host: TheHost) -> object:
    """Returns the claims of the user. Accepts only the access token that an application received for its code."""
    return await service.userinfo(host, bearer_token(request.headers) or None)


@router.get(
    "/.well-known/openid-configuration",
    response_model=Discovery,
    responses={404: {"description": "PUBLIC_URL is not set."}},
)
async def discovery(response: Response, host: TheHost) -> Discovery:
    """Returns the metadata of this OpenID provider. Requires the setting PUBLIC_URL."""
    issuer = service.issuer(host)
    base = issuer.rstrip("/")
    response.headers["Cache-Control"] = "public, max-age=300"
    return Discovery(
        issuer=issuer,
        authorization_endpoint=base + authorization.PATH,
        token_endpoint=f"{base}/oauth/token",
        userinfo_endpoint=f"{base}/oauth/userinfo",
        jwks_uri=f"{base}/.well-known/jwks.json",
        response_types_supported=["code"],
        response_modes_supported=["query"],
        grant_types_supported=["authorization_code", "client_credentials"],
        subject_types_supported=["public"],
        id_token_signing_alg_values_supported=["RS256"],
        token_endpoint_auth_methods_supported=["client_secret_basic", "client_secret_post", "none"],
        code_challenge_methods_supported=["S256"],
        scopes_supported=[*BY_SCOPE, *sorted(SCOPES)],
        claims_supported=[
            *(claim for names in BY_SCOPE.values() for claim in names),
            "iss", "aud", "exp", "iat", "auth_time", "nonce", "amr", "sid",
        ],
        prompt_values_supported=["none", "login", "select_account"],
        authorization_response_iss_parameter_supported=True,
        request_uri_parameter_supported=False,
    )  # fmt: skip
