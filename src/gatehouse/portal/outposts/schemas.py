"""Bodies of the endpoints of outposts."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field

from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.portal.outposts.status import Status

_Word = Annotated[str, Field(min_length=1, max_length=64)]


class NewOutpost(Body):
    outpost_name: Annotated[str, Field(min_length=1, max_length=128, examples=["warehouse-1"])]
    region: Annotated[_Word, Field(examples=["eu-central-1"])]
    deployment_env: Annotated[_Word, Field(examples=["production"])]


class Outpost(ResponseBody):
    id: UUID
    org_id: UUID
    outpost_name: str
    region: str
    deployment_env: str
    status: Annotated[Status, Field(description="`stale`: no heartbeat for five minutes.")]
    cert_serial: Annotated[str, Field(description="Serial number of its newest certificate, in hexadecimal.")]
    cert_issued_at: datetime
    cert_expires_at: datetime
    last_seen_at: datetime | None
    reported: Annotated[dict[str, Any], Field(description="Body of its last heartbeat.")]
    created_at: datetime
    updated_at: Annotated[datetime, Field(description="The version that `ETag` and `If-Match` name.")]
    revoked_at: datetime | None


class OutpostCertified(ResponseBody):
    """An outpost with a new certificate."""

    outpost: Outpost
    client_cert: Annotated[str, Field(description="As PEM.")]
    client_key: Annotated[str, Field(description="As PEM. Shown only here: the portal stores no copy.")]
    ca_chain: Annotated[str, Field(description="As PEM: the issuing authority, then the other trusted authorities.")]
    platform_url: Annotated[str | None, Field(description="Value of the outpost's PLATFORM_MANAGEMENT_URL.")]
    bundle_url: Annotated[str | None, Field(description="URL of its policy bundles.")]
    heartbeat_url: str


class NewHeartbeat(Body):
    """The outpost's report. Unknown fields are ignored, because a newer outpost may send more fields."""

    model_config = ConfigDict(extra="ignore")

    version: Annotated[str | None, Field(max_length=64, description="Version of its software.")] = None
    bundle_version: Annotated[int | None, Field(ge=0, le=2**53)] = None
    unsent_records: Annotated[int | None, Field(ge=0, le=2**53, description="Records that are not uploaded yet.")] = (
        None
    )
    journal_bytes: Annotated[int | None, Field(ge=0, le=2**63)] = None
    status: Annotated[str | None, Field(max_length=64)] = None


class Heartbeat(ResponseBody):
    outpost_id: UUID
    status: Status
    received_at: datetime
    cert_serial: Annotated[
        str,
        Field(
            description="Serial number of the newest certificate. After a renewal, the caller may still use its"
            " previous certificate, which has another serial number."
        ),
    ]
    cert_expires_at: datetime
