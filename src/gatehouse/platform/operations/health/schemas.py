"""Bodies of the health endpoints (docs/operations.md)."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody

Status = Literal["healthy", "degraded", "unhealthy", "unknown"]


class Alive(ResponseBody):
    status: Literal["ok"] = "ok"


class NotAlive(ResponseBody):
    status: Literal["unhealthy"] = "unhealthy"
    reason: Annotated[str, Field(examples=["the change feed has ended"])]


class Ready(ResponseBody):
    status: Literal["ready"] = "ready"


class NotReady(ResponseBody):
    status: Literal["not_ready"] = "not_ready"
    failing_checks: Annotated[
        list[str],
        Field(
            description="`database`, `cache`, `journal`, `change_feed`, `maintenance`, `master_key`.",
            examples=[["database"]],
        ),
    ]


class Started(ResponseBody):
    status: Literal["started"] = "started"
    startup_duration_ms: Annotated[float, Field(examples=[312.4])]


class Starting(ResponseBody):
    status: Literal["starting"] = "starting"
    phase: Annotated[str, Field(examples=["database"])]
    elapsed_ms: Annotated[float, Field(examples=[120.1])]


class SystemHealth(ResponseBody):
    status: Literal["healthy", "degraded", "unhealthy"]
    timestamp: datetime
    version: str
    components: Annotated[
        dict[str, dict[str, Any]],
        Field(
            description="Components by name. Each has a `status`; `providers` has a `status` for each provider.",
            examples=[{"database": {"status": "healthy", "latency_ms": 0.8, "pool": {"max": 10, "available": 9}}}],
        ),
    ]


class Version(ResponseBody):
    platform_version: Annotated[str, Field(examples=["0.1.0"])]
    api_version: Literal["v1"] = "v1"
    build_date: str | None
    git_commit: str | None
    environment: Annotated[str, Field(examples=["production"])]
    schema_version: Annotated[str, Field(description="Version of the database schema.", examples=["0001"])]
    feature_flags: dict[str, bool]


class Finding(ResponseBody):
    check: Annotated[str, Field(description="Name of the check.", examples=["journal"])]
    verdict: Annotated[
        Literal["ok", "warn", "fail"],
        Field(description="`fail`: a fault that must be fixed. `warn`: a fault that may cause a failure later."),
    ]
    message: Annotated[
        str | None,
        Field(
            description="Result of the check. Only for operators, because it may name machines and paths.",
            examples=["12 KiB wait for the database, 80 GiB of disk are free"],
        ),
    ]
    remedy: Annotated[
        str | None, Field(description="What to do. Null if the check found no fault. Only for operators.")
    ]


class Diagnosis(ResponseBody):
    node: Annotated[
        str | None,
        Field(
            description="Worker that answered. Journal, limits and certificate are its machine's. Only for operators."
        ),
    ]
    findings: list[Finding]


class Requests(ResponseBody):
    total: int
    success: int
    error: Annotated[int, Field(description="All requests without success, including refused and cancelled requests.")]
    error_rate: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="`error` as a share of `total`. Alerts' `error_rate` is in percent and counts only failures.",
        ),
    ]


class Latency(ResponseBody):
    """Percentiles of the latency. Null without requests."""

    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class Triggers(ResponseBody):
    block: int
    redact: int
    flag: int
    require_approval: int


class DlpSummary(ResponseBody):
    requests_scanned: int
    triggers: Triggers


class MetricsSummary(ResponseBody):
    period: Annotated[
        str, Field(description="The evaluated period up to now, as an ISO 8601 duration.", examples=["PT1H"])
    ]
    requests: Requests
    latency: Latency
    dlp: DlpSummary
    active_connections: Annotated[int, Field(description="Model calls in progress, on all workers.")]
    cache_hit_rate: Annotated[
        float, Field(ge=0, le=1, description="Hits as a share of the look-ups in the response cache.")
    ]
