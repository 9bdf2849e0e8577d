"""Bodies of the endpoints of allowed domains."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field

from gatehouse.foundation import emails
from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, partial, without


def _normalized(domain: str) -> str:
    """Return the domain in the form in which it occurs in addresses."""
    try:
        return emails.domain(emails.normalize(f"x@{domain}"))
    except ValueError:
        raise ValueError("is not a mail domain, such as example.com") from None


Domain = Annotated[str, Field(max_length=253, examples=["example.com"]), AfterValidator(_normalized)]


class NewDomain(Body):
    domain: Domain
    jit_provisioning: Annotated[
        bool,
        Field(
            description="Identity providers create accounts with its addresses at the first sign-in.", examples=[True]
        ),
    ] = False
    self_registration: Annotated[
        bool,
        Field(
            description="Anyone with an address of the domain can register while no identity provider is active.",
            examples=[False],
        ),
    ] = False
    default_group_id: Annotated[Id | None, Field(description="New accounts become members of this group.")] = None


@partial
@without("domain")
class DomainUpdate(NewDomain):
    """A partial update: omitted fields keep their values. A null group removes the group."""


class TxtRecord(ResponseBody):
    """The record that the owner of the domain publishes in order to verify it."""

    name: Annotated[str, Field(examples=["_gatehouse.example.com"])]
    value: Annotated[str, Field(examples=["gatehouse-verification=5f0e..."])]


class AllowedDomain(ResponseBody):
    domain: str
    jit_provisioning: bool
    self_registration: bool
    default_group_id: UUID | None
    verified: bool
    verified_at: datetime | None
    txt_record: TxtRecord
    created_at: datetime


class AllowedDomains(ResponseBody):
    domains: list[str]
    jit_provisioning: Annotated[bool, Field(description="Whether at least one domain allows it.")]
    self_registration: Annotated[bool, Field(description="Whether at least one domain allows it.")]
    default_group_id: Annotated[
        UUID | None, Field(description="The common group of all domains, or null if the groups differ.")
    ]
    entries: Annotated[list[AllowedDomain], Field(description="The domains with their settings.")]
