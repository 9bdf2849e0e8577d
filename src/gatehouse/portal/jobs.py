"""The portal's jobs: work at the platform, queued in the transaction of a change and retried with backoff for hours.

    @job("org_provision", on_failure=failed)
    async def provision(context: JobContext, org_id: OrgId | None) -> None: ...

    await queue(change.session, provision, org_id)

A job has no arguments besides the organization: it reads the present state when it runs. So one queued job serves every
change that needs it. A job without `on_failure` is retried until the platform has accepted it.
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

#: Attempts of a job: delays of 2 s, 4 s, ... 34 min, then an hour each, ten hours in all, then `on_failure`.
MAX_ATTEMPTS: Final = 21
_ATTEMPT_TIMEOUT_SECONDS: Final = 60.0


class JobContext(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that jobs and duties may use."""

    settings: PortalSettings
    database: Database
    platform: PlatformClient
    figures: PortalMetrics


JOBS: Final = Jobs[JobContext](expected=(PlatformError,))

JobWork: TypeAlias = Callable[[JobContext, OrgId | None], Awaitable[None]]


def job(kind: str, *, on_failure: OnFailure | None = None) -> Callable[[JobWork], JobWork]:
    """Registers a job. `on_failure` is called when the platform refuses it or the last attempt fails."""
    # PLATFORM_URL, when it was removed, may be set again.
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
    """Queues a job in the session's transaction and return its id."""
    return await JOBS.queue(session, work, org_id)
