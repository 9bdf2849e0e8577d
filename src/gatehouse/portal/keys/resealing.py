"""Re-seals all columns of the portal that are sealed under the master key (`gatehouse keys rotate-master portal`).

A family that seals a column adds a line to the list. A test compares the list with the schema.
"""

from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration import resealing
from gatehouse.administration.resealing import ResealReport, SealedColumn
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.portal.change import PortalChange
from gatehouse.portal.keys import authorities, signing

SEALED: Final = (
    SealedColumn("portal.signing_keys", ("kid",), "sealed_private", signing.context),
    SealedColumn("portal.authorities", ("id",), "sealed_private", authorities.context),
)


async def reseal(session: AsyncSession, sealer: Sealer) -> ResealReport:
    """Seals all columns under the current key, in this transaction, and commits it. Raises `CannotReseal`."""
    return await resealing.reseal(sealer, SEALED, PortalChange(session, None))
