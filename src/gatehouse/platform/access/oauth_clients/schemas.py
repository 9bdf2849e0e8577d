"""Bodies of the OAuth client endpoints (reference 2, OAuth client)."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from gatehouse.foundation.http.bodies import Body, Id, Shown
from gatehouse.foundation.identity import Scope
from gatehouse.platform.access.oauth_clients.redirects import redirect_uri
from gatehouse.platform.access.tokens.lifetimes import LONGEST_SECONDS

Tier = Literal["standard", "premium", "unlimited"]

# No control characters: PostgreSQL stores no zero byte, and the rest would only spoil listings.
Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$", examples=["nightly reports"])]
Scopes = Annotated[
    list[Scope], Field(max_length=50, description="What its tokens may be for.", examples=[["api:read", "chat:write"]])
]
RedirectUris = Annotated[
    list[Annotated[str, Field(max_length=2000), AfterValidator(redirect_uri)]],
    Field(
        max_length=20,
        description="Where people who signed in may be sent back to, letter by letter: `https`, or `http` on a loopback"
        " address. For platform-wide clients alone.",
        examples=[["https://portal.example.com/callback"]],
    ),
]
Public = Annotated[bool, Field(description="It cannot keep a secret (an app, a page): it trades codes in without one.")]
Lifetime = Annotated[int, Field(ge=1, le=LONGEST_SECONDS, description="Lifetime of its tokens.", examples=[3600])]


class NewOAuthClient(Body):
    name: Name
    scopes: Scopes = Field(default_factory=list)
    tenant_id: Annotated[
        Id | None,
        Field(description="Omitted: your own organization. Operators name any; null makes a platform-wide client."),
    ] = None
    rate_limit_tier: Tier = "standard"
    token_lifetime_seconds: Lifetime = 3600
    redirect_uris: RedirectUris = Field(default_factory=list)
    public: Public = False


class OAuthClientUpdate(Body):
    """Fields that are absent or null stay as they are."""

    name: Name | None = None
    scopes: Annotated[Scopes | None, Field(description="Replaces the whole list.")] = None
    enabled: bool | None = None
    rate_limit_tier: Tier | None = None
    token_lifetime_seconds: Lifetime | None = None
    redirect_uris: Annotated[RedirectUris | None, Field(description="Replaces the whole list.")] = None
    public: Public | None = None


class OAuthClient(Shown):
    id: Annotated[UUID, Field(description="Internal record id.")]
    client_id: Annotated[UUID, Field(description="Public id: for token requests, and in these paths.")]
    name: str
    scopes: list[Scope]
    tenant_id: Annotated[UUID | None, Field(description="Null for platform-wide clients.")]
    created_by: UUID | None
    enabled: bool
    rate_limit_tier: Tier
    token_lifetime_seconds: int
    redirect_uris: list[str]
    public: bool
    created_at: datetime
    last_used: Annotated[datetime | None, Field(description="Last successful token issuance.")]


class OAuthClientCreated(OAuthClient):
    client_secret: Annotated[str, Field(description="Shown here and never again.", examples=["gcs_4fJ0..."])]


class OAuthClientPage(Shown):
    """Variant B's list."""

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
            description="How long the secrets before are accepted at most; 0 ends them at once. Omitted:"
            " OAUTH_SECRET_GRACE_SECONDS.",
            examples=[3600],
        ),
    ] = None


class RotatedSecret(Shown):
    client_id: UUID
    new_client_secret: Annotated[str, Field(description="Shown here and never again.", examples=["gcs_4fJ0..."])]
    grace_period_seconds: Annotated[int, Field(description="How long the previous secret is still taken.")]
    previous_secret_expires_at: datetime
