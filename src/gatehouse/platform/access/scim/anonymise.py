"""After a user's removal: the audit chain forgets who they were, and still holds (reference 2, SCIM, DELETE)."""

from typing import Final

from sqlalchemy import text

from gatehouse.platform.jobs import Tools, job

#: Events at a time, so that nobody waits long for their locks.
_MOST: Final = 5_000
_ANONYMISE: Final = text("SELECT gatehouse_anonymise(CAST(:tenant AS uuid), CAST(:person AS uuid), :most)")


@job("scim.anonymise")
async def anonymise(tools: Tools, *, tenant_id: str, user_id: str) -> None:
    done = _MOST
    while done == _MOST:
        async with tools.database.service() as session:
            values = {"tenant": tenant_id, "person": user_id, "most": _MOST}
            done = (await session.execute(_ANONYMISE, values)).scalar_one()
            await session.commit()
