"""Bodies of the endpoints of SIEM forwarding (docs/siem.md)."""

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
        description="For `hec` and `webhook`: an HTTPS URL on the open internet. The URL of a collector needs no path.",
        examples=["https://splunk.example.com:8088/services/collector/event"],
    ),
]
Host = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        description="For `syslog_tcp` and `syslog_tls`: a host name or an address.",
        examples=["syslog.example.com"],
    ),
]
Port = Annotated[int, Field(ge=1, le=65535, description="For `syslog_tcp` and `syslog_tls`.", examples=[6514])]
Ca = Annotated[
    str,
    Field(
        min_length=1,
        max_length=65536,
        description="For `syslog_tls`: the authorities, in PEM, that may have issued the receiver's certificate."
        " Default: the authorities of the system.",
    ),
]
Index = Annotated[
    str, Field(min_length=1, max_length=255, description="For `hec`: the index of Splunk.", examples=["main"])
]
Token = Annotated[
    str,
    StringConstraints(strip_whitespace=False, min_length=8, max_length=1024, pattern=r"^[\x21-\x7e]+$"),
    Field(
        description="For `hec`: the token of the collector. It is stored sealed and never returned.",
        examples=["5f1c2a9e-1111-4222-8333-944455566677"],
    ),
]
Secret = Annotated[
    str,
    StringConstraints(strip_whitespace=False, min_length=8, max_length=255),
    Field(description="For `webhook`: the secret that signs batches. It is stored sealed and never returned."),
]


class SiemUpdate(Body):
    """A partial update: fields that are not sent keep their values. A new `type` removes all other fields except
    `enabled`."""

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
    backlog: Annotated[int, Field(description="Number of events that wait to be sent.", examples=[0])] = 0
    lag_seconds: Annotated[
        float | None, Field(description="Age of the oldest waiting event. Null without waiting events.")
    ] = None
    last_sent_at: Annotated[datetime | None, Field(description="Time at which the receiver last accepted a batch.")] = (
        None
    )
    last_error: Annotated[
        str | None, Field(description="Reason why the last batch failed. Null once a batch succeeds.")
    ] = None
    last_failed_at: datetime | None = None
    skipped: Annotated[
        int,
        Field(description="Number of audit events that were removed before they were sent, while the flag was off."),
    ] = 0


class Siem(ResponseBody):
    type: Annotated[Type | None, Field(description="Null if no receiver is configured.", examples=["hec"])]
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
    error: Annotated[str | None, Field(description="Reason why the receiver did not accept the event.")]
    latency_ms: float
