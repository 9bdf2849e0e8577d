"""Bodies of the SIEM endpoints (docs/siem.md)."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted

Type = Literal["hec", "syslog_tcp", "syslog_tls", "webhook", "file"]

Chosen = Annotated[
    Type, Field(description="Only operators of the platform may choose `file`, which uses the server's disk.")
]
Url = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2000,
        description="Of `hec` and `webhook`: HTTPS, on the open internet. That of a collector needs no path.",
        examples=["https://splunk.example.com:8088/services/collector/event"],
    ),
]
Host = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        description="Of `syslog_tcp` and `syslog_tls`: a name or an address.",
        examples=["syslog.example.com"],
    ),
]
Port = Annotated[int, Field(ge=1, le=65535, description="Of `syslog_tcp` and `syslog_tls`.", examples=[6514])]
Ca = Annotated[
    str,
    Field(
        min_length=1,
        max_length=65536,
        description="Of `syslog_tls`: the authorities, in PEM, that may have issued the receiver's certificate."
        " Without it, those of the system.",
    ),
]
Index = Annotated[str, Field(min_length=1, max_length=255, description="Of `hec`: Splunk's index.", examples=["main"])]
Token = Annotated[
    str,
    StringConstraints(strip_whitespace=False, min_length=8, max_length=1024, pattern=r"^[\x21-\x7e]+$"),
    Field(
        description="Of `hec`: the collector's token. It is sealed, and in no response.",
        examples=["5f1c2a9e-1111-4222-8333-944455566677"],
    ),
]
Secret = Annotated[
    str,
    StringConstraints(strip_whitespace=False, min_length=8, max_length=255),
    Field(description="Of `webhook`: the secret that batches are signed with. It is sealed, and in no response."),
]


class SiemUpdate(Body):
    """Fields that are not sent stay as they are. Another `type` removes all other fields but `enabled`."""

    type: Chosen = Field(default_factory=omitted)
    enabled: bool = Field(default_factory=omitted)
    url: Url = Field(default_factory=omitted)
    host: Host = Field(default_factory=omitted)
    port: Port = Field(default_factory=omitted)
    ca_certificate: Ca | None = None
    index: Index | None = None
    token: Token = Field(default_factory=omitted)
    secret: Secret = Field(default_factory=omitted)


class Status(ResponseBody):
    active: Annotated[bool, Field(description="`enabled`, and the feature flag `audit_log_streaming` is on.")] = False
    backlog: Annotated[int, Field(description="Events that wait to be sent.", examples=[0])] = 0
    lag_seconds: Annotated[float | None, Field(description="Age of the oldest of them; null without any.")] = None
    last_sent_at: Annotated[datetime | None, Field(description="When the receiver last accepted a batch.")] = None
    last_error: Annotated[str | None, Field(description="Why the last batch failed; null once one succeeds.")] = None
    last_failed_at: datetime | None = None
    skipped: Annotated[
        int, Field(description="Audit events that were removed before they were sent, while the flag was off.")
    ] = 0


class Siem(ResponseBody):
    type: Annotated[Type | None, Field(description="Null where no receiver is configured yet.", examples=["hec"])]
    enabled: bool
    url: str | None
    host: str | None
    port: int | None
    ca_certificate: str | None
    index: str | None
    token_configured: bool
    secret_configured: bool
    created_at: datetime | None
    updated_at: datetime | None
    status: Status


class Tested(ResponseBody):
    success: bool
    error: Annotated[str | None, Field(description="Why the receiver has not accepted it.")]
    latency_ms: float
