"""The job that runs one turn of a batch. Only workers run these jobs, because they need the engine."""

from typing import Final, Protocol
from uuid import UUID

from gatehouse.administration.jobs import Jobs
from gatehouse.foundation.identity import TenantId


class BatchInterrupted(Exception):
    """A turn ended because the database was unavailable. The next attempt continues the batch."""


class TurnRunner(Protocol):
    async def run_turn(self, tenant_id: TenantId, batch_id: UUID) -> None: ...


BATCH_JOBS: Final = Jobs[TurnRunner](expected=(BatchInterrupted,))


@BATCH_JOBS.job("batches.run", max_attempts=None)
async def run_batch(runner: TurnRunner, org_id: UUID, *, batch_id: str) -> None:
    await runner.run_turn(TenantId(org_id), UUID(batch_id))
