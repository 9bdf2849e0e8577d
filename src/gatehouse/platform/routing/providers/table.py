"""Rows and queries of providers."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Double, Select, Text, delete, func, select, text
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, column_property, mapped_column

from gatehouse.engine.providers import KINDS
from gatehouse.foundation.http.lists import containing, sorted_by
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.settings import EgressPolicy
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.organization.tenants.table import TenantRecord
from gatehouse.platform.routing.providers.errors import ProviderNotFound
from gatehouse.platform.routing.providers.health import HealthConfig, HealthState, HealthStatus
from gatehouse.platform.routing.providers.presets import provider_config
from gatehouse.policy.catalog import (
    CredentialRecord,
    CredentialState,
    ModelRecord,
    ProviderRecord,
    credential_key,
)
from gatehouse.policy.routing import SPECIAL_USES


class CredentialRow(TenantRow):
    """A credential of a provider besides the default one."""

    __tablename__ = "provider_credentials"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    provider_id: Mapped[str] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[CredentialState] = mapped_column(Text())
    sealed_secret: Mapped[str]
    created_at: Mapped[datetime]
    #: when the secret was set
    rotated_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class VendorRow(TenantRow):
    """Data of a vendor from files of `gatehouse prices update -f`: its preset, and its models by id."""

    __tablename__ = "vendors"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    #: null if no file contained one
    preset: Mapped[dict[str, Any] | None]
    models: Mapped[dict[str, Any]]


class ProviderRow(TenantRow):
    __tablename__ = "providers"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    kind: Mapped[str]
    enabled: Mapped[bool]
    sealed_credentials: Mapped[str | None]
    credentials_updated_at: Mapped[datetime | None]
    #: state of the default credential
    credential_state: Mapped[CredentialState] = mapped_column(Text())
    config: Mapped[dict[str, Any]] = mapped_column(JSONB)
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
    #: the preset of a file that the configuration names, as it was when the row was loaded
    file_preset: Mapped[dict[str, Any] | None] = column_property(
        select(VendorRow.preset)
        .where(VendorRow.tenant_id == tenant_id, VendorRow.id == config["preset"].astext)
        .scalar_subquery(),
        expire_on_flush=False,
    )
    #: the credentials besides the default one, as they were when the row was loaded
    further: Mapped[list[dict[str, Any]] | None] = column_property(
        select(
            func.jsonb_agg(
                aggregate_order_by(
                    func.jsonb_build_object(
                        "label",
                        CredentialRow.label,
                        "state",
                        CredentialRow.state,
                        "sealed",
                        CredentialRow.sealed_secret,
                    ),
                    CredentialRow.label,
                ),
                type_=JSONB(),
            )
        )
        .where(CredentialRow.tenant_id == tenant_id, CredentialRow.provider_id == id)  # noqa: A003 - the column
        .scalar_subquery(),
        expire_on_flush=False,
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
            credential_state=self.credential_state,
            credentials=msgspec.convert(self.further or [], tuple[CredentialRecord, ...]),
            config=provider_config(self.kind, self.config, self.file_preset),
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


#: Maximum number of credentials of a provider, including the default one.
MAX_CREDENTIALS: Final = 10

#: Kinds that require credentials. A provider of such a kind has no credentials if `credentials_updated_at` is null.
NEED_CREDENTIALS: Final = frozenset(
    name for name, kind in KINDS.items() if any(field.required for field in kind.credential_fields)
)

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")
_COUNTS = text(
    "SELECT provider, count(*) AS total, count(*) FILTER (WHERE is_active) AS active,"
    " count(kill_switch_disabled_at) AS switched_off FROM model_configs GROUP BY provider"
)
_SWITCHES = text("SELECT provider FROM provider_kill_switches")
# Chat models come before models for other operations, then cheaper models first, and at the same price the default.
_TRIAL_MODEL = text(
    "SELECT id, provider, model_id, capabilities FROM model_configs"
    " WHERE provider = :provider AND is_active AND kill_switch_disabled_at IS NULL"
    " AND NOT EXISTS (SELECT FROM provider_kill_switches s WHERE s.provider = model_configs.provider)"
    " AND (CAST(:model AS text) IS NULL OR model_id = :model)"
    " ORDER BY EXISTS (SELECT FROM unnest(CAST(:special_uses AS text[])) AS use"
    " WHERE COALESCE((capabilities->>use)::boolean, false)), cost_per_output_token NULLS LAST,"
    " is_default DESC, model_id LIMIT 1"
)


def list_query(*, search: str | None, enabled: bool | None, sort: str) -> Select[ProviderRow]:
    """Return the query of providers by part of the id or the name, and state."""
    query = containing(select(ProviderRow), search, ProviderRow.id, ProviderRow.name)
    if enabled is not None:
        query = query.where(ProviderRow.enabled.is_(enabled))
    columns = {
        "name": ProviderRow.name,
        "kind": ProviderRow.kind,
        "last_health_check": ProviderRow.last_health_check,
        "created_at": ProviderRow.created_at,
    }
    if sort.removeprefix("-") == "id":
        return query.order_by(ProviderRow.id.desc() if sort.startswith("-") else ProviderRow.id)
    return sorted_by(query, sort, columns, unique=ProviderRow.id)


async def all_providers(session: AsyncSession) -> Sequence[ProviderRow]:
    return (await session.scalars(select(ProviderRow).order_by(ProviderRow.id))).all()


async def provider_ids(session: AsyncSession) -> Sequence[str]:
    return (await session.scalars(select(ProviderRow.id))).all()


async def further_keys(session: AsyncSession) -> list[str]:
    """Return the names of all credentials of the session's tenant besides the default ones (`credential_key`)."""
    rows = await session.execute(select(CredentialRow.provider_id, CredentialRow.label))
    return [credential_key(provider_id, label) for provider_id, label in rows.tuples()]


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


async def credentials_of(session: AsyncSession, provider_id: str) -> Sequence[CredentialRow]:
    """Return the credentials besides the default one, by label."""
    query = select(CredentialRow).where(CredentialRow.provider_id == provider_id).order_by(CredentialRow.label)
    return (await session.scalars(query)).all()


async def delete_credentials(session: AsyncSession, provider_id: str) -> None:
    """Delete the credentials besides the default one."""
    await session.execute(delete(CredentialRow).where(CredentialRow.provider_id == provider_id))


async def model_counts(session: AsyncSession) -> Mapping[str, ModelCount]:
    """Return the counts by provider, without providers that have neither entries nor a kill switch of their own."""
    switched_off = set((await session.execute(_SWITCHES)).scalars())
    rows = await session.execute(_COUNTS)
    counts = {
        row.provider: ModelCount(row.total, row.active, row.switched_off, row.provider in switched_off) for row in rows
    }
    return {**{provider: ModelCount(provider_off=True) for provider in switched_off}, **counts}


async def trial_model(session: AsyncSession, provider_id: str, model_id: str | None = None) -> ModelRecord | None:
    """Return an active model for a test call that no kill switch stops: `model_id`, or else the cheapest one."""
    values = {"provider": provider_id, "model": model_id, "special_uses": list(SPECIAL_USES)}
    row = (await session.execute(_TRIAL_MODEL, values)).first()
    return None if row is None else ModelRecord(**row._mapping)
