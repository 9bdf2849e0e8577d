"""Queries of the kill switch. Models' switches are columns of the catalog's rows."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.http.lists import OptionalWindow
from gatehouse.foundation.identity import TenantId

#: Topics of changes that revoke a right, whose propagation is reported.
REPORTED_TOPICS: Final = (
    "switch", "provider_switch", "mcp_switch", "api_key", "oauth_client", "user", "revocation", "tenant",
)  # fmt: skip

#: A model's own switch, or else its provider's.
_OF_PROVIDER: Final = (
    "(SELECT s.{} FROM provider_kill_switches s"
    " WHERE s.tenant_id = model_configs.tenant_id AND s.provider = model_configs.provider)"
)
_SINCE: Final = f"COALESCE(kill_switch_disabled_at, {_OF_PROVIDER.format('disabled_at')})"
_STATE: Final = (
    f"id, provider, model_id, display_name, is_active, {_SINCE} IS NOT NULL AS kill_switch_active,"
    f" {_SINCE} AS kill_switch_disabled_at,"
    f" COALESCE(disabled_reason, {_OF_PROVIDER.format('reason')}) AS disabled_reason"
)
# A row for each model, and for each provider without models. The names are in the order of their bytes.
_ROWS: Final = f"""
WITH named AS (
    SELECT id AS provider, name FROM providers
    UNION SELECT provider, NULL FROM (SELECT provider FROM provider_kill_switches UNION SELECT provider
        FROM model_configs) AS used WHERE NOT EXISTS (SELECT FROM providers p WHERE p.id = used.provider)
), states AS (SELECT {_STATE} FROM model_configs)
SELECT n.provider, m.id, m.model_id, m.display_name, m.is_active, m.kill_switch_active, m.kill_switch_disabled_at,
    m.disabled_reason
FROM named n LEFT JOIN states m ON m.provider = n.provider
WHERE strpos(lower(concat_ws(E'\\x01', n.provider, n.name, m.model_id, m.display_name)),
    lower(CAST(:search AS text))) > 0
    AND (CAST(:stopped AS boolean) IS NULL OR CAST(:stopped AS boolean) = COALESCE(m.kill_switch_active,
        EXISTS (SELECT FROM provider_kill_switches s WHERE s.provider = n.provider)))
"""  # noqa: S608 - constants of this file
_PAGE = text(f'{_ROWS} ORDER BY n.provider COLLATE "C", m.model_id COLLATE "C" LIMIT :limit OFFSET :offset')
_TOTAL = text(f"SELECT count(*) FROM ({_ROWS}) AS matching")  # noqa: S608
_COUNTS = text(
    f"SELECT provider, count(*) AS total, count(*) FILTER (WHERE {_SINCE} IS NOT NULL) AS stopped FROM model_configs"  # noqa: S608
    " WHERE provider = ANY(:providers) GROUP BY provider"
)
_BY_ID = text(f"SELECT {_STATE} FROM model_configs WHERE id = :id")  # noqa: S608
# Ordered, so that concurrent calls lock the rows in the same order and cannot deadlock.
_LOCK_OF_PROVIDER = text("SELECT id FROM model_configs WHERE provider = :provider ORDER BY id FOR UPDATE")
_LOCK = text("SELECT id FROM model_configs WHERE id = :id FOR UPDATE")
_PROVIDERS = text("SELECT id FROM providers UNION SELECT provider FROM provider_kill_switches ORDER BY 1")
_SWITCHES = text("SELECT provider, disabled_at, reason FROM provider_kill_switches")
_PROVIDER_OFF = text(
    "INSERT INTO provider_kill_switches (tenant_id, provider, reason) VALUES (:tenant, :provider, :reason)"
    " ON CONFLICT (tenant_id, provider) DO UPDATE SET reason = excluded.reason"
)
_PROVIDER_ON = text("DELETE FROM provider_kill_switches WHERE provider = :provider")
_OFF = text(
    "UPDATE model_configs SET kill_switch_disabled_at = COALESCE(kill_switch_disabled_at, now()),"  # noqa: S608
    f" disabled_reason = :reason WHERE id = ANY(:ids) RETURNING {_STATE}"
)
_ON = text(
    "UPDATE model_configs SET kill_switch_disabled_at = NULL, disabled_reason = NULL"  # noqa: S608
    f" WHERE id = ANY(:ids) RETURNING {_STATE}"
)
# The revisions of all tenants' changes form one sequence. Only the end of the sequence is read.
_RECENT = text(
    "SELECT c.revision, c.topic, min(c.at) AS at, count(*) AS target_count,"
    " (array_agg(COALESCE(m.provider || '/' || m.model_id, CASE c.topic WHEN 'provider_switch'"
    "  THEN split_part(c.key, '/', 2) || '/*' ELSE c.key END) ORDER BY m.provider, m.model_id, c.key))[1:100]"
    " AS targets FROM changes c LEFT JOIN model_configs m ON c.topic = 'switch' AND m.id::text = c.key"
    " WHERE c.tenant_id = :tenant AND c.topic = ANY(:topics)"
    " AND c.revision > (SELECT revision - 10000 FROM revision_head)"
    " GROUP BY c.revision, c.topic ORDER BY c.revision DESC, c.topic LIMIT :max_rows"
)

_OUTPOSTS = text(
    "SELECT outpost_id, version, seen_at, certificate_serial, certificate_ends FROM outpost_nodes"
    " WHERE seen_at > now() - interval '1 day' ORDER BY seen_at DESC LIMIT 200"
)
# An outpost has confirmed a change when it has confirmed a version that is not older than the change. The query returns
# the time of the first such version.
_CONFIRMATIONS = text(
    "SELECT r.revision, n.outpost_id, (SELECT v.at FROM outpost_confirmations v WHERE v.tenant_id = n.tenant_id"
    "  AND v.outpost_id = n.outpost_id AND v.version >= r.revision ORDER BY v.version LIMIT 1) AS at"
    " FROM unnest(CAST(:revisions AS bigint[])) AS r (revision) CROSS JOIN ("
    "  SELECT tenant_id, outpost_id FROM outpost_nodes WHERE seen_at > now() - interval '1 day'"
    "  ORDER BY seen_at DESC LIMIT 200) AS n ORDER BY 1, 2"
)

#: A row with the fields of `schemas.ModelState`.
State = Any


async def rows(
    session: AsyncSession, window: OptionalWindow, *, search: str | None, stopped: bool | None
) -> tuple[Sequence[State], int]:
    """Return a page of the models by provider and model id, and the number of all matching rows. A provider without
    models has one row, whose `id` is None. `search` is a part of the provider's id or name, or of the model's id or
    name. `stopped` selects those that a switch stops, or the others."""
    values = {"search": search or "", "stopped": stopped}
    page = await session.execute(_PAGE, {**values, "limit": window.limit, "offset": window.offset})
    return page.all(), (await session.execute(_TOTAL, values)).scalar_one()


async def counts(session: AsyncSession, providers: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the number of models by provider, and how many of them a switch stops. Providers without models are left
    out."""
    result = await session.execute(_COUNTS, {"providers": list(providers)})
    return {row.provider: (row.total, row.stopped) for row in result}


