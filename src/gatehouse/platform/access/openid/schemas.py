"""Request and response bodies of the OpenID provider (OpenID Connect Core, 5.3; OpenID Connect Discovery, 3)."""

from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.platform.access.users.schemas import RoleName


class UserInfo(ResponseBody):
    """`sub`, `tenant_id` and `role`, and the claims that the scopes `email` and `profile` request."""

    sub: Annotated[UUID, Field(description="The user's id. It does not change with the address.")]
    tenant_id: UUID
    role: RoleName
    email: Annotated[str | None, Field(examples=["ada@example.com"])] = None
    email_verified: Annotated[
        bool | None, Field(description="Whether the user's organization has verified the address's domain.")
    ] = None
    name: str | None = None
    preferred_username: str | None = None
    updated_at: Annotated[int | None, Field(description="Unix seconds.")] = None


class Discovery(ResponseBody):
    issuer: Annotated[str, Field(examples=["https://gatehouse.example.com"])]
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    jwks_uri: str
    response_types_supported: list[str]
    response_modes_supported: list[str]
    grant_types_supported: list[str]
    subject_types_supported: list[str]
    id_token_signing_alg_values_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    code_challenge_methods_supported: list[str]
    scopes_supported: list[str]
    claims_supported: list[str]
    prompt_values_supported: list[str]
    authorization_response_iss_parameter_supported: bool
    request_uri_parameter_supported: bool


_PARAMETERS: Final = {
    "client_id": "The id of a client that has redirect URIs.",
    "redirect_uri": "One of the client's redirect URIs. It must match exactly.",
    "response_type": "`code`.",
    "scope": "`openid`; `email` and `profile` for more claims; scopes of the API that the client may have for users.",
    "code_challenge": "Challenge of the code verifier (RFC 7636).",
    "code_challenge_method": "`S256`.",
    "state": "Returned unchanged.",
    "nonce": "Copied into the id token.",
    "prompt": "`none`: show no page; `login`: require a new sign-in.",
    "max_age": "Maximum seconds since the user signed in.",
    "login_hint": "The address to fill in on the sign-in page.",
}
_REQUIRED_COUNT: Final = 6

#: OpenAPI description of the parameters. They are parsed by hand, because frameworks accept repeated parameters.
AUTHORIZATION_QUERY: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": name,
            "in": "query",
            "required": index < _REQUIRED_COUNT,
            "schema": {"type": "string"},
            "description": text,
        }
        for index, (name, text) in enumerate(_PARAMETERS.items())
    ]
}
AUTHORIZATION_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": list(_PARAMETERS)[:_REQUIRED_COUNT],
                    "properties": {name: {"type": "string", "description": text} for name, text in _PARAMETERS.items()},
                },
                "example": {
                    "client_id": "0191f3a2-7c55-4b7e-9d3c-1f0f5c6f4a10",
                    "redirect_uri": "https://portal.example.com/callback",
                    "response_type": "code",
                    "scope": "openid email",
                    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
                    "code_challenge_method": "S256",
                },
            }
        },
    }
}
