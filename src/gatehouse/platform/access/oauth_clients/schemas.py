"""Request and response bodies of the OAuth client endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, nullable, without
from gatehouse.foundation.identity import Scope
from gatehouse.platform.access.oauth_clients.redirects import redirect_uri
from gatehouse.platform.access.tokens.lifetimes import MAX_TOKEN_LIFETIME_SECONDS

Tier = Literal["standard", "premium", "unlimited"]

# No control characters: PostgreSQL cannot store NUL, and the others would garble lists.
Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$", examples=["nightly reports"])]
Scopes = Annotated[
    list[Scope], Field(max_length=50, description="The scopes of its tokens.", examples=[["api:read", "chat:write"]])
]
RedirectUris = Annotated[
    list[Annotated[str, Field(max_length=2000), AfterValidator(redirect_uri)]],
    Field(
        max_length=20,
        description="The URIs that users may be redirected to after a sign-in. A request must match one exactly. The"
        " scheme is `https`, or `http` on a loopback address. The users of an organization's client are those of the"
        " organization.",
        examples=[["https://portal.example.com/callback"]],
    ),
]
UserScopes = Annotated[
    list[Scope],
    Field(
        max_length=50,
        description="The scopes that the client may have for users who sign in to it. Within them it acts as the user.",
        examples=[["chat:write"]],
    ),
]
Public = Annotated[
    bool, Field(description="Whether the client cannot keep a secret (an app, a page). It exchanges codes without one.")
]
Lifetime = Annotated[
    int, Field(ge=1, le=MAX_TOKEN_LIFETIME_SECONDS, description="Lifetime of its tokens in seconds.", examples=[3600])
]


class NewOAuthClient(Body):
    name: Name
    scopes: Scopes = Field(default_factory=list)
    tenant_id: Annotated[
        Id | None,
        Field(
            description="If omitted, your own organization. Operators can name any, or null for a platform-wide client."
        ),
    ] = None
    rate_limit_tier: Tier = "standard"
    token_lifetime_seconds: Lifetime = 3600
    redirect_uris: RedirectUris = Field(default_factory=list)
    user_scopes: UserScopes = Field(default_factory=list)
    public: Public = False


@nullable
@without("tenant_id")
class OAuthClientUpdate(NewOAuthClient):
    """A partial update: fields that are absent or null keep their values. Lists are replaced as a whole."""

    enabled: bool | None = None


class OAuthClient(ResponseBody):
    id: Annotated[UUID, Field(description="Internal record id.")]
    client_id: Annotated[UUID, Field(description="Public id, for token requests and in the paths of this API.")]
    name: str
    scopes: list[Scope]
    tenant_id: Annotated[UUID | None, Field(description="Null for platform-wide clients.")]
    created_by: UUID | None
    enabled: bool
    rate_limit_tier: Tier
    token_lifetime_seconds: int
    redirect_uris: list[str]
    user_scopes: list[Scope]
    public: bool
    created_at: datetime
    updated_at: datetime
    last_used: Annotated[datetime | None, Field(description="Last successful token issuance.")]


class OAuthClientCreated(OAuthClient):
    client_secret: Annotated[str, Field(description="Shown only once.", examples=["gcs_4fJ0..."])]


class OAuthClientPage(ResponseBody):
    """The list in variant B."""

    items: list[OAuthClient]
    total: int
    page: int
    page_size: int


class SecretRotation(Body):
    grace_period_seconds: Annotated[
        int | None,
        Field(
            ge=0,
            le=30 * 86_400,
            description="Maximum seconds for which earlier secrets are still accepted; 0 revokes them at once."
            " If omitted, OAUTH_SECRET_GRACE_SECONDS.",
            examples=[3600],
        ),
    ] = None


class RotatedSecret(ResponseBody):
    client_id: UUID
    new_client_secret: Annotated[str, Field(description="Shown only once.", examples=["gcs_4fJ0..."])]
    grace_period_seconds: Annotated[int, Field(description="Seconds for which the previous secret is accepted.")]
    previous_secret_expires_at: datetime
