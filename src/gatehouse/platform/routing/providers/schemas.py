"""Bodies of the provider endpoints (docs/providers.md)."""

import operator
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.platform.routing.fields import Line, ProviderQuirks
from gatehouse.platform.routing.providers.health import HealthStatus

ProviderStatus = Literal["active", "disabled", "kill_switched", "unhealthy"]

TimeoutMs = Annotated[int, Field(ge=100, le=300_000, examples=[30_000])]
MaxRetries = Annotated[int, Field(ge=0, le=5, description="Retries on a provider's 5xx.", examples=[2])]


class Credentials(Body):
    """The required fields depend on the provider's kind."""

    kind: Annotated[
        str | None,
        Field(
            max_length=64,
            description="The kind of a provider that is added under a name of its own; its name must differ from those"
            " of kinds. Without it, the provider's name is its kind. A provider that exists keeps its kind.",
            examples=["azure_openai"],
        ),
    ] = None
    preset: Annotated[
        str | None,
        Field(
            max_length=63,
            description="The id of a preset. For a new provider, it provides `kind`, `base_url` and `name` where they"
            " are not sent. Its quirks apply.",
            examples=["groq"],
        ),
    ] = None
    name: Annotated[
        Line | None, Field(description="A name for people. Not sent, it stays.", examples=["Azure OpenAI, Europe"])
    ] = None
    api_key: Annotated[
        str | None, Field(description="Key kinds, `azure_openai`, and `bedrock` with an API key.", examples=["sk-..."])
    ] = None
    base_url: Annotated[
        str | None,
        Field(description="OpenAI-compatible endpoints.", examples=["https://models.example.com/v1"]),
    ] = None
    local_runtime_base_url: Annotated[
        str | None, Field(description="The self-hosted runtime.", examples=["http://localhost:11434"])
    ] = None
    hosted_endpoint: Annotated[str | None, Field(description="The hosted kind.")] = None
    hosted_api_version: Annotated[str | None, Field(description="The hosted kind.", examples=["2024-02-01"])] = None
    cloud_access_key_id: Annotated[str | None, Field(description="The cloud-managed kind.")] = None
    cloud_secret_access_key: Annotated[str | None, Field(description="The cloud-managed kind.")] = None
    cloud_session_token: Annotated[str | None, Field(description="`bedrock`: the session token of temporary keys.")] = (
        None
    )
    cloud_region: Annotated[str | None, Field(description="The cloud-managed kind.")] = None
    cloud_project: Annotated[
        str | None, Field(description="`vertex_ai`: the id or number of the project.", examples=["our-project"])
    ] = None
    cloud_location: Annotated[
        str | None,
        Field(description="`vertex_ai`: a region, `us`, `eu` or `global`.", examples=["europe-west4"]),
    ] = None
    service_account_key: Annotated[
        str | dict[str, Any] | None,
        Field(description="`vertex_ai`: the JSON key of a service account, as an object or as its text."),
    ] = None
    entra_tenant_id: Annotated[
        str | None, Field(description="`azure_openai`: the directory of an application in Microsoft Entra ID.")
    ] = None
    entra_client_id: Annotated[str | None, Field(description="`azure_openai`: the application's id.")] = None
    entra_client_secret: Annotated[str | None, Field(description="`azure_openai`: the application's secret.")] = None
    use_instance_role: Annotated[
        bool | None,
        Field(
            description="`bedrock`, `vertex_ai` and `azure_openai`: the identity of the machine, instead of keys;"
            " operators only."
        ),
    ] = None


ResponsesApi = Annotated[
    bool,
    Field(
        description="Whether the provider has OpenAI's Responses API. If so, `/v1/responses` is passed through to it."
    ),
]


class ConfigUpdate(Body):
    timeout_ms: TimeoutMs | None = None
    max_retries: MaxRetries | None = None
    responses_api: ResponsesApi | None = None
    preset: Annotated[
        str | None,
        Field(
            max_length=63,
            description="The id of the preset whose quirks apply. Null removes the preset; not sent, it stays.",
            examples=["groq"],
        ),
    ] = None
    quirks: Annotated[
        ProviderQuirks | None,
        Field(description="Replaces the provider's own quirks, which precede those of its preset; `{}` removes them."),
    ] = None


class StatusUpdate(Body):
    enabled: Annotated[bool, Field(examples=[False])]
    reason: Annotated[Line | None, Field(description="A note for the audit log.", examples=["key leaked"])] = None


class HealthCheckConfig(Body):
    """The schedule and thresholds of health checks. In a request, fields that are not sent stay as they are."""

    enabled: bool = True
    interval_seconds: Annotated[int, Field(ge=10, le=300, examples=[30])] = 30
    timeout_ms: Annotated[int, Field(ge=100, le=30_000)] = 5_000
    failure_threshold: Annotated[int, Field(ge=1, le=100)] = 3
    recovery_threshold: Annotated[int, Field(ge=1, le=100)] = 2


def _absent(value: object) -> bool:
    return value is None


