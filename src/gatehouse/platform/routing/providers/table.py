"""Rows and queries of providers."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Double, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, column_property, mapped_column

from gatehouse.engine.providers import KINDS
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.settings import EgressPolicy
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.organization.tenants.table import TenantRecord
from gatehouse.platform.routing.providers.errors import ProviderNotFound
from gatehouse.platform.routing.providers.health import HealthConfig, HealthState, HealthStatus
from gatehouse.policy.records import ModelRecord, ProviderConfig, ProviderRecord


class ProviderRow(TenantRow):
    __tablename__ = "providers"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    kind: Mapped[str]
    enabled: Mapped[bool]
    sealed_credentials: Mapped[str | None]
    credentials_updated_at: Mapped[datetime | None]
    config: Mapped[dict[str, Any]]
    health_config: Mapped[dict[str, Any]]
    health_check_status: Mapped[str]
    last_health_check: Mapped[datetime | None]
    health_error: Mapped[str | None]
    health_latency_ms: Mapped[float | None] = mapped_column(Double)
    unhealthy: Mapped[bool]
    consecutive_failures: Mapped[int]
    consecutive_successes: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    #: the organization's policy
    egress_policy: Mapped[EgressPolicy | None] = column_property(
        select(TenantRecord.egress_policy).where(TenantRecord.id == tenant_id).scalar_subquery()
    )

    @property
    def record(self) -> ProviderRecord:
        """The record for the engine."""
        return ProviderRecord(
            id=self.id,
            name=self.name,
            kind=self.kind,
            enabled=self.enabled,
            sealed_credentials=self.sealed_credentials,
            config=msgspec.convert(self.config, ProviderConfig),
            egress_policy=self.egress_policy,
        )

    @property
    def checks(self) -> HealthConfig:
        return msgspec.convert(self.health_config, HealthConfig)

    @property
    def health(self) -> HealthState:
        return HealthState(
            status=msgspec.convert(self.health_check_status, HealthStatus),
            unhealthy=self.unhealthy,
            failures=self.consecutive_failures,
            successes=self.consecutive_successes,
        )


class ModelCount(msgspec.Struct, frozen=True):
    """The numbers of a provider's entries in the catalog."""

    total: int = 0
    active: int = 0
    switched_off: int = 0
    #: whether a kill switch stops the provider as a whole
    provider_off: bool = False


#: Kinds that require credentials. Such a provider has none where `credentials_updated_at` is null.
NEED_CREDENTIALS: Final = frozenset(
    name for name, kind in KINDS.items() if any(field.required for field in kind.credential_fields)
)

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")
_COUNTS = text(
    "SELECT provider, count(*) AS total, count(*) FILTER (WHERE is_active) AS active,"
    " count(kill_switch_disabled_at) AS switched_off FROM model_configs GROUP BY provider"
)
_SWITCHES = text("SELECT provider FROM provider_kill_switches")
# The order: models for chat before those for embeddings, then by price, then the default first.
_TRIAL_MODEL = text(
    "SELECT id, provider, model_id, capabilities FROM model_configs"
    " WHERE provider = :provider AND is_active AND kill_switch_disabled_at IS NULL"
    " AND NOT EXISTS (SELECT FROM provider_kill_switches s WHERE s.provider = model_configs.provider)"
    " AND (CAST(:model AS text) IS NULL OR model_id = :model)"
    " ORDER BY COALESCE((capabilities->>'embeddings')::boolean, false), cost_per_output_token NULLS LAST,"
    " is_default DESC, model_id LIMIT 1"
)


async def all_providers(session: AsyncSession) -> Sequence[ProviderRow]:
    return (await session.scalars(select(ProviderRow).order_by(ProviderRow.id))).all()


async def provider_ids(session: AsyncSession) -> Sequence[str]:
    return (await session.scalars(select(ProviderRow.id))).all()


async def find_provider(session: AsyncSession, provider_id: str, *, lock: bool = False) -> ProviderRow | None:
    """Return the provider of the session's tenant, or None. With `lock`, it is locked for a change."""
    if not _ID.fullmatch(provider_id):
        return None
    query = select(ProviderRow).where(ProviderRow.id == provider_id)
    if lock:
        query = query.with_for_update()
    return (await session.scalars(query)).one_or_none()


async def the_provider(session: AsyncSession, provider_id: str, *, lock: bool = False) -> ProviderRow:
    """Return the provider as `find_provider` does. Raises `ProviderNotFound`."""
    row = await find_provider(session, provider_id, lock=lock)
    if row is None:
        raise ProviderNotFound
    return row


async def model_counts(session: AsyncSession) -> Mapping[str, ModelCount]:
    """Return the counts by provider. One without entries, and without a kill switch of its own, is absent."""
    switched_off = set((await session.execute(_SWITCHES)).scalars())
    rows = await session.execute(_COUNTS)
    counts = {
        row.provider: ModelCount(row.total, row.active, row.switched_off, row.provider in switched_off) for row in rows
    }
    return {**{provider: ModelCount(provider_off=True) for provider in switched_off}, **counts}


async def trial_model(session: AsyncSession, provider_id: str, model_id: str | None = None) -> ModelRecord | None:
    """Return an active model for a test call, `model_id` or else the cheapest; none that a kill switch stops."""
    row = (await session.execute(_TRIAL_MODEL, {"provider": provider_id, "model": model_id})).first()
    return None if row is None else ModelRecord(**row._mapping)
