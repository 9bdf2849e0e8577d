"""Request and response bodies of the tenants' endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.emails import Email
from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, partial, without
from gatehouse.platform.organization.tenants.schemas import Name, Slug

Plan = Literal["starter", "business", "enterprise"]
Rpm = Annotated[int, Field(ge=1, le=1_000_000)]
Monthly = Annotated[int, Field(ge=1, le=1_000_000_000_000)]


class Owner(Body):
    email: Email
    display_name: Annotated[str | None, Field(min_length=1, max_length=255, examples=["Ada Lovelace"])] = None


class NewTenant(Body):
    id: Annotated[Id | None, Field(description="The organization's id, if the caller already has one.")] = None
    slug: Slug
    name: Name
    plan: Plan = "starter"
    owner: Annotated[Owner | None, Field(description="The user who becomes the first admin, by invitation.")] = None


class OwnerKey(Body):
    """A key that was not created by this platform. The platform receives only its hash."""

    email: Annotated[
        Email | None,
        Field(
            description="The address of the key's user. An unknown user is created as an administrator."
            " Null: a service account has the key."
        ),
    ] = None
    key_prefix: Annotated[str, Field(pattern=r"^gk_[0-9A-Za-z]{5}$", examples=["gk_3kP9v"])]
    key_sha256: Annotated[
        str,
        Field(
            pattern=r"^[0-9a-f]{64}$",
            description="SHA-256 of the whole key, in hexadecimal.",
            examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
        ),
    ]


class OwnerRegistered(ResponseBody):
    user_id: UUID
    key_id: UUID


@partial
@without("id", "slug", "name", "owner")
class EntitlementsUpdate(NewTenant):
    """A partial update; null removes a limit."""

    custom_rate_limit_rpm: Annotated[
        Rpm | None, Field(description="Replaces the rate limit of all users of the organization.", examples=[1200])
    ] = None
    scan_rate_limit_rpm: Annotated[
        Rpm | None, Field(description="Maximum calls of `POST /v1/scan` per minute and caller.", examples=[300])
    ] = None
    monthly_request_limit: Annotated[Monthly | None, Field(examples=[1_000_000])] = None
    egress_policy: Annotated[
        Literal["public", "listed"] | None,
        Field(
            description="The addresses that the organization's own providers may have, if stricter than the"
            " deployment's `EGRESS_POLICY`."
        ),
    ] = None


@partial
@without("id", "slug", "plan", "owner")
class TenantUpdate(NewTenant):
    """A partial update; null removes the contact address."""

    contact_email: Email | None = None


class Tenant(ResponseBody):
    id: UUID
    slug: str
    name: str
    contact_email: str | None
    plan: Plan
    custom_rate_limit_rpm: int | None
    scan_rate_limit_rpm: int | None
    monthly_request_limit: int | None
    egress_policy: Literal["public", "listed"] | None
    created_at: datetime
    updated_at: datetime


class InvitedOwner(ResponseBody):
    id: UUID
    email: str
    invitation_token: Annotated[str, Field(description="For POST /api/auth/register. It is shown only once.")]
    invitation_expires_at: datetime


class TenantCreated(Tenant):
    owner: InvitedOwner | None
