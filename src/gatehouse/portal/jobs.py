"""The portal's jobs. A job calls the platform. It is queued in the transaction of a change, and is retried for hours
with increasing delays.

    @job("org_provision", on_failure=failed)
    async def provision(context: JobContext, org_id: OrgId | None) -> None: ...

    await queue(change.session, provision, org_id)

The only argument of a job is the organization. A job reads the present state when it runs, so one queued job is
sufficient for all changes that need it. A job without `on_failure` is retried until the platform has accepted it.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration.jobs import Jobs, OnFailure
from gatehouse.foundation.storage.database import Database
from gatehouse.portal.identity import OrgId
from gatehouse.portal.metrics import PortalMetrics
from gatehouse.portal.platform_link.client import (
    PlatformClient,
    PlatformError,
    PlatformNotConfigured,
    PortalPlatformRefusal,
)
from gatehouse.portal.settings import PortalSettings

#: Maximum number of attempts of a job with `on_failure`. The delays are 2 s, 4 s, ... 34 min, then one hour, and ten
#: hours in total.
MAX_ATTEMPTS: Final = 21
_ATTEMPT_TIMEOUT_SECONDS: Final = 60.0


class JobContext(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that jobs and duties may use."""

    settings: PortalSettings
    database: Database
    platform: PlatformClient
    metrics: PortalMetrics


JOBS: Final = Jobs[JobContext](expected=(PlatformError,))

JobWork: TypeAlias = Callable[[JobContext, OrgId | None], Awaitable[None]]


def job(kind: str, *, on_failure: OnFailure | None = None) -> Callable[[JobWork], JobWork]:
    """Returns a decorator that registers a job. `on_failure` is called when the platform refuses the job, or when the
    last attempt has failed."""
    # A job without `on_failure` is also retried while PLATFORM_URL is not set, because it may be set again.
    final: tuple[type[Exception], ...] = (PortalPlatformRefusal,)
    if on_failure is not None:
        final = (PortalPlatformRefusal, PlatformNotConfigured)
    return JOBS.job(
        kind,
        serial=True,
        max_attempts=None if on_failure is None else MAX_ATTEMPTS,
        timeout_seconds=_ATTEMPT_TIMEOUT_SECONDS,
        is_final=lambda error: isinstance(error, final),
        on_failure=on_failure,
    )


async def queue(session: AsyncSession, work: JobWork, org_id: OrgId | None) -> UUID:
    """Queues a job in the session's transaction. Returns the id of the job."""
    return await JOBS.queue(session, work, org_id)
