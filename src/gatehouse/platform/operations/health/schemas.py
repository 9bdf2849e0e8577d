"""Bodies of the health endpoints (docs/operations.md)."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from gatehouse.foundation.http.bodies import ResponseBody, omitted

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


class Component(ResponseBody):
    """The health of a component. A field that the component does not have is absent."""

    status: Status
    detail: Annotated[
        str | None, Field(default_factory=omitted, description="Reason for the status.", examples=["idle"])
    ]


class Pool(ResponseBody):
    """The database connections of the worker that answers."""

    max: int
    available: int
    in_use: int


class DatabaseHealth(Component):
    latency_ms: Annotated[float | None, Field(description="Null if the database does not answer.", examples=[0.8])]
    pool: Pool


class TierHealth(Component):
    waiting: Annotated[
        int | None,
        Field(
            default_factory=omitted, description="Number of texts in the queue. Null if unknown. Only for operators."
        ),
    ]
    cause: Annotated[
        str | None,
        Field(
            default_factory=omitted, description="Error message, which may contain paths of files. Only for operators."
        ),
    ]


class JobsHealth(Component):
    workers: Annotated[
        int,
        Field(default_factory=omitted, description="Processes with a heartbeat in the last minute. Absent if unknown."),
    ]
    waiting_jobs: Annotated[
        int, Field(default_factory=omitted, description="Number of jobs that are due. Only for operators.")
    ]


class Circuit(ResponseBody):
    model: Annotated[str | None, Field(description="Null for the circuit of the whole provider.")]
    state: Literal["open", "half_open"]
    failures: int
    credential: Annotated[str | None, Field(description="Label of the credential if the circuit belongs to one.")]


class ProviderComponent(Component):
    latency_ms: float | None
    last_checked: datetime | None
    circuits: Annotated[
        list[Circuit],
        Field(default_factory=omitted, description="The circuits that are not closed, of the worker that answers."),
    ]


class JournalHealth(Component):
    bytes: Annotated[int, Field(description="Size of the journal of the worker that answers.")]


class DrainState(ResponseBody):
    """The state of the process that stores a machine's journal in the database."""

    model_config = ConfigDict(extra="allow")

    connected: Annotated[bool, Field(description="Whether the last batch was stored.")]
    backlog_bytes: Annotated[int, Field(description="Size of the records that wait to be stored.")]


class Node(ResponseBody):
    """A process that sends heartbeats. It may report further fields."""

    model_config = ConfigDict(extra="allow")

    name: str
    kind: Annotated[str, Field(examples=["gateway"])]
    silent_seconds: Annotated[float, Field(description="Time since the last heartbeat.", examples=[1.2])]
    revision: Annotated[
        int,
        Field(default_factory=omitted, description="Revision of the policy. Only for processes that follow changes."),
    ]
    revision_lag: Annotated[
        int, Field(default_factory=omitted, description="Number of revisions that the process has not applied yet.")
    ]
    active: Annotated[int, Field(default_factory=omitted, description="Number of model calls in progress.")]
    jobs: Annotated[bool, Field(default_factory=omitted, description="Whether the process runs background jobs.")]
    drain: Annotated[
        DrainState, Field(default_factory=omitted, description="Only for the process that stores the journal.")
    ]


class NodesHealth(Component):
    count: Annotated[
        int, Field(default_factory=omitted, description="Processes that sent a heartbeat lately. Absent if unknown.")
    ]
    silent: Annotated[int, Field(default_factory=omitted, description="Processes without a heartbeat for 15 seconds.")]
    revision_lag: Annotated[int, Field(default_factory=omitted, description="The largest lag of a process.")]
    nodes: Annotated[list[Node], Field(default_factory=omitted, description="Only for operators.")]


class Components(ResponseBody):
    database: DatabaseHealth
    redis: Component
    ner_service: Annotated[TierHealth, Field(description="The entities tier of DLP.")]
    deberta_service: Annotated[TierHealth, Field(description="The semantic tier of DLP.")]
    celery_workers: Annotated[JobsHealth, Field(description="The processes that run background jobs.")]
    providers: Annotated[dict[str, ProviderComponent], Field(description="The organization's providers by id.")]
    journal: JournalHealth
    nodes: NodesHealth


class SystemHealth(ResponseBody):
    status: Literal["healthy", "degraded", "unhealthy"]
    timestamp: datetime
    version: str
    components: Components


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