class ProviderConfigShown(ResponseBody):
    """The configuration of a provider. Fields that the provider's kind does not use are absent."""

    timeout_ms: Annotated[int, Field(examples=[30_000])]
    max_retries: Annotated[int, Field(examples=[2])]
    base_url: str | None = Field(None, exclude_if=_absent)
    format: str | None = Field(None, exclude_if=_absent)
    local_runtime_base_url: str | None = Field(None, exclude_if=_absent)
    hosted_endpoint: str | None = Field(None, exclude_if=_absent)
    hosted_api_version: str | None = Field(None, exclude_if=_absent)
    cloud_region: str | None = Field(None, exclude_if=_absent)
    cloud_access_key_id: str | None = Field(None, exclude_if=_absent, description="Masked.")
    cloud_project: str | None = Field(None, exclude_if=_absent)
    cloud_location: str | None = Field(None, exclude_if=_absent)
    entra_tenant_id: str | None = Field(None, exclude_if=_absent)
    entra_client_id: str | None = Field(None, exclude_if=_absent)
    use_instance_role: bool = Field(False, exclude_if=operator.not_)
    responses_api: ResponsesApi | None = Field(None, exclude_if=_absent)
    preset: str | None = Field(None, exclude_if=_absent)
    quirks: dict[str, Any] | None = Field(
        None, exclude_if=_absent, description="The provider's own quirks, which precede those of its preset."
    )
    effective_quirks: dict[str, Any] | None = Field(
        None, exclude_if=_absent, description="The quirks that apply: the provider's own and those of its preset."
    )


class Provider(ResponseBody):
    id: Annotated[str, Field(examples=["openai"])]
    name: Annotated[str, Field(examples=["OpenAI"])]
    kind: Annotated[str, Field(description="Determines its credentials and protocol.", examples=["openai"])]
    type: Annotated[str, Field(description="`native`, `openai_compatible`, `cloudmanaged` or `byoe`.")]
    status: ProviderStatus
    enabled: Annotated[bool, Field(description="False: an administrator disabled it, independently of kill switches.")]
    kill_switch_active: Annotated[bool, Field(description="Whether kill switches stop all of it.")]
    credentials_configured: bool
    last_health_check: datetime | None
    health_check_status: HealthStatus
    models_enabled: Annotated[int, Field(description="Active entries of the catalog.")]
    config: ProviderConfigShown
    health_check_config: HealthCheckConfig
    updated_at: Annotated[datetime, Field(description="The version that `ETag` and `If-Match` name.")]


Sort = Literal[
    "id",
    "-id",
    "name",
    "-name",
    "kind",
    "-kind",
    "last_health_check",
    "-last_health_check",
    "created_at",
    "-created_at",
]


class Providers(ResponseBody):
    providers: list[Provider]


class ProviderPreset(ResponseBody):
    """A service or server that can be added by its `id`, with a key."""

    id: Annotated[str, Field(description="A name for the provider in model ids.", examples=["groq"])]
    name: Annotated[str, Field(examples=["Groq"])]
    kind: Annotated[str, Field(examples=["openai_compatible"])]
    dialect: Annotated[Literal["openai", "anthropic"], Field(description="The API that the service resembles.")]
    quirks: Annotated[ProviderQuirks, Field(description="How the API differs. Null: it does not.")]
    base_url: Annotated[
        str,
        Field(description="For a server of your own: its usual address.", examples=["https://api.groq.com/openai/v1"]),
    ]
    key_required: Annotated[bool, Field(description="False: the server may be configured to require a key.")]
    documentation_url: Annotated[str | None, Field(description="The vendor's documentation of the API.")]
    source_url: Annotated[str, Field(description="The page that `base_url` was taken from.")]
    recorded_on: Annotated[date, Field(description="The day on which the entry was written.")]
    source: Annotated[
        Literal["built_in", "file"],
        Field(description="`file`: the preset was added or replaced by `gatehouse prices update -f`."),
    ]
    note: str | None


class ProviderPresets(ResponseBody):
    presets: list[ProviderPreset]


class CredentialsSet(ResponseBody):
    provider_id: str
    credentials_configured: bool
    updated_at: datetime


class ConfigUpdated(ResponseBody):
    provider_id: str
    config: ProviderConfigShown
    updated_at: datetime


class StatusChanged(ResponseBody):
    provider_id: str
    status: Annotated[
        ProviderStatus, Field(description="`kill_switched` takes precedence over `disabled`; see the next two.")
    ]
    enabled: Annotated[bool, Field(description="The value that this call has set.")]
    kill_switch_active: Annotated[bool, Field(description="Whether kill switches stop all of it.")]
    changed_by: str
    reason: str | None
    changed_at: datetime


class HealthChecked(ResponseBody):
    provider_id: str
    health_check_status: HealthStatus
    response_time_ms: Annotated[float | None, Field(description="Null on failure.")]
    checked_at: datetime
    error: Annotated[str | None, Field(description="Null on success.")]


class HealthCheckConfigured(ResponseBody):
    provider_id: str
    enabled: bool
    interval_seconds: int
    timeout_ms: int
    failure_threshold: int
    recovery_threshold: int
    updated_at: datetime


class ProviderHealth(ResponseBody):
    id: str
    name: str
    status: ProviderStatus
    health_check_status: HealthStatus
    latency_ms: float | None
    last_checked: datetime | None


class ProvidersHealth(ResponseBody):
    providers: list[ProviderHealth]


class ProviderReachable(ResponseBody):
    provider_id: str
    status: Literal["reachable"]
    latency_ms: float
    model_tested: Annotated[str | None, Field(description="Null where the catalog has no model to test.")]
    checked_at: datetime


class ProviderUnreachable(ResponseBody):
    provider_id: str
    status: Literal["unreachable"]
    latency_ms: None
    model_tested: str | None
    checked_at: datetime
    error: Annotated[str, Field(description="A short code.", examples=["connect_failed"])]
    detail: Annotated[str, Field(examples=["No connection could be made."])]
