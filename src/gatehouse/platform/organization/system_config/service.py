"""Lists and sets configuration entries."""

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, NotFound, Unprocessable
from gatehouse.foundation.settings import Settings
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.policies.service import require_caller_factor
from gatehouse.platform.organization.system_config import table
from gatehouse.platform.organization.system_config.keys import KEYS, ConfigKey, to_text
from gatehouse.platform.organization.system_config.schemas import Entry
from gatehouse.platform.organization.tenants.sources import Source
from gatehouse.platform.organization.tenants.table import TenantRecord


class EntryNotFound(NotFound):
    message = "There is no configuration entry with this key."


class NotEditable(Unprocessable):
    code = "not_editable"
    message = "This entry applies to the whole platform. It can be set only with its environment variable."


class BadValue(Unprocessable):
    def __init__(self, fault: str) -> None:
        super().__init__(faults=[FieldFault("value", fault)])


def require_key(name: str) -> ConfigKey:
    """Return the key with this name. Raises `EntryNotFound`."""
    key = KEYS.get(name)
    if key is None:
        raise EntryNotFound
    return key


async def entries(session: AsyncSession, settings: Settings) -> list[Entry]:
    stored = await table.own_values(session)
    return [_editable(key, stored.get(key.name)) if key.editable else _fixed(key, settings) for key in KEYS.values()]


async def put(change: Change, tenant: TenantRecord, key: ConfigKey, value: str) -> Entry:
    """Set the organization's own value of a key. Raises `NotEditable`, `BadValue` and `CallerHasNoFactor`."""
    if key.validate is None:
        raise NotEditable
    fault = key.validate(value)
    if fault is not None:
        raise BadValue(fault)
    stored = await table.own_value(change.session, key.name)
    if stored == value:
        # `updated_at` must not change, because the grace period of `mfa_required` starts at that time.
        return _editable(key, value)
    previous = table.effective_value(key.name, stored)
    await table.store(change.session, change.tenant_id, key.name, value)
    tenant.updated_at = utc_now()
    change.record("system_config.changed", "system_config", key.name, was=previous, value=value)
    if key.name == "governance_enabled" and previous != value:
        change.record("governance.enabled" if value == "true" else "governance.disabled")
    if key.name == "mfa_required":
        change.touch("tenant", change.tenant_id, urgent=True)
        await require_caller_factor(change)
    change.touch("policy", change.tenant_id, urgent=True)
    return _editable(key, value)


def _editable(key: ConfigKey, stored: str | None) -> Entry:
    return _entry(key, table.effective_value(key.name, stored), table.source(key.name, stored))


def _fixed(key: ConfigKey, settings: Settings) -> Entry:
    source: Source = "environment" if key.name in settings.model_fields_set else "default"
    return _entry(key, to_text(getattr(settings, key.name)), source)


def _entry(key: ConfigKey, value: str, source: Source) -> Entry:
    return Entry(
        key=key.name,
        category=key.category,
        value=value,
        default=key.default,
        source=source,
        editable=key.editable,
        choices=None if key.choices is None else list(key.choices),
        description=key.description,
    )
