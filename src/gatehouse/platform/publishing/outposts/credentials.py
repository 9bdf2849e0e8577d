"""Re-encrypts the credentials of providers for one outpost: opens them, and seals them to the key of the outpost's
certificate.
"""

from uuid import UUID

import structlog
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import ecies
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.platform.live.ports import sealing_context
from gatehouse.policy.bundles import contents as bundle_contents
from gatehouse.policy.bundles.contents import BundleContents

log = structlog.get_logger(__name__)


def sealed_to(
    key: EllipticCurvePublicKey, contents: BundleContents, sealer: Sealer, *, tenant_id: TenantId, outpost_id: UUID
) -> dict[str, str]:
    """Return the sealed credentials by provider. Credentials that the master keys do not open are logged and left out,
    so that the outpost still receives the other credentials."""
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