async def state(session: AsyncSession, model_config_id: UUID) -> State | None:
    return (await session.execute(_BY_ID, {"id": model_config_id})).first()


async def provider_ids(session: AsyncSession) -> Sequence[str]:
    return (await session.execute(_PROVIDERS)).scalars().all()


async def lock_model(session: AsyncSession, model_config_id: UUID) -> list[UUID]:
    """Lock a model until the end of the transaction. Returns its id, or nothing if it does not exist."""
    return list((await session.execute(_LOCK, {"id": model_config_id})).scalars())


async def lock_models_of(session: AsyncSession, provider: str) -> list[UUID]:
    """Lock a provider's models. Returns their ids."""
    return list((await session.execute(_LOCK_OF_PROVIDER, {"provider": provider})).scalars())


async def provider_switches(session: AsyncSession) -> dict[str, Any]:
    """Return the engaged switches by provider: rows with `disabled_at` and `reason`."""
    return {row.provider: row for row in await session.execute(_SWITCHES)}


async def switch_provider(session: AsyncSession, tenant_id: TenantId, provider: str, reason: str | None) -> None:
    """Engage a provider's switch, or release it with `reason` None. Engaging again replaces the reason, but not the
    time."""
    if reason is None:
        await session.execute(_PROVIDER_ON, {"provider": provider})
    else:
        await session.execute(_PROVIDER_OFF, {"tenant": tenant_id, "provider": provider, "reason": reason})


async def switch_off(session: AsyncSession, ids: list[UUID], reason: str) -> list[State]:
    return list((await session.execute(_OFF, {"ids": ids, "reason": reason})).all())


async def switch_on(session: AsyncSession, ids: list[UUID]) -> list[State]:
    return list((await session.execute(_ON, {"ids": ids})).all())


async def recent_changes(session: AsyncSession, tenant_id: TenantId, limit: int) -> Sequence[Any]:
    """Return the tenant's last changes of the reported topics, newest first."""
    values = {"tenant": tenant_id, "topics": list(REPORTED_TOPICS), "max_rows": limit}
    return (await session.execute(_RECENT, values)).all()


async def outposts(session: AsyncSession) -> Sequence[Any]:
    """Return the organization's outposts that were seen in the last day, with their active versions."""
    return (await session.execute(_OUTPOSTS)).all()


async def confirmations(session: AsyncSession, revisions: list[int]) -> dict[int, list[tuple[UUID, datetime | None]]]:
    """Return by revision the time at which each outpost confirmed it; None for an outpost that has not confirmed it."""
    by_revision: dict[int, list[tuple[UUID, datetime | None]]] = {}
    for revision, outpost_id, at in await session.execute(_CONFIRMATIONS, {"revisions": revisions}):
        by_revision.setdefault(revision, []).append((outpost_id, at))
    return by_revision
