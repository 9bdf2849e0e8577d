"""All settings. They are read once from the environment. The name of a field is the variable's name in lower case."""

import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    DirectoryPath,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from gatehouse.foundation.mail.message import parse_sender
from gatehouse.foundation.mail.smtp_url import SmtpServer, parse_smtp_url

#: The addresses that requests may reach. `private`: all addresses except those that are always refused. `public`: only
#: public addresses and those in EGRESS_ALLOWLIST. `listed`: only those in EGRESS_ALLOWLIST.
EgressPolicy: TypeAlias = Literal["private", "public", "listed"]

_STRICTNESS: Final[dict[EgressPolicy, int]] = {"private": 0, "public": 1, "listed": 2}


def stricter(first: EgressPolicy, second: EgressPolicy) -> EgressPolicy:
    return first if _STRICTNESS[first] >= _STRICTNESS[second] else second


class BadSettings(Exception):
    """The environment has invalid values. The message has one line for each, with the variable's name and the
    reason."""


def _words(value: object) -> object:
    """Splits a comma-separated list."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]


def _origin(value: str) -> str:
    """Validates scheme, host and port of a URL. A path is refused, because the pages are served at the root."""
    parts = urlsplit(value)
    _ = parts.port  # raises ValueError
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise ValueError("must be a URL with http or https and a host, like https://gatehouse.example.com")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("must be a URL without a path: the platform is served at the root of a host")
    return f"{parts.scheme}://{parts.netloc}"


Origin = Annotated[str, AfterValidator(_origin)]


def _web_address(value: str) -> str:
    parts = urlsplit(value)
    _ = parts.port  # raises ValueError
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be a URL with http or https and a host, like http://collector:4318")
    return value


WebAddress = Annotated[str, AfterValidator(_web_address)]


def _archive_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme == "s3" and parts.netloc:
        return value
    if parts.scheme != "file" or parts.netloc or len(parts.path) < 2:
        raise ValueError("must be a folder or a bucket, like file:///srv/archive or s3://bucket/prefix")
    return value


ArchiveUrl = Annotated[str, AfterValidator(_archive_url)]


def _smtp_url(value: SecretStr) -> SecretStr:
    parse_smtp_url(value.get_secret_value())
    return value


SmtpUrl = Annotated[SecretStr, AfterValidator(_smtp_url)]


def _mail_sender(value: str) -> str:
    parse_sender(value)
    return value


MailSender = Annotated[str, AfterValidator(_mail_sender)]

_BOOLEAN: Final = TypeAdapter(bool)


def boolean(text: str) -> bool | None:
    """Returns the boolean that a setting's text stands for, or None if the text is no boolean."""
    try:
        return _BOOLEAN.validate_python(text.strip())
    except ValidationError:
        return None


