"""Bodies of the policies' endpoints (reference 2, Organization settings, sub-policies)."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from croniter import croniter
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from gatehouse.foundation.http.bodies import Body, Shown, unsent
from gatehouse.platform.organization.policies.values import Concurrency, Enforcement, MfaMethod

SessionTimeout = Annotated[int, Field(ge=15, le=1440, examples=[480])]
IdleTimeout = Annotated[int, Field(ge=1, le=1440, examples=[60])]


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _once(methods: list[MfaMethod]) -> list[MfaMethod]:
    if len(set(methods)) < len(methods):
        raise ValueError("a method stands twice")
    return methods


def _in_utc(moment: datetime) -> datetime:
    """As it is told and reckoned with: at the ends of time an offset leads to a moment that there is not."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is no moment of the years 1 to 9999 in UTC") from None


class SessionPolicyUpdate(Body):
    """Only what is sent changes. A shorter session that is sent alone takes the idle time with it."""

    session_timeout_minutes: SessionTimeout = Field(default_factory=unsent)
    idle_timeout_minutes: IdleTimeout = Field(
        default_factory=unsent, description="Not longer than `session_timeout_minutes`."
    )
    concurrent_sessions: Annotated[Concurrency, BeforeValidator(_as_text)] = Field(
        default_factory=unsent, description="A number is taken for its text."
    )
    enforce_single_session: bool = Field(default_factory=unsent)
    refresh_token_enabled: bool = Field(default_factory=unsent)
    refresh_token_ttl_days: Annotated[int, Field(ge=1, le=365)] = Field(default_factory=unsent)


class SessionPolicy(Shown):
    session_timeout_minutes: int
    idle_timeout_minutes: int
    concurrent_sessions: Concurrency
    enforce_single_session: bool
    refresh_token_enabled: bool
    refresh_token_ttl_days: int


class MfaPolicyUpdate(Body):
    """Only what is sent changes."""

    enforcement_level: Enforcement = Field(default_factory=unsent, examples=["required"])
    sensitive_endpoints_require_mfa: bool = Field(default_factory=unsent)
    mfa_methods: Annotated[list[MfaMethod], Field(min_length=1), AfterValidator(_once)] = Field(default_factory=unsent)
    grace_period_hours: Annotated[int, Field(ge=0, le=8760)] = Field(default_factory=unsent)
    mfa_assertion_ttl_seconds: Annotated[int, Field(ge=60, le=86_400)] = Field(default_factory=unsent)
    enrollment_deadline: Annotated[AwareDatetime, Field(strict=False), AfterValidator(_in_utc)] | None = Field(
        default=None, description="Ends the grace period at the latest; null for none."
    )


class MfaPolicy(Shown):
    enforcement_level: Enforcement
    sensitive_endpoints_require_mfa: bool
    mfa_methods: list[MfaMethod]
    grace_period_hours: int
    mfa_assertion_ttl_seconds: int
    enrollment_deadline: datetime | None


#: Numbers, names of months and days: no seconds, no words for whole schedules, nothing at random.
_CRON: Final = re.compile(r"(?:(?:[0-9*/,-]|[A-Za-z]{3})+ ){4}(?:[0-9*/,-]|[A-Za-z]{3})+")


def _schedule(text: str) -> str:
    """With one blank between its five fields."""
    written = " ".join(text.split())
    if _CRON.fullmatch(written) is None or not _ever_comes(written):
        raise ValueError("is no cron schedule: minute, hour, day of month, month, day of week, such as 0 2 * * *")
    return written


def _ever_comes(schedule: str) -> bool:
    """A day that never does, such as 30 February, is found by looking for it."""
    try:
        croniter(schedule, max_years_between_matches=8).get_next()
    except ValueError:
        return False
    return True


Schedule = Annotated[str, Field(max_length=100, examples=["0 2 * * *"]), AfterValidator(_schedule)]


class RetentionPolicyUpdate(Body):
    """Only what is sent changes."""

    hot_retention_days: Annotated[int, Field(ge=1, le=3650, examples=[90])] = Field(default_factory=unsent)
    warm_retention_days: Annotated[int, Field(ge=0, le=3650, examples=[365])] = Field(default_factory=unsent)
    cold_retention_years: Annotated[int, Field(ge=0, le=100, examples=[7])] = Field(default_factory=unsent)
    archiver_schedule: Schedule = Field(default_factory=unsent, description="Cron, in the organization's time zone.")


class RetentionPolicy(Shown):
    hot_retention_days: Annotated[int, Field(description="Days that records stay in the database.")]
    warm_retention_days: Annotated[int, Field(description="Days in the archive after that.")]
    cold_retention_years: Annotated[int, Field(description="Years under the archive's cold prefix after that.")]
    archiver_schedule: str
    last_archival_run: datetime | None = None
    last_archival_status: str | None = None
    rows_archived_last_run: int | None = None
