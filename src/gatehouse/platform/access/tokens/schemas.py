"""Request and response bodies of the token endpoints."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody


class AccessToken(ResponseBody):
    access_token: Annotated[str, Field(examples=["eyJhbGciOiJSUzI1NiIsImtpZCI6Ii4uLiJ9.eyJzdWIiOiIuLi4ifQ.c2ln"])]
    token_type: Literal["bearer"]
    expires_in: Annotated[int, Field(description="Seconds.", examples=[3600])]
    scope: Annotated[str, Field(description="The token's scopes.", examples=["api:read chat:write"])]


class PersonTokens(ResponseBody):
    """The tokens for an authorization code (OpenID Connect Core, 3.1.3.3)."""

    access_token: Annotated[
        str,
        Field(
            description="For GET /oauth/userinfo, and for this API in the name of the user, within the scopes.",
            examples=["eyJhbGciOiJSUzI1NiIsImtpZCI6Ii4uLiJ9.eyJzdWIiOiIuLi4ifQ.c2ln"],
        ),
    ]
    token_type: Literal["Bearer"]
    expires_in: Annotated[int, Field(description="Seconds.", examples=[900])]
    scope: Annotated[str, Field(description="The scopes of the access token.", examples=["openid email chat:write"])]
    id_token: Annotated[str, Field(description="A JWT for this client, with the user's claims (RS256).")]


class TokenError(ResponseBody):
    error: Annotated[str, Field(examples=["invalid_client"])]
    error_description: str


class PublicKey(ResponseBody):
    kty: Literal["RSA"]
    use: Literal["sig"]
    alg: Literal["RS256"]
    kid: str
    n: str
    e: str


class KeySet(ResponseBody):
    keys: list[PublicKey]


#: OpenAPI description of the form. It is parsed by hand, because frameworks accept repeated fields.
TOKEN_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["grant_type"],
                    "properties": {
                        "grant_type": {"type": "string", "enum": ["client_credentials", "authorization_code"]},
                        "client_id": {
                            "type": "string",
                            "format": "uuid",
                            "description": "The client's id. It can be sent by HTTP Basic instead.",
                        },
                        "client_secret": {
                            "type": "string",
                            "description": "The client's secret. It can be sent by HTTP Basic instead.",
                        },
                        "code": {
                            "type": "string",
                            "description": "A code from `/oauth/authorize`. It is valid once, for 60 s.",
                        },
                        "redirect_uri": {
                            "type": "string",
                            "description": "The redirect URI of the authorization request.",
                        },
                        "code_verifier": {
                            "type": "string",
                            "description": "Verifier of the code's challenge (RFC 7636).",
                        },
                        "resource": {
                            "type": "string",
                            "description": "The only address for which the token shall be valid: `PUBLIC_URL` with"
                            " `/mcp` or `/mcp/{server}` (RFC 8707).",
                        },
                        "scope": {
                            "type": "string",
                            "description": "Some of the client's scopes, separated by spaces. If omitted, all of them.",
                        },
                    },
                },
                "example": {
                    "grant_type": "client_credentials",
                    "client_id": "5f1f9c1e-6a0b-4c52-9a53-0d8f6c3b2a10",
                    "client_secret": "gcs_...",
                    "scope": "chat:write",
                },
            }
        },
    }
}