class CommonSettings(BaseModel):
    """The settings of all deployables. Each deployable adds its own settings and its `database_variable`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    #: name of the environment variable with the database's URL
    database_variable: ClassVar[str] = "DATABASE_URL"

    gatehouse_home: Path = Field(Path(".gatehouse"), description="Folder of the database, the key and the journal.")
    gatehouse_master_key: SecretStr | None = Field(None, description="Key of 32 bytes in base64 that seals secrets.")
    redis_url: str | None = Field(None, description="Redis for counters and cached answers that workers share.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    max_request_bytes: int = Field(10 * 1024**2, ge=1024)
    body_timeout_seconds: float = Field(60, gt=0, description="Maximum time to receive a request's body.")
    egress_allowlist: Words = Field((), description="CIDRs that the egress guard permits.")
    trusted_proxies: Words = Field((), description="CIDRs of proxies whose X-Forwarded-For is trusted.")
    metrics_allowed_cidrs: Words = (
        "127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7",
    )  # fmt: skip
    tls_cert_path: Path | None = None
    tls_key_path: Path | None = None
    tls_client_ca_path: Path | None = Field(
        None, description="Authorities of outposts' certificates. With it, the listener requests certificates."
    )
    drain_seconds: int = Field(30, ge=0, le=3600, description="Maximum time of requests in progress after SIGTERM.")

    @property
    def home(self) -> Path:
        """Returns the folder of the parts that this deployable embeds."""
        return self.gatehouse_home

    @property
    def embedded(self) -> bool:
        """Returns whether the deployable runs an embedded database under its home."""
        raise NotImplementedError

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Returns the settings. An empty variable is treated as unset. Raises `BadSettings`."""
        settings, faults = cls.read(environment)
        if faults or settings is None:
            raise BadSettings("\n".join(faults))
        return settings

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> tuple[Self | None, list[str]]:
        """Returns the settings, and a list with one line for each fault. In the settings, an invalid variable has its
        default value, so that the other variables can be checked. The settings are None if this is impossible."""
        values = {name: environment[name.upper()] for name in cls.model_fields if environment.get(name.upper())}
        faults: list[str] = []
        try:
            settings = cls.model_validate(values)
        except ValidationError as error:
            invalid = {str(fault["loc"][0]) for fault in error.errors()}
            faults = [f"{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors()]
            try:
                settings = cls.model_validate({name: value for name, value in values.items() if name not in invalid})
            except ValidationError:
                return None, faults
        return settings, faults + settings.missing()

    def missing(self) -> list[str]:
        """Returns one line for each setting that is missing."""
        return []


class MailSettings(NamedTuple):
    """The server and the sender of the platform's mails. Links in mails begin with `public_url`."""

    server: SmtpServer
    sender: str
    public_url: str


class Settings(CommonSettings):
    """The settings of the platform."""

    database_url: str | None = Field(None, description="URL of PostgreSQL. By default an embedded one is started.")
    database_owner_url: str | None = Field(None, description="URL for migrations if DATABASE_URL's login owns nothing.")
    database_pool_size: int = Field(10, ge=1, le=200, description="A worker's connections for administration.")
    archive_url: ArchiveUrl | None = Field(
        None, description="Destination of old records: file:///folder or s3://bucket/prefix."
    )
    cache_max_bytes: int = Field(64 * 1024**2, ge=0, description="Size of a worker's cache of answers.")
    gatehouse_admin_email: str | None = Field(None, description="Address of the admin that the first start creates.")
    gatehouse_admin_password: SecretStr | None = Field(None, description="The first admin's password.")
    environment: str = Field("production", description="Shown by the version endpoint.")
    gatehouse_build_date: str | None = Field(None, description="Shown by the version endpoint; set by the image.")
    gatehouse_git_commit: str | None = Field(None, description="Shown by the version endpoint; set by the image.")

    api_variant: Literal["a", "b", "c"] = "a"
    oauth_scope_enforcement: bool = True
    oauth_delete_revokes_tokens: bool = True
    max_api_keys_per_user: int = Field(100, ge=1, description="API keys that a user may have.")
    oauth_secret_grace_seconds: int = Field(86_400, ge=0)
    admin_mcp: Literal["off", "read", "write"] = Field(
        "read", description="Operations of administration that are tools of the MCP server at /api/mcp."
    )
    public_url: Origin | None = Field(None, description="URL of the platform for clients, and issuer of tokens.")
    portal_public_url: str | None = Field(None, description="URL of the cloud portal, to which sign-ons may return.")

    rate_limit_requests_per_minute: int = Field(60, ge=1)
    rate_limit_admin_rpm: int = Field(600, ge=1)
    rate_limit_admin_exempt: bool = False
    rate_limit_tiers: str = Field("{}", description="JSON object of path or `METHOD path` to requests a minute.")

    journal_sync: Literal["write", "fsync"] = "write"
    journal_max_bytes: int = Field(4 * 1024**3, ge=1024**2)
    max_response_bytes: int = Field(64 * 1024**2, ge=1024)
    switch_fail_mode: Literal["open", "closed"] = "open"
    request_deadline_seconds: float = Field(600, gt=0, description="Maximum time of all attempts of a request.")
    tool_run_max_cost_usd: Decimal = Field(
        Decimal(1), ge=0, description="Cost after which a model call with MCP tools calls no further tools."
    )
    circuit_failures: int = Field(5, ge=1, le=1000, description="Failures in a row that open a circuit.")
    circuit_seconds: float = Field(10, gt=0, le=3600, description="How long a circuit stays open.")
    dlp_fail_mode: Literal["open", "closed"] = Field("closed", description="Treatment of requests if a DLP tier fails.")
    dlp_stream_mode: Literal["window", "hold"] = Field(
        "window", description="Hold back a stream as far as a match may reach (window), or to its end (hold)."
    )
    unknown_fields: Literal["pass", "refuse"] = Field("pass", description="Treatment of unknown fields of model calls.")
    dlp_unreadable: Literal["log_only", "block"] = Field(
        "log_only", description="Treatment of images, recordings and files that DLP cannot read."
    )
    dlp_document_timeout_ms: int = Field(
        5000, ge=100, le=60_000, description="Maximum time to read the documents of a request."
    )
    dlp_block_status: Annotated[Literal[403, 400], BeforeValidator(int)] = Field(
        403, description="Status of a request that DLP blocks."
    )
    dlp_prompt_timeout_seconds: float = Field(120, gt=0, le=3600, description="Maximum wait for a person's approval.")
    approval_by_machines: bool = Field(False, description="Whether API keys and OAuth clients approve held requests.")
    dlp_tier_timeout_ms: int = Field(1000, ge=1, le=60_000, description="Maximum time of a model tier for a request.")
    dlp_threads: int = Field(1, ge=1, le=64, description="Threads of a worker that scan long texts.")
    dlp_pattern_work_seconds: float = Field(
        20, gt=0, le=3600, description="Maximum processor time of the pattern tier for a request, or for its answer."
    )
    dlp_pattern_timeout_seconds: float = Field(
        120, gt=0, le=3600, description="Maximum time of the pattern tier, including the wait for a thread."
    )
    ner_model_path: DirectoryPath | None = Field(None, description="Model of the entities tier. Default: embedded.")
    semantic_model_path: DirectoryPath | None = Field(
        None, description="Model of the semantic tier. Default: embedded."
    )
    detection_queue: int = Field(2048, ge=1, description="Texts that may wait for a model tier.")
    detection_memory_bytes: int = Field(
        2 * 1024**3, ge=256 * 1024**2, description="Maximum memory of the process of the models."
    )
    alert_evaluation_interval_seconds: int = Field(
        60, ge=1, le=3600, description="Interval of evaluations of alert rules."
    )
    alert_webhook_secret: SecretStr | None = Field(None, description="Key of the signatures of alert notifications.")
    egress_policy: EgressPolicy = Field("private", description="Addresses that organizations' providers may have.")
    tiktoken_cache_dir: DirectoryPath | None = Field(None, description="Folder of tiktoken's vocabularies.")
    ingress: Literal["lean", "uvicorn"] = Field("lean", description="HTTP server of model calls.")
    outbound: Literal["lean", "aiohttp"] = Field("lean", description="HTTP client for providers.")
    provider_max_connections: int = Field(2000, ge=1, description="A worker's maximum of connections to providers.")
    provider_max_connections_each: int | None = Field(None, ge=1, description="Maximum to one provider. Default: half.")

    mcp_stdio_commands: Path | None = Field(
        None, description="File of the commands that may run as MCP servers. Without it, none runs."
    )

    otel_exporter_otlp_endpoint: WebAddress | None = Field(None, description="URL of a trace collector (OTLP/HTTP).")
    otel_exporter_otlp_headers: SecretStr | None = Field(None, description="Its headers: `name=value`, with commas.")
    otel_service_name: str = Field("gatehouse", description="Name of the platform in traces.")
    otel_resource_attributes: str = Field("", description="Further resource attributes: `name=value`, with commas.")
    otel_traces_sampler_arg: float = Field(
        1.0, ge=0, le=1, description="Share of requests that are traced, among those that arrive without a trace."
    )

    batch_concurrency: int = Field(8, ge=0, le=1000, description="Lines of batches that a worker runs at once.")
    batch_max_lines: int = Field(50_000, ge=1, le=100_000, description="Maximum lines of a batch.")
    files_max_bytes: int = Field(1024**3, ge=1024, description="Maximum size of an organization's files and batches.")
    file_retention_days: int = Field(30, ge=1, le=365, description="Lifetime of files and of ended batches.")

    smtp_url: SmtpUrl | None = Field(None, description="Mail server: smtp:// with STARTTLS, or smtps://.")
    mail_from: MailSender | None = Field(None, description="Sender of the platform's mails.")

    cors_origins: Words = ()
    sandbox_enabled: bool | None = Field(None, description="The built-in sandbox provider; true only when embedded.")

    @field_validator("provider_max_connections_each")
    @classmethod
    def _within_total(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and value > info.data.get("provider_max_connections", value):
            raise ValueError("must not exceed PROVIDER_MAX_CONNECTIONS")
        return value

    def missing(self) -> list[str]:
        if self.smtp_url is None:
            return [] if self.mail_from is None else ["SMTP_URL: needed with MAIL_FROM"]
        faults = [] if self.mail_from else ["MAIL_FROM: needed with SMTP_URL; it is the sender of mails"]
        if self.public_url is None:
            faults.append("PUBLIC_URL: needed with SMTP_URL; links in mails begin with it")
        return faults

    @property
    def mail(self) -> MailSettings | None:
        """Returns the settings of mails, or None if the platform sends no mails."""
        if self.smtp_url is None or self.mail_from is None or self.public_url is None:
            return None
        return MailSettings(parse_smtp_url(self.smtp_url.get_secret_value()), self.mail_from, self.public_url)

    @property
    def connections_per_provider(self) -> int:
        """Returns the limit of concurrent calls to one provider. Because of it, a provider that does not respond leaves
        connections for other providers."""
        return self.provider_max_connections_each or (self.provider_max_connections + 1) // 2

    @property
    def embedded(self) -> bool:
        return self.database_url is None

    @property
    def sandbox(self) -> bool:
        return self.embedded if self.sandbox_enabled is None else self.sandbox_enabled
