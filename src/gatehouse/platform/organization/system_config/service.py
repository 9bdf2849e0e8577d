"""The rules of configuration entries."""

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.settings import Settings
from gatehouse.platform.change import Change
from gatehouse.platform.organization.policies.service import check_caller_is_let_in
from gatehouse.platform.organization.system_config import table
from gatehouse.platform.organization.system_config.errors import BadValue, EntryNotFound, NotEditable
from gatehouse.platform.organization.system_config.keys import KEYS, Key, written
from gatehouse.platform.organization.system_config.schemas import Entry


def known(name: str) -> Key:
    """Raises `EntryNotFound`."""
    key = KEYS.get(name)
    if key is None:
        raise EntryNotFound
    return key


async def entries(session: AsyncSession, settings: Settings) -> list[Entry]:
    values = await table.values(session)
    return [
        _shown(key, values[name] if key.editable else written(getattr(settings, name))) for name, key in KEYS.items()
    ]


async def put(change: Change, key: Key, value: str) -> Entry:
    """Sets the organization's own value. Raises `NotEditable`, `BadValue`, `CallerHasNoFactor`."""
    if key.judge is None:
        raise NotEditable
    fault = key.judge(value)
    if fault is not None:
        raise BadValue(fault)
    stored = await table.own_value(change.session, key.name)
    if stored == value:
        # Not even its time moves: with it begins the grace period of `mfa_required`.
        return _shown(key, value)
    was = table.resolved(key.name, stored)
    await table.store(change.session, change.tenant_id, key.name, value)
    change.record("system_config.changed", "system_config", key.name, was=was, value=value)
    if key.name == "governance_enabled" and was != value:
        change.record("governance.enabled" if value == "true" else "governance.disabled")
    if key.name == "mfa_required":
        change.touch("tenant", change.tenant_id, urgent=True)
        await check_caller_is_let_in(change)
    change.touch("policy", change.tenant_id, urgent=True)
    return _shown(key, value)


def _shown(key: Key, value: str) -> Entry:
    return Entry(
        key=key.name,
        category=key.category,
        value=value,
        default=key.default,
        editable=key.editable,
        description=key.description,
    )
