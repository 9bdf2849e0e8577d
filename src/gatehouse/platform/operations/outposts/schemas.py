"""Bodies of the outposts' endpoints (decisions 8, Wires)."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from gatehouse.foundation.http.bodies import Body, Id, Shown

#: Records in one upload.
MOST_RECORDS = 2_000

Pem = Annotated[str, Field(max_length=16_384, examples=["-----BEGIN CERTIFICATE-----\n..."])]
Serial = Annotated[str, Field(pattern="^[0-9A-Fa-f]{1,40}$", examples=["5f3a09c1"])]


class TrustedOrganization(Body):
    org_id: Annotated[Id, Field(description="The portal's id.")]
    tenant_id: Annotated[Id, Field(description="What the platform made of it.")]


class TrustedOutpost(Body):
    outpost_id: Id
    org_id: Id
    serials: Annotated[
        list[Serial],
        Field(max_length=10, description="Serial numbers, in hexadecimal, of its certificates that are good."),
    ]


class NewTrust(Body):
    """All of it: what is not in it is not trusted any more."""

    ca_certificates: Annotated[list[Pem], Field(max_length=8, description="Authorities, a certificate each, as PEM.")]
    organizations: Annotated[list[TrustedOrganization], Field(max_length=20_000)]
    outposts: Annotated[list[TrustedOutpost], Field(max_length=20_000)]


class Authority(Shown):
    sha256: Annotated[str, Field(description="The certificate's fingerprint.")]
    not_after: datetime


class Trust(Shown):
    ca_certificates: list[Authority]
    organizations: int
    outposts: int
    serials: int
    unknown_tenants: Annotated[
        list[UUID], Field(description="Named, and not on this platform (any more): their outposts are refused.")
    ]
    updated_at: datetime


class Records(BaseModel):
    """Journal entries as they are: what cannot be stored is told by its number, and keeps back no other."""

    model_config = ConfigDict(extra="forbid", strict=True)

    journal_id: Annotated[Id, Field(description="Of the outpost's journal: one that has lost its disk makes another.")]
    sequence: Annotated[int, Field(ge=1, le=2**53, description="The first record's number; a journal begins with 1.")]
    entries: Annotated[
        list[Any], Field(description=f"In order, at most {MOST_RECORDS}.", examples=[[["outcome", "..."]]])
    ]


class RejectedRecord(Shown):
    sequence: int
    reason: str


class RecordsStored(Shown):
    next_sequence: Annotated[int, Field(description="The number of the record that is to come next.")]
    stored: Annotated[int, Field(description="Of these records, now: those that were there already do not count.")]
    rejected: list[RejectedRecord]
