"""Publishes policy bundles to outposts, and stores their records (docs/outpost-protocol.md).

The endpoints in `operations.outposts` use this package through `platform.request.ports`.
"""

import asyncio
from uuid import UUID

import structlog
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.metrics import Gauge
from gatehouse.foundation.secrets import ecies
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live.outpost_records import OutpostConfirmation, Stored, Upload
from gatehouse.platform.live.ports import sealing_context
from gatehouse.platform.live.replica.state import Replica
from gatehouse.platform.publishing.outposts.bundles import BundlePublisher
from gatehouse.platform.publishing.outposts.confirmations import Confirmations
from gatehouse.platform.publishing.outposts.intake import Intake
from gatehouse.policy.bundles import contents as bundle_contents
from gatehouse.policy.bundles.contents import BundleContents

log = structlog.get_logger(__name__)


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
            _sealed_to, key, contents, self._sealer, tenant_id=tenant_id, outpost_id=outpost_id
        )

    async def store(self, outpost: Caller, upload: Upload) -> Stored:
        return await self._intake.store(outpost, upload)

    def confirmed(self, confirmation: OutpostConfirmation) -> None:
        self._confirmations.add(confirmation)

    async def close(self) -> None:
        await self._confirmations.close()
        await self._intake.close()


def _sealed_to(
    key: EllipticCurvePublicKey, contents: BundleContents, sealer: Sealer, *, tenant_id: TenantId, outpost_id: UUID
) -> dict[str, str]:
    """Re-encrypt the credentials of providers to the key of an outpost's certificate, and return them by provider.

    Credentials that the master keys do not open are logged and left out, so that the outpost still receives the other
    credentials."""
    sealed = {}
    for provider_id, at_rest in contents.at_rest:
        try:
            clear = sealer.open(at_rest, context=sealing_context(tenant_id, provider_id))
        except CannotOpen:
            log.warning("outposts.credentials_unreadable", tenant_id=str(tenant_id), provider=provider_id)
            continue
        context = bundle_contents.sealing_context(outpost_id, tenant_id, provider_id)
        sealed[provider_id] = ecies.seal(clear, key, context=context)
    return sealed
