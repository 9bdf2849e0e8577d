"""Changes providers: their default credentials, configuration, status and health."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from sqlalchemy.dialects.postgresql import insert

from gatehouse.engine.providers import KINDS, CredentialField, ProviderKind
from gatehouse.engine.providers.credentials import (
    MissingCredentials,
    environment_name,
    fields_per_credential,
    is_complete,
    read_credentials,
)
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.egress.guard import BlockedAddress, EgressGuard, UnsafeUrl
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import EgressPolicy
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.ports import sealing_context
from gatehouse.platform.organization.tenants.table import egress_policy_of
from gatehouse.platform.request.callers import OperatorOnly
from gatehouse.platform.routing.providers.available_presets import changed_preset, find_preset, with_preset
from gatehouse.platform.routing.providers.errors import (
    CredentialsNotRemovable,
    ProviderIdAmbiguous,
    ProviderNotFound,
    ProviderNotNew,
    TooManyCredentials,
    TooManyProviders,
    bad_field,
)
from gatehouse.platform.routing.providers.health import CheckOutcome, HealthState, HealthStatus, next_health
from gatehouse.platform.routing.providers.kinds import OPENAI_COMPATIBLE, kind_of
from gatehouse.platform.routing.providers.presets import KINDS_BY_DIALECT, provider_config
from gatehouse.platform.routing.providers.schemas import (
    ConfigUpdate,
    ConfigUpdated,
    CredentialsSet,
    HealthCheckConfig,
    HealthCheckConfigured,
    Provider,
    ProviderConfigShown,
    ProviderHealth,
    ProviderStatus,
    StatusChanged,
    StatusUpdate,
)
from gatehouse.platform.routing.providers.table import (
    MAX_CREDENTIALS,
    NEED_CREDENTIALS,
    ModelCount,
    ProviderRow,
    credentials_of,
    delete_credentials,
    find_provider,
    further_keys,
    model_counts,
    provider_ids,
)
from gatehouse.policy.catalog import ProviderConfig

#: Maximum number of providers of an organization. Each has scheduled health checks.
MAX_PROVIDERS: Final = 500

#: Fields of a credentials body that are about the provider.
_NO_CREDENTIALS: Final = frozenset({"kind", "name", "preset"})

_OTHER_HOST: Final = "names another host, to which the provider's other credentials would be sent: remove them"
_WAY_IN_USE: Final = "the provider's other credentials may use this way of authentication: remove them first"

#: The allowed addresses by egress policy, for error messages.
_EGRESS_RULES: Final[Mapping[EgressPolicy, str]] = {
    "private": "providers may be anywhere but at metadata, link-local, multicast and reserved addresses",
    "public": "the egress policy `public` permits the open internet, and what the operator names in EGRESS_ALLOWLIST",
    "listed": "the egress policy `listed` permits only what the operator names in EGRESS_ALLOWLIST",
}


class Addresses(NamedTuple):
    """The address guard with an organization's egress policy."""

    guard: EgressGuard
    egress: EgressPolicy


def shown(row: ProviderRow, count: ModelCount) -> Provider:
    return Provider(
        id=row.id,
        name=row.name,
        kind=row.kind,
        type=KINDS[row.kind].type if row.kind in KINDS else "native",
        status=status_of(row, count),
        enabled=row.enabled,
        kill_switch_active=switched_off(count),
        credentials_configured=credentials_configured(row),
        last_health_check=row.last_health_check,
        health_check_status=row.health.status,
        models_enabled=count.active,
        config=config_shown(row),
        health_check_config=HealthCheckConfig.model_validate(msgspec.structs.asdict(row.checks)),
        updated_at=row.updated_at,
    )


def health_shown(row: ProviderRow, count: ModelCount) -> ProviderHealth:
    return ProviderHealth(
        id=row.id,
        name=row.name,
        status=status_of(row, count),
        health_check_status=row.health.status,
        latency_ms=row.health_latency_ms,
        last_checked=row.last_health_check,
    )


def status_of(row: ProviderRow, count: ModelCount) -> ProviderStatus:
    if switched_off(count):
        return "kill_switched"
    if not row.enabled:
        return "disabled"
    return "unhealthy" if row.unhealthy else "active"


def switched_off(count: ModelCount) -> bool:
    """Return whether kill switches stop the provider or all of its models, so that nothing should be sent to it."""
    return count.provider_off or 0 < count.total == count.switched_off


