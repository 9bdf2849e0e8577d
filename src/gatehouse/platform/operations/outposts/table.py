"""The single row that says which outposts the platform trusts: CA certificates, organizations and serial numbers.
Operators change it."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row as ResultRow
from sqlalchemy import TextClause, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import PageWindow
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.locks import GlobalLock, acquire
from gatehouse.foundation.storage.rows import Row

KEY: Final = "portal"

_EXISTING_TENANTS: Final = text("SELECT id FROM tenants WHERE id = ANY(CAST(:ids AS uuid[])) AND deleted_at IS NULL")

# Selects the outposts of one organization: those that the portal names, and those that have connected or uploaded
# records before.
_LISTED: Final = (
    "WITH trusted AS (SELECT (o ->> 'outpost_id')::uuid AS outpost_id, jsonb_array_length(o -> 'serials') AS serials"
    "  FROM outpost_trust, jsonb_array_elements(outposts) AS o"
    "  WHERE organizations ->> (o ->> 'org_id') = CAST(:tenant AS text)),"
    " seen AS (SELECT outpost_id, version, seen_at, certificate_serial, certificate_ends FROM outpost_nodes"
    "  WHERE tenant_id = :tenant),"
    " stored AS (SELECT outpost_id, sum(sequence)::bigint AS records, max(updated_at) AS at FROM outpost_positions"
    "  WHERE tenant_id = :tenant GROUP BY outpost_id)"
    " SELECT outpost_id, seen_at, nullif(version, 0) AS policy_version, certificate_serial,"
    " certificate_ends AS certificate_ends_at, coalesce(serials, 0) AS certificates,"
    " coalesce(records, 0) AS records_stored, stored.at AS records_stored_at,"
    # The key of a `policy` change is the organization; `tenant_id` may be that of the operator who changed it.
    " coalesce(version, 0) > 0 AND version >= coalesce((SELECT max(revision) FROM changes"
    "  WHERE revision > (SELECT revision - 10000 FROM revision_head)"
    "  AND CASE topic WHEN 'policy' THEN key = CAST(:tenant AS text) ELSE tenant_id = :tenant END), 0)"
    " AS policy_is_current,"
    " CASE WHEN coalesce(serials, 0) = 0 THEN 'revoked' WHEN seen_at IS NULL THEN 'unseen'"
    "  WHEN seen_at > now() - make_interval(secs => :silent) THEN 'connected' ELSE 'silent' END AS state"
    " FROM trusted FULL JOIN seen USING (outpost_id) FULL JOIN stored USING (outpost_id)"
)
_COUNT: Final = text(
    "SELECT count(*) FROM (SELECT (o ->> 'outpost_id')::uuid FROM outpost_trust, jsonb_array_elements(outposts) AS o"
    " WHERE organizations ->> (o ->> 'org_id') = CAST(:tenant AS text)"
    " UNION SELECT outpost_id FROM outpost_nodes WHERE tenant_id = :tenant"
    " UNION SELECT outpost_id FROM outpost_positions WHERE tenant_id = :tenant) AS known"
)
#: Time after which an outpost is treated as silent. An outpost that waits for its next policy confirms the present one
#: every 30 to 55 seconds.
_SILENT_AFTER_SECONDS: Final = 90


class OutpostTrustRow(Row):
    __tablename__ = "outpost_trust"

    key: Mapped[str] = mapped_column(primary_key=True)
    ca_certificates: Mapped[list[str]]
    #: tenant ids by organization id
    organizations: Mapped[dict[str, Any]]
    #: objects with `outpost_id`, `org_id`, `serials`
    outposts: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    updated_at: Mapped[datetime]


async def find_for_change(session: AsyncSession) -> OutpostTrustRow | None:
    """Return the row, or None. Takes a lock even if there is no row, so that two requests cannot both create it."""
    await acquire(session, GlobalLock.OUTPOST_TRUST)
    return (await session.scalars(select(OutpostTrustRow).where(OutpostTrustRow.key == KEY))).one_or_none()


async def known_tenants(session: AsyncSession, ids: list[UUID]) -> set[UUID]:
    """Return those of `ids` that exist. The session must be an operator's, which sees all organizations."""
    return set((await session.execute(_EXISTING_TENANTS, {"ids": ids})).scalars())


@cache
def _page_query(sort: str) -> TextClause:
    """Return the query of a page. `sort` is a column of the list, with a leading minus for descending order."""
    direction = "DESC" if sort.startswith("-") else "ASC"
    return text(
        f"SELECT * FROM ({_LISTED}) AS listed ORDER BY {sort.removeprefix('-')} {direction} NULLS LAST, outpost_id"  # noqa: S608
        " LIMIT :limit OFFSET :offset"
    )


async def listed(
    session: AsyncSession, tenant_id: TenantId, window: PageWindow, sort: str
) -> tuple[Sequence[ResultRow[Any]], int]:
    """Return a page of the organization's outposts, and their total number. The session must have the service role,
    which can read the trust."""
    values = {
        "tenant": tenant_id, "silent": _SILENT_AFTER_SECONDS, "limit": window.limit, "offset": window.offset,
    }  # fmt: skip
    rows = (await session.execute(_page_query(sort), values)).all()
    return rows, (await session.execute(_COUNT, {"tenant": tenant_id})).scalar_one()
