"""Bodies of the allowed domains' endpoints (reference 2, Organization settings)."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field

from gatehouse.foundation import emails
from gatehouse.foundation.http.bodies import Body, Id, Shown, unsent


def _normal(domain: str) -> str:
    """As it stands in addresses."""
    try:
        return emails.domain(emails.normal(f"x@{domain}"))
    except ValueError:
        raise ValueError("is no mail domain, such as example.com") from None


Domain = Annotated[str, Field(max_length=253, examples=["example.com"]), AfterValidator(_normal)]


class NewDomain(Body):
    domain: Domain
    jit_provisioning: Annotated[
        bool, Field(description="Identity providers make accounts with its addresses at the first sign-in.")
    ] = False
    self_registration: Annotated[
        bool, Field(description="Strangers register with its addresses, while no identity provider is active.")
    ] = False
    default_group_id: Annotated[Id | None, Field(description="New accounts become members of this group.")] = None


class DomainUpdate(Body):
    """Only what is sent changes; null takes the group away."""

    jit_provisioning: bool = Field(default_factory=unsent, examples=[True])
    self_registration: bool = Field(default_factory=unsent, examples=[False])
    default_group_id: Id | None = None


class TxtRecord(Shown):
    """What the domain's owner publishes to prove it."""

    name: Annotated[str, Field(examples=["_gatehouse.example.com"])]
    value: Annotated[str, Field(examples=["gatehouse-verification=5f0e..."])]


class AllowedDomain(Shown):
    domain: str
    jit_provisioning: bool
    self_registration: bool
    default_group_id: UUID | None
    verified: bool
    verified_at: datetime | None
    txt_record: TxtRecord
    created_at: datetime


class AllowedDomains(Shown):
    domains: list[str]
    jit_provisioning: Annotated[bool, Field(description="Whether at least one of the domains has it.")]
    self_registration: Annotated[bool, Field(description="Whether at least one of the domains has it.")]
    default_group_id: Annotated[UUID | None, Field(description="The group of them all; null where they differ.")]
    entries: Annotated[list[AllowedDomain], Field(description="Each domain by itself.")]