def credentials_configured(row: ProviderRow) -> bool:
    """Return whether all required credentials are set. For a kind without required credentials, return whether any is
    set."""
    kind = KINDS.get(row.kind)
    if kind is None:
        return False
    has_further = any(entry["state"] != "disabled" for entry in row.further or ())
    has_secret = has_further or (row.sealed_credentials is not None and row.credential_state != "disabled")

    def is_present(field: CredentialField) -> bool:
        if field.secret:
            return has_secret
        return bool(row.config.get(field.name)) or (field.per_credential and has_further)

    if any(field.required for field in kind.credential_fields):
        return is_complete(kind, is_present)
    return not kind.credential_fields or any(map(is_present, kind.credential_fields))


def has_required_credentials(row: ProviderRow) -> bool:
    """Return whether the provider has all credentials that a call needs. An endpoint of the organization's own needs
    none."""
    kind = KINDS.get(row.kind)
    return kind is not None and (credentials_configured(row) or row.kind not in NEED_CREDENTIALS)


def config_shown(row: ProviderRow) -> ProviderConfigShown:
    config = msgspec.structs.asdict(msgspec.convert(row.config, ProviderConfig))
    effective = provider_config(row.kind, row.config, row.file_preset).quirks
    config["effective_quirks"] = None if effective is None else effective.own
    if config["quirks"] is not None:
        config["quirks"] = config["quirks"].own
    return ProviderConfigShown.model_validate(_masked(config))


async def set_credentials(
    change: Change,
    sealer: Sealer,
    provider_id: str,
    body: Mapping[str, Any],
    *,
    must_be_new: bool,
    sandbox: bool,
    guard: EgressGuard,
) -> CredentialsSet:
    """Replace the default credential, and create the provider if it does not exist. Raises `ProviderNotFound` if the id
    is not the name of a kind and the body has neither `kind` nor `base_url`; `ProviderNotNew` for an existing provider
    if `must_be_new` is true; `MissingCredentials`, `InvalidCredentials`, `OperatorOnly`, `ProviderIdAmbiguous`,
    `TooManyProviders`, `TooManyCredentials`."""
    row = await find_provider(change.session, provider_id, lock=True)
    if row is not None and must_be_new:
        raise ProviderNotNew
    entry = await find_preset(change.session, body, None if row is None else row.kind)
    preset = None if entry is None or body.get("preset") is None else entry[1]
    kind = kind_of(row, provider_id, body, preset=preset, sandbox=sandbox)
    body, address = (body, {}) if preset is None or row is not None else with_preset(preset, body)
    credentials = read_credentials(kind, {name: value for name, value in body.items() if name not in _NO_CREDENTIALS})
    if credentials.config.get("use_instance_role") and not (change.caller is not None and change.caller.operator):
        # These are the machine's own rights, which only operators may use, for their own organization.
        raise OperatorOnly
    addresses = await addresses_of(change, guard)
    config = {name: _checked(kind, name, value, addresses) for name, value in credentials.config.items()}
    if address:
        config |= {**address, "base_url": provider_url("base_url", address["base_url"], addresses)}
    config |= changed_preset({} if row is None else row.config, config.get("base_url"), entry)
    removed: dict[str, Any] = {}
    if row is not None and (further := await credentials_of(change.session, row.id)):
        if fields_per_credential(kind, {**row.config, **config}):
            _check_further(row, kind, config)
        else:
            # The provider uses the identity of the machine from now on, and none of its former credentials.
            await delete_credentials(change.session, row.id)
            removed["removed"] = [one.label for one in further]
    if kind.name == OPENAI_COMPATIBLE and "base_url" not in {**config, **({} if row is None else row.config)}:
        raise MissingCredentials("Missing: base_url.", missing=["base_url"])
    if row is None:
        row = await _create_or_find(change, provider_id, kind, must_be_new=must_be_new)
    renamed: dict[str, str] = {}
    if (name := body.get("name")) and name != row.name:
        renamed["name"] = row.name = name
    await set_default_credential(change, sealer, row, credentials.secret)
    row.config = {**row.config, **config}
    now = row.updated_at = row.credentials_updated_at = utc_now()
    forget_health(change, row)
    fields = sorted({*credentials.secret, *config})
    change.record(
        "provider.credentials_set", "provider", row.id, fields=fields, **removed, **renamed, **_masked(config)
    )
    recompile_policy(change)
    return CredentialsSet(provider_id=row.id, credentials_configured=credentials_configured(row), updated_at=now)


async def remove_credentials(change: Change, row: ProviderRow) -> None:
    """Remove all credentials. The provider stays, but is not called until its credentials are set again. Raises
    `CredentialsNotRemovable`."""
    if row.kind not in NEED_CREDENTIALS:
        raise CredentialsNotRemovable
    removed = {field.name for field in KINDS[row.kind].credential_fields}
    row.sealed_credentials = row.credentials_updated_at = None
    row.credential_state = "active"
    await delete_credentials(change.session, row.id)
    row.config = {name: value for name, value in row.config.items() if name not in removed}
    row.updated_at = utc_now()
    forget_health(change, row)
    change.record("provider.credentials_removed", "provider", row.id)
    recompile_policy(change)


