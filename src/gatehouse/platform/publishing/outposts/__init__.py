"""Publishes policy bundles to outposts, and stores their records (docs/outpost-protocol.md).

The endpoints in `operations.outposts` use this package through `platform.request.ports`.
"""

import asyncio
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.metrics import Gauge
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live.outpost_records import Confirmed, Stored, Upload
from gatehouse.platform.live.replica.state import Replica
from gatehouse.platform.publishing.outposts.bundles import BundlePublisher
from gatehouse.platform.publishing.outposts.confirmations import Confirmations
from gatehouse.platform.publishing.outposts.credentials import sealed_to
from gatehouse.platform.publishing.outposts.intake import Intake
from gatehouse.policy.bundles.contents import BundleContents


class Supply:
    """Implements the port `OutpostSupply` for one worker. Close it after the last request."""

    def __init__(self, database: Database, replica: Replica, sealer: Sealer, certificates: Gauge) -> None:
        """Create the supply. `certificates` is the metric with the times at which the certificates of outposts end."""
        self._sealer = sealer
        self._bundles = BundlePublisher(database, replica)
        self._intake = Intake(database.url)
        self._confirmations = Confirmations(database, certificates)

    async def contents(self, tenant_id: TenantId, at_least: int = 0) -> BundleContents:
        return await self._bundles.contents(tenant_id, at_least)

    async def credentials(
        self, contents: BundleContents, key: EllipticCurvePublicKey, *, tenant_id: TenantId, outpost_id: UUID
    ) -> dict[str, str]:
        if not contents.at_rest:
            return {}
        # Runs in a thread, because each operation takes about 0.1 milliseconds and many outposts fetch the same change
        # at once.
        return await asyncio.to_thread(
            sealed_to, key, contents, self._sealer, tenant_id=tenant_id, outpost_id=outpost_id
        )

    async def store(self, outpost: Caller, upload: Upload) -> Stored:
        return await self._intake.store(outpost, upload)

    def confirmed(self, confirmation: Confirmed) -> None:
        self._confirmations.add(confirmation)

    async def close(self) -> None:
        await self._confirmations.close()
        await self._intake.close()
