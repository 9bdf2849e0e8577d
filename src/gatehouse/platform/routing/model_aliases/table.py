"""Rows and queries of model aliases."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row, Select, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.engine.providers.failure import NOT_SENT
from gatehouse.foundation.http.lists import containing, sorted_by
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.policy.catalog import DEFAULT_CREDENTIAL


class ModelAliasRow(TenantRow):
    __tablename__ = "model_aliases"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str | None]
    enabled: Mapped[bool]
    balance: Mapped[str]
    sticky: Mapped[bool]
    deployments: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


_MODELS: Final = text(
    "SELECT provider || '/' || model_id FROM model_configs WHERE tenant_id = :tenant"
    " AND provider || '/' || model_id = ANY(:names)"
)
# The default credentials and all other credentials of the providers.
_CREDENTIALS: Final = text(
    "SELECT id, :default AS label FROM providers"
    " WHERE tenant_id = :tenant AND id = ANY(:providers) AND sealed_credentials IS NOT NULL"
    " UNION ALL SELECT provider_id, label FROM provider_credentials"
    " WHERE tenant_id = :tenant AND provider_id = ANY(:providers)"
)
# Reads the newest records of the period, so that the query is bounded. The record of a call that timed out names the
# provider (for the cost) and also has an attempt at the same model. Only the attempt is counted (`is_attempt`).
_COMPARED: Final = (
    "WITH compared AS MATERIALIZED (SELECT provider, model_id,"
    " CASE WHEN provider || '/' || model_id = ANY(:by_credential) THEN credential END AS credential,"
    " shadow, status, cost_usd, input_tokens, output_tokens, latency_ms, time_to_first_token_ms, attempts, cache,"
    " attempt_ms IS NULL AND coalesce(attempts @>"
    " jsonb_build_array(jsonb_build_object('provider', provider, 'model_id', model_id)), false) AS is_attempt"
    " FROM usage_records WHERE tenant_id = :tenant AND model_alias = :alias"
    " AND timestamp >= :since AND timestamp < :until ORDER BY timestamp DESC LIMIT :records)"
)
_COMPARISON: Final = text(
    f"{_COMPARED} SELECT provider, model_id, credential, shadow,"  # noqa: S608 - a constant
    " count(*) FILTER (WHERE NOT is_attempt) AS requests,"
    " count(*) FILTER (WHERE status = 'error' AND NOT is_attempt) AS errors, coalesce(sum(cost_usd), 0) AS cost_usd,"
    " coalesce(sum(input_tokens), 0)::bigint AS input_tokens,"
    " coalesce(sum(output_tokens), 0)::bigint AS output_tokens,"
    " percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY latency_ms) FILTER (WHERE status = 'success')"
    " AS latency,"
    " percentile_cont(0.5) WITHIN GROUP (ORDER BY time_to_first_token_ms)"
    " FILTER (WHERE status = 'success') AS first_token, 0 AS failed"
    " FROM compared WHERE provider IS NOT NULL AND cache IS DISTINCT FROM 'hit'"
    " GROUP BY provider, model_id, credential, shadow"
    " UNION ALL SELECT attempt ->> 'provider', attempt ->> 'model_id',"
    " CASE WHEN (attempt ->> 'provider') || '/' || (attempt ->> 'model_id') = ANY(:by_credential)"
    " THEN attempt ->> 'credential' END, shadow, 0, 0, 0, 0, 0,"
    " NULL, NULL, count(*) FROM compared, jsonb_array_elements(attempts) attempt"
    " WHERE attempt ->> 'reason' <> ALL(:not_sent) GROUP BY 1, 2, 3, 4"
    " UNION ALL SELECT NULL, NULL, NULL, NULL, count(*), 0, 0, 0, 0, NULL, NULL, 0 FROM compared"
)


def list_query(*, search: str | None, enabled: bool | None, sort: str) -> Select[ModelAliasRow]:
    """Return the query of aliases, filtered by a part of the name or description and by state."""
    query = containing(select(ModelAliasRow), search, ModelAliasRow.name, ModelAliasRow.description)
    if enabled is not None:
        query = query.where(ModelAliasRow.enabled == enabled)
    columns = {
        "name": ModelAliasRow.name,
        "balance": ModelAliasRow.balance,
        "created_at": ModelAliasRow.created_at,
        "updated_at": ModelAliasRow.updated_at,
    }
    return sorted_by(query, sort, columns, unique=ModelAliasRow.id)


async def count_model_aliases(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(ModelAliasRow))).scalar_one()


async def existing_models(session: AsyncSession, names: Sequence[str]) -> set[str]:
    """Return the `names` that are in the catalog. A name is `provider/model-id`."""
    values = {"tenant": session.info["tenant_id"], "names": list(names)}
    return set((await session.execute(_MODELS, values)).scalars())


async def existing_credentials(session: AsyncSession, providers: Sequence[str]) -> set[tuple[str, str]]:
    """Return the credentials of these providers, as pairs of provider and label."""
    if not providers:
        return set()
    values = {"tenant": session.info["tenant_id"], "providers": list(providers), "default": DEFAULT_CREDENTIAL}
    return {(row[0], row[1]) for row in await session.execute(_CREDENTIALS, values)}


async def comparison(
    session: AsyncSession,
    alias: str,
    since: datetime,
    until: datetime,
    *,
    by_credential: Sequence[str],
    max_records: int,
) -> Sequence[Row[Any]]:
    """Return the totals of the newest `max_records` records of an alias. There is one row for each deployment that
    answered, one for each deployment with failed attempts (`failed`), and one row without a provider for the number of
    records. The rows of the models in `by_credential` (`provider/model-id`) are separate for each credential."""
    values = {
        "by_credential": list(by_credential),
        "tenant": session.info["tenant_id"],
        "alias": alias,
        "since": since,
        "until": until,
        "records": max_records,
        "not_sent": sorted(NOT_SENT),
    }
    return (await session.execute(_COMPARISON, values)).all()
