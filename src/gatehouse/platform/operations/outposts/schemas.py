"""Bodies of the endpoints of outposts (docs/outpost-protocol.md)."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody

#: Maximum number of records in one upload.
MAX_RECORDS = 2_000

Sort = Literal[
    "seen_at", "-seen_at", "outpost_id", "-outpost_id", "state", "-state", "policy_version", "-policy_version",
    "certificate_ends_at", "-certificate_ends_at", "records_stored", "-records_stored",
]  # fmt: skip

Pem = Annotated[str, Field(max_length=16_384, examples=["-----BEGIN CERTIFICATE-----\n..."])]
Serial = Annotated[str, Field(pattern="^[0-9A-Fa-f]{1,40}$", examples=["5f3a09c1"])]


class TrustedOrganization(Body):
    org_id: Annotated[Id, Field(description="Id of the organization at the portal.")]
    tenant_id: Annotated[Id, Field(description="Id of the same organization at the platform.")]


class TrustedOutpost(Body):
    outpost_id: Id
    org_id: Id
    serials: Annotated[
        list[Serial],
        Field(max_length=10, description="Serial numbers of its valid certificates, in hexadecimal."),
    ]


class NewTrust(Body):
    """The complete trust. Authorities, organizations and outposts that are not in the body are no longer trusted."""

    ca_certificates: Annotated[list[Pem], Field(max_length=8, description="Certificates of the authorities, in PEM.")]
    organizations: Annotated[list[TrustedOrganization], Field(max_length=20_000)]
    outposts: Annotated[list[TrustedOutpost], Field(max_length=20_000)]


class Authority(ResponseBody):
    sha256: Annotated[str, Field(description="SHA-256 fingerprint of the certificate.")]
    not_after: datetime


class Trust(ResponseBody):
    ca_certificates: list[Authority]
    organizations: int
    outposts: int
    serials: int
    unknown_tenants: Annotated[
        list[UUID],
        Field(description="Organizations of the request that this platform does not have. Their outposts are refused."),
    ]
    updated_at: datetime


class Records(BaseModel):
    """Journal entries. An entry that cannot be stored is rejected with its number, and the other entries are stored."""

    model_config = ConfigDict(extra="forbid", strict=True)

    journal_id: Annotated[
        Id, Field(description="Id of the journal. An outpost that has lost its disk creates a new journal.")
    ]
    sequence: Annotated[int, Field(ge=1, le=2**53, description="Number of the first record. A journal begins with 1.")]
    entries: Annotated[
        list[Any], Field(description=f"Records in order, at most {MAX_RECORDS}.", examples=[[["outcome", "..."]]])
    ]


class RejectedRecord(ResponseBody):
    sequence: int
    reason: str


class RecordsStored(ResponseBody):
    next_sequence: Annotated[int, Field(description="Number of the next record to send.")]
    stored: Annotated[
        int, Field(description="Number of records stored by this upload, without those that were stored before.")
    ]
    rejected: list[RejectedRecord]


class ListedOutpost(ResponseBody):
    outpost_id: UUID
    state: Annotated[
        Literal["connected", "silent", "unseen", "revoked"],
        Field(
            description="`connected`: seen in the last 90 seconds; `silent`: not since; `unseen`: never seen;"
            " `revoked`: no certificate of the outpost is valid any more."
        ),
    ]
    seen_at: Annotated[datetime | None, Field(description="Time of the last request for its policy.")]
    policy_version: Annotated[
        int | None, Field(description="Version of the active policy at the outpost. Null without a policy.")
    ]
    policy_is_current: Annotated[
        bool, Field(description="Whether this policy contains the latest change of the organization.")
    ]
    certificates: Annotated[int, Field(description="Number of valid certificates according to the portal.")]
    certificate_serial: Annotated[
        str | None, Field(description="Serial number of the certificate that the outpost used last.")
    ]
    certificate_ends_at: datetime | None
    records_stored: Annotated[int, Field(description="Number of records uploaded from all of its journals.")]
    records_stored_at: Annotated[datetime | None, Field(description="Time of the last upload of records.")]


class OutpostList(ResponseBody):
    enabled: Annotated[
        bool, Field(description="The feature flag `outpost_enabled`. If it is off, outposts are refused.")
    ]
    outposts: Annotated[list[ListedOutpost], Field(description="Outposts, the most recently connected first.")]
    total: int
    page: int
    page_size: int
