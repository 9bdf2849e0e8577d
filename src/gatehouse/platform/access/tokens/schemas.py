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
            description="For GET /oauth/userinfo, and for this API as the user, within the scopes.",
            examples=["eyJhbGciOiJSUzI1NiIsImtpZCI6Ii4uLiJ9.eyJzdWIiOiIuLi4ifQ.c2ln"],
        ),
    ]
    token_type: Literal["Bearer"]
    expires_in: Annotated[int, Field(description="Seconds.", examples=[900])]
    scope: Annotated[str, Field(description="The scopes that it has.", examples=["openid email chat:write"])]
    id_token: Annotated[str, Field(description="The user's claims: a JWT for this client (RS256).")]


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
                        "client_id": {"type": "string", "format": "uuid", "description": "Or as HTTP Basic."},
                        "client_secret": {"type": "string", "description": "Or as HTTP Basic."},
                        "code": {"type": "string", "description": "From `/oauth/authorize`; valid once, for 60 s."},
                        "redirect_uri": {"type": "string", "description": "The one that received the code."},
                        "code_verifier": {
                            "type": "string",
                            "description": "Verifier of the code's challenge (RFC 7636).",
                        },
                        "scope": {
                            "type": "string",
                            "description": "Some of the client's scopes, separated by spaces. Omitted: all of them.",
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