async def update_config(change: Change, row: ProviderRow, update: ConfigUpdate) -> ConfigUpdated:
    """Change the configuration. Raises `Unprocessable` for a setting that the provider's kind does not have, and for an
    unknown preset."""
    if update.responses_api is not None and KINDS[row.kind].responses_api is None:
        raise bad_field("responses_api", f"a provider of kind {row.kind} has no Responses API")
    if update.quirks is not None and row.kind not in KINDS_BY_DIALECT.values():
        raise bad_field("quirks", f"a provider of kind {row.kind} has no quirks")
    if update.preset is not None:
        await find_preset(change.session, {"preset": update.preset}, row.kind)
    changed = {name: value for name, value in update.model_dump(exclude={"quirks"}).items() if value is not None}
    if "preset" in update.model_fields_set:
        changed["preset"] = update.preset
    if update.quirks is not None:
        changed["quirks"] = update.quirks.record.own
    row.config = {**row.config, **changed}
    row.updated_at = utc_now()
    await change.session.flush()
    await change.session.refresh(row, ["file_preset"])
    change.record("provider.config_updated", "provider", row.id, **changed)
    recompile_policy(change)
    return ConfigUpdated(provider_id=row.id, config=config_shown(row), updated_at=row.updated_at)


async def set_status(change: Change, row: ProviderRow, update: StatusUpdate) -> StatusChanged:
    assert change.caller is not None
    row.enabled = update.enabled
    row.updated_at = utc_now()
    if update.enabled:
        # Enabling starts with a clean state, so that earlier failures do not keep it from being used.
        forget_health(change, row)
    change.record("provider.status_changed", "provider", row.id, reason=update.reason, enabled=update.enabled)
    recompile_policy(change)
    count = (await model_counts(change.session)).get(row.id, ModelCount())
    return StatusChanged(
        provider_id=row.id,
        status=status_of(row, count),
        enabled=row.enabled,
        kill_switch_active=switched_off(count),
        changed_by=change.caller.actor_id,
        reason=update.reason,
        changed_at=row.updated_at,
    )


def set_checks(change: Change, row: ProviderRow, config: HealthCheckConfig) -> HealthCheckConfigured:
    row.health_config = {**msgspec.structs.asdict(row.checks), **config.sent()}
    row.updated_at = utc_now()
    change.record("provider.health_check_config_updated", "provider", row.id, **row.health_config)
    return HealthCheckConfigured(provider_id=row.id, updated_at=row.updated_at, **row.health_config)


def store_outcome(change: Change, row: ProviderRow, outcome: CheckOutcome) -> None:
    """Store the provider's health after a check. A provider whose credentials were removed is not called, so its health
    stays."""
    if not has_required_credentials(row):
        return
    health = next_health(row.health, outcome, row.checks)
    if health.unhealthy != row.unhealthy:
        record_transition(change, row, outcome, unhealthy=health.unhealthy)
    for name, value in health_values(health, outcome).items():
        setattr(row, name, value)


def health_values(health: HealthState, outcome: CheckOutcome) -> dict[str, Any]:
    """Return the values of the health columns."""
    return {
        "health_check_status": health.status,
        "last_health_check": outcome.checked_at,
        "health_error": outcome.detail,
        "health_latency_ms": outcome.latency_ms,
        "unhealthy": health.unhealthy,
        "consecutive_failures": health.failures,
        "consecutive_successes": health.successes,
    }


def record_transition(change: Change, row: ProviderRow, outcome: CheckOutcome, *, unhealthy: bool) -> None:
    """Record that a provider became unhealthy or recovered. Only these results of checks are sent to the workers,
    because only they affect routing."""
    action = "provider.became_unhealthy" if unhealthy else "provider.recovered"
    change.record(action, "provider", row.id, reason=outcome.error)
    change.touch("provider_health", row.tenant_id, tenant_id=row.tenant_id)


def forget_health(change: Change, row: ProviderRow) -> None:
    """Reset the health after a change of the configuration that it was observed with; the next check is due at once."""
    if row.unhealthy:
        change.touch("provider_health", row.tenant_id)
    unknown: HealthStatus = "unknown"
    row.health_check_status = unknown
    row.unhealthy = False
    row.last_health_check = row.health_error = row.health_latency_ms = None
    row.consecutive_failures = row.consecutive_successes = 0


def recompile_policy(change: Change) -> None:
    """Make the workers compile the organization's policy again. The response waits until they have."""
    change.touch("policy", change.tenant_id, urgent=True)


