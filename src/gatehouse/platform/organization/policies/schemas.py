"""Request and response bodies of the session, MFA and retention policy endpoints."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from croniter import croniter
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted
from gatehouse.platform.organization.policies.values import ConcurrentSessions, Enforcement, MfaMethod
from gatehouse.platform.organization.tenants.sources import Source, Sources

SessionTimeout = Annotated[int, Field(ge=15, le=1440, examples=[480])]
IdleTimeout = Annotated[int, Field(ge=1, le=1440, examples=[60])]


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _require_unique(methods: list[MfaMethod]) -> list[MfaMethod]:
    if len(set(methods)) < len(methods):
        raise ValueError("a method occurs twice")
    return methods


def _in_utc(moment: datetime) -> datetime:
    """Return the time in UTC. Raises `ValueError` if the time in UTC is outside the years 1 to 9999."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is not within the years 1 to 9999 in UTC") from None


class SessionPolicyUpdate(Body):
    """A partial update: omitted fields keep their values. If `session_timeout_minutes` is sent without
    `idle_timeout_minutes` and is shorter than the current idle timeout, the idle timeout is reduced to it."""

    session_timeout_minutes: SessionTimeout = Field(default_factory=omitted)
    idle_timeout_minutes: IdleTimeout = Field(
        default_factory=omitted, description="Not longer than `session_timeout_minutes`."
    )
    concurrent_sessions: Annotated[ConcurrentSessions, BeforeValidator(_as_text)] = Field(
        default_factory=omitted, description="A number is converted to a string."
    )
    enforce_single_session: bool = Field(default_factory=omitted)
    refresh_token_enabled: bool = Field(default_factory=omitted)
    refresh_token_ttl_days: Annotated[int, Field(ge=1, le=365)] = Field(default_factory=omitted)


class SessionPolicy(ResponseBody):
    session_timeout_minutes: int
    idle_timeout_minutes: int
    concurrent_sessions: ConcurrentSessions
    enforce_single_session: bool
    refresh_token_enabled: bool
    refresh_token_ttl_days: int
    sources: Annotated[
        Sources, Field(examples=[{"session_timeout_minutes": "organization", "idle_timeout_minutes": "default"}])
    ]


class MfaPolicyUpdate(Body):
    """A partial update: omitted fields keep their values."""

    enforcement_level: Enforcement = Field(default_factory=omitted, examples=["required"])
    sensitive_endpoints_require_mfa: bool = Field(default_factory=omitted)
    mfa_methods: Annotated[list[MfaMethod], Field(min_length=1), AfterValidator(_require_unique)] = Field(
        default_factory=omitted
    )
    grace_period_hours: Annotated[int, Field(ge=0, le=8760)] = Field(default_factory=omitted)
    mfa_assertion_ttl_seconds: Annotated[int, Field(ge=60, le=86_400)] = Field(default_factory=omitted)
    enrollment_deadline: Annotated[AwareDatetime, Field(strict=False), AfterValidator(_in_utc)] | None = Field(
        default=None, description="Latest end of the grace period, or null for no deadline."
    )


class MfaPolicy(ResponseBody):
    enforcement_level: Enforcement
    sensitive_endpoints_require_mfa: bool
    mfa_methods: list[MfaMethod]
    grace_period_hours: int
    mfa_assertion_ttl_seconds: int
    enrollment_deadline: datetime | None
    sources: Annotated[
        dict[str, Source],
        Field(
            description="The source of each value, by field. If the configuration entry `mfa_required` determines"
            " `enforcement_level`, its source is the source of that entry.",
            examples=[{"enforcement_level": "environment", "grace_period_hours": "default"}],
        ),
    ]


#: Matches cron expressions with five fields. croniter's extensions (a field for seconds, random values `R`, names such
#: as `@daily`) do not match.
_CRON: Final = re.compile(r"(?:(?:[0-9*/,-]|[A-Za-z]{3})+ ){4}(?:[0-9*/,-]|[A-Za-z]{3})+")


def _normalize_schedule(text: str) -> str:
    """Return the schedule with one space between its five fields. Raises `ValueError` for an invalid schedule."""
    schedule = " ".join(text.split())
    if _CRON.fullmatch(schedule) is None or not _has_next_run(schedule):
        raise ValueError("is not a cron schedule: minute, hour, day of month, month, day of week, such as 0 2 * * *")
    return schedule


def _has_next_run(schedule: str) -> bool:
    """Return whether the schedule has a next run. For example, 30 February never occurs."""
    try:
        croniter(schedule, max_years_between_matches=8).get_next()
    except ValueError:
        return False
    return True


Schedule = Annotated[str, Field(max_length=100, examples=["0 2 * * *"]), AfterValidator(_normalize_schedule)]


class RetentionPolicyUpdate(Body):
    """A partial update: omitted fields keep their values."""

    hot_retention_days: Annotated[int, Field(ge=1, le=3650, examples=[90])] = Field(default_factory=omitted)
    warm_retention_days: Annotated[int, Field(ge=0, le=3650, examples=[365])] = Field(default_factory=omitted)
    cold_retention_years: Annotated[int, Field(ge=0, le=100, examples=[7])] = Field(default_factory=omitted)
    archiver_schedule: Schedule = Field(
        default_factory=omitted, description="Cron schedule in the organization's time zone."
    )


class RetentionPolicy(ResponseBody):
    hot_retention_days: Annotated[int, Field(description="Days for which records stay in the database.")]
    warm_retention_days: Annotated[int, Field(description="Further days for which records stay in the warm archive.")]
    cold_retention_years: Annotated[int, Field(description="Further years for which records stay in the cold archive.")]
    archiver_schedule: str
    sources: Annotated[
        Sources, Field(examples=[{"hot_retention_days": "organization", "warm_retention_days": "default"}])
    ]
    last_archival_run: datetime | None = None
    last_archival_status: str | None = None
    rows_archived_last_run: int | None = None
