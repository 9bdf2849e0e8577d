"""Bodies of the outposts' endpoints (docs/outpost-protocol.md)."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody

#: Records in one upload.
MAX_RECORDS = 2_000

Pem = Annotated[str, Field(max_length=16_384, examples=["-----BEGIN CERTIFICATE-----\n..."])]
Serial = Annotated[str, Field(pattern="^[0-9A-Fa-f]{1,40}$", examples=["5f3a09c1"])]


class TrustedOrganization(Body):
    org_id: Annotated[Id, Field(description="The portal's id.")]
    tenant_id: Annotated[Id, Field(description="The platform's id of the same organization.")]


class TrustedOutpost(Body):
    outpost_id: Id
    org_id: Id
    serials: Annotated[
        list[Serial],
        Field(max_length=10, description="Serial numbers, in hexadecimal, of its valid certificates."),
    ]


class NewTrust(Body):
    """The complete trust: what is not in the body is no longer trusted."""

    ca_certificates: Annotated[list[Pem], Field(max_length=8, description="Authorities, a certificate each, as PEM.")]
    organizations: Annotated[list[TrustedOrganization], Field(max_length=20_000)]
    outposts: Annotated[list[TrustedOutpost], Field(max_length=20_000)]


class Authority(ResponseBody):
    sha256: Annotated[str, Field(description="The certificate's fingerprint.")]
    not_after: datetime


class Trust(ResponseBody):
    ca_certificates: list[Authority]
    organizations: int
    outposts: int
    serials: int
    unknown_tenants: Annotated[
        list[UUID],
        Field(description="Organizations of the call that this platform does not have: their outposts are refused."),
    ]
    updated_at: datetime


class Records(BaseModel):
    """Journal entries. An entry that cannot be stored is rejected with its number; the others are stored."""

    model_config = ConfigDict(extra="forbid", strict=True)

    journal_id: Annotated[Id, Field(description="The journal's id. An outpost that has lost its disk makes a new one.")]
    sequence: Annotated[int, Field(ge=1, le=2**53, description="The first record's number; a journal begins with 1.")]
    entries: Annotated[
        list[Any], Field(description=f"In order, at most {MAX_RECORDS}.", examples=[[["outcome", "..."]]])
    ]


class RejectedRecord(ResponseBody):
    sequence: int
    reason: str


class RecordsStored(ResponseBody):
    next_sequence: Annotated[int, Field(description="The number of the next record to send.")]
    stored: Annotated[int, Field(description="How many of these records are new; those stored before do not count.")]
    rejected: list[RejectedRecord]


class ListedOutpost(ResponseBody):
    outpost_id: UUID
    state: Annotated[
        Literal["connected", "silent", "unseen", "revoked"],
        Field(
            description="`connected`: it was seen in the last 90 seconds; `silent`: not since; `unseen`: never;"
            " `revoked`: none of its certificates is valid any more."
        ),
    ]
    seen_at: Annotated[datetime | None, Field(description="When it last asked for its policy.")]
    policy_version: Annotated[int | None, Field(description="Version of the policy in force there; null without one.")]
    policy_is_current: Annotated[
        bool, Field(description="Whether that policy contains the organization's latest change.")
    ]
    certificates: Annotated[int, Field(description="Valid certificates, as the portal named them.")]
    certificate_serial: Annotated[str | None, Field(description="Of the certificate that it used last.")]
    certificate_ends_at: datetime | None
    records_stored: Annotated[int, Field(description="Records that it has handed in, of all its journals.")]
    records_stored_at: Annotated[datetime | None, Field(description="When it last handed in any.")]


class OutpostList(ResponseBody):
    enabled: Annotated[bool, Field(description="The feature flag `outpost_enabled`: without it they are refused.")]
    outposts: Annotated[list[ListedOutpost], Field(description="The one that was seen last comes first.")]
    total: int
    page: int
    page_size: int
