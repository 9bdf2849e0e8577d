"""What outposts get, and hand in: bundles of policy, and records (decisions 8, Wires; decisions 9).

The endpoints are `operations.outposts`; this is what they reach through `platform.ports`.
"""

from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live.state import Replica
from gatehouse.platform.supply.bundles import Bundles
from gatehouse.platform.supply.intake import Intake
from gatehouse.platform.uploads import Stored, Upload
from gatehouse.policy.wire import Contents


class Supply:
    """One worker's. `close` it once requests have ended."""

    def __init__(self, database: Database, replica: Replica) -> None:
        self._bundles = Bundles(database, replica)
        self._intake = Intake(database.url)

    async def contents(self, tenant_id: TenantId, at_least: int = 0) -> Contents:
        return await self._bundles.contents(tenant_id, at_least)

    async def store(self, outpost: Caller, upload: Upload) -> Stored:
        return await self._intake.store(outpost, upload)

    async def close(self) -> None:
        await self._intake.close()