def _check_further(row: ProviderRow, kind: ProviderKind, config: Mapping[str, Any]) -> None:
    """Check that the provider's further credentials can be used with a new configuration, and are not sent to another
    host. Raises `Unprocessable`."""
    for field in kind.credential_fields:
        former, new = row.config.get(field.name), config.get(field.name)
        if field.form == "url" and former and new and origin(former) != origin(new):
            raise bad_field(field.name, _OTHER_HOST)
    remaining = fields_per_credential(kind, {**row.config, **config})
    for field in fields_per_credential(kind, row.config):
        if field not in remaining:
            raise bad_field(field.name, _WAY_IN_USE)


def origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


async def addresses_of(change: Change, guard: EgressGuard) -> Addresses:
    return Addresses(guard, await egress_policy_of(change.session, change.tenant_id) or "private")


def provider_url(field: str, url: str, addresses: Addresses) -> str:
    """Return a base URL without its trailing slash, after checking that it may be called. Raises `Unprocessable`. The
    addresses of a host name are checked at each connection."""
    try:
        safe = str(addresses.guard.provider_url(url, addresses.egress))
    except BlockedAddress as error:
        raise bad_field(field, f"{error.reason}; {_EGRESS_RULES[addresses.guard.bounds(addresses.egress)]}") from None
    except UnsafeUrl as error:
        raise bad_field(field, error.reason) from None
    if "?" in url or "#" in url:
        raise bad_field(field, "must end with its path: no query, no fragment")
    return safe.rstrip("/")


async def set_default_credential(change: Change, sealer: Sealer, row: ProviderRow, secret: Mapping[str, str]) -> None:
    """Replace the secret of the default credential, whose state stays. Without secret fields, remove the credential.
    Raises `TooManyCredentials`."""
    if not secret:
        row.sealed_credentials, row.credential_state = None, "active"
        return
    if row.sealed_credentials is None and len(await credentials_of(change.session, row.id)) >= MAX_CREDENTIALS:
        raise TooManyCredentials
    context = sealing_context(change.tenant_id, row.id)
    row.sealed_credentials = sealer.seal(msgspec.json.encode(secret), context=context)


async def insert_provider(
    change: Change, provider_id: str, *, name: str, kind: str, config: Mapping[str, Any]
) -> ProviderRow | None:
    """Insert a provider and return it locked; None if the id is in use. Raises `ProviderIdAmbiguous`,
    `TooManyProviders`."""
    await acquire_scoped(change.session, ScopedLock.PROVIDERS, str(change.tenant_id))
    existing = await provider_ids(change.session)
    if provider_id in existing:
        return None
    if len(existing) >= MAX_PROVIDERS:
        raise TooManyProviders
    # The ids of kinds are compared even if they are not in use, because an administrator may add them later.
    for other in (*existing, *KINDS, *await further_keys(change.session)):
        if other != provider_id and environment_name(other) == environment_name(provider_id):
            raise ProviderIdAmbiguous(provider_id, other)
    now: datetime = utc_now()
    inserted = await change.session.execute(
        insert(ProviderRow)
        .values(
            tenant_id=change.tenant_id, id=provider_id, name=name, kind=kind, config=dict(config),
            created_at=now, updated_at=now,
        )
        .on_conflict_do_nothing()
        .returning(ProviderRow.id)
    )  # fmt: skip
    if inserted.first() is None:
        return None
    return await find_provider(change.session, provider_id, lock=True)


async def _create_or_find(change: Change, provider_id: str, kind: ProviderKind, *, must_be_new: bool) -> ProviderRow:
    name = kind.title if provider_id == kind.name else provider_id
    row = await insert_provider(change, provider_id, name=name, kind=kind.name, config={})
    if row is not None:
        change.record("provider.created", "provider", provider_id, kind=kind.name)
        return row
    if must_be_new:
        raise ProviderNotNew
    # A concurrent request has created the provider. Its credentials are replaced if its kind is the same.
    row = await find_provider(change.session, provider_id, lock=True)
    if row is None or row.kind != kind.name:
        raise ProviderNotFound
    return row


def _checked(kind: ProviderKind, name: str, value: str | bool | None, addresses: Addresses) -> str | bool | None:
    form = next(field.form for field in kind.credential_fields if field.name == name)
    return provider_url(name, value, addresses) if form == "url" and isinstance(value, str) else value


def _masked(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with its access key id abbreviated."""
    key_id = config.get("cloud_access_key_id")
    if not key_id:
        return dict(config)
    return {**config, "cloud_access_key_id": f"{key_id[:4]}...{key_id[-4:]}" if len(key_id) > 12 else "..."}
