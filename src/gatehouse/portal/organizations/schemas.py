"""Bodies of the endpoints of organizations."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.emails import Email
from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, omitted, partial, without
from gatehouse.portal.identity import Plan

Slug = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$",
        description="Lower-case letters, digits and hyphens. No other organization can ever use it.",
        examples=["analytical-engines"],
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=255, examples=["Analytical Engines"])]


class NewOrganization(Body):
    name: Name
    slug: Slug
    plan_tier: Annotated[Plan, Field(examples=["business"])]
    contact_email: Annotated[Email | None, Field(description="Address of the owner.")] = None
    billing_email: Email | None = None
    tenant_id: Annotated[Id | None, Field(description="Its tenant on the platform, if it exists already.")] = None


@partial
@without("slug", "tenant_id")
class OrganizationUpdate(NewOrganization):
    """Changes only the fields that are sent. The addresses may be set to null."""

    plan_tier: Annotated[Plan, Field(default_factory=omitted)]


class OrganizationSettings(Body):
    name: Name


class Organization(ResponseBody):
    id: UUID
    name: str
    slug: str
    plan_tier: Plan
    status: Literal["active", "cancelled"]
    provisioning_status: Literal["active", "provisioning", "failed", "unknown"]
    contact_email: str | None
    billing_email: str | None
    tenant_id: Annotated[UUID | None, Field(description="Its tenant on the platform; null until it is provisioned.")]
    created_at: datetime
    updated_at: datetime


class OrganizationCreated(ResponseBody):
    org: Organization
    api_key: Annotated[str, Field(description="The owner's key on the platform. Shown only here.")]
    provisioning_job_id: UUID


class ProvisioningQueued(ResponseBody):
    org: Organization
    provisioning_job_id: UUID
