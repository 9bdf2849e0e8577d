"""Creates, changes and deletes API keys."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, Forbidden, NotFound, Unprocessable
from gatehouse.foundation.identity import Caller, CallerKind, Role
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.access.api_keys import table
from gatehouse.platform.access.api_keys.schemas import (
    ApiKeyCreated,
    DisabledBy,
    NewApiKey,
    OwnedApiKey,
    OwnedApiKeyCreated,
)
from gatehouse.platform.access.api_keys.table import ApiKeyRow, ListedKey
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.access.users import rights
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.credentials import InvalidBearerToken
from gatehouse.platform.organization.feature_flags.table import flag
from gatehouse.platform.records.spend.table import costs_of_keys


class ApiKeyNotFound(NotFound):
    message = "API key not found"


class NotAServiceAccount(Conflict):
    """An administrator tried to create a key for a person, and could act as that person with it."""

    code = "not_a_service_account"
    message = "Administrators can create keys only for service accounts. Users create their own keys."


class DisabledByAdministrator(Forbidden):
    code = "disabled_by_administrator"
    message = "An administrator disabled this key. Only an administrator can enable it again."
    error_format = "error_message"


class TooManyApiKeys(Conflict):
    code = "too_many_api_keys"

    def __init__(self, limit: int) -> None:
        super().__init__(f"A user has at most {limit} API keys. Remove one that is not used any more.")


class KeyScopingOff(Unprocessable):
    """`scopes` was sent without the feature flag `api_key_scoping`."""

    message = "API keys cannot be scoped down unless the feature flag api_key_scoping is on."

    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("scopes", self.message)])


async def create(change: Change, caller: Caller, new: NewApiKey, *, limit: int) -> ApiKeyCreated:
    """Create a key for the caller. The key never has more rights than the caller. `limit` is the maximum number of keys
    of a user.

    Raises `KeyScopingOff`, `TooManyApiKeys`, `InvalidBearerToken` if the session has ended meanwhile.
    """
    assert caller.user_id is not None
    # Takes the same lock as linking, which ends all keys of the user and must not miss this one.
    await change.session.get_one(UserRow, caller.user_id, with_for_update=True)
    await require_open_session(change, caller)
    row, plaintext = await _create_row(change, caller.user_id, new, limit)
    fields = _fields(row, user_active=True, month_cost_usd=Decimal())
    return ApiKeyCreated.model_validate({**fields, "api_key": plaintext})


async def require_open_session(change: Change, caller: Caller) -> None:
    """Refuse a request whose session ended while it waited for a row lock. Raises `InvalidBearerToken`."""
    if caller.session_id is not None:
        session = await change.session.get(SessionRow, caller.session_id)
        if session is None or not session.open():
            raise InvalidBearerToken


async def create_for_service_account(
    change: Change, caller: Caller, user: UserRow, new: NewApiKey, *, limit: int
) -> OwnedApiKeyCreated:
    """Create a key for a service account. The caller sees the key, and therefore must be able to grant all its rights.

    Raises `NotAServiceAccount`, `CannotGrant`, `KeyScopingOff`, `TooManyApiKeys`.
    """
    rights.require_may_change(caller, user)
    if user.kind != "service":
        raise NotAServiceAccount
    row, plaintext = await _create_row(change, user.id, new, limit)
    await change.session.flush()
    owned = _owned(await table.with_user(change.session, row), Decimal()).model_dump()
    return OwnedApiKeyCreated.model_validate({**owned, "api_key": plaintext})


async def _create_row(change: Change, user_id: UUID, new: NewApiKey, limit: int) -> tuple[ApiKeyRow, str]:
    """Create a key; return its row and the key itself. Raises `KeyScopingOff`, `TooManyApiKeys`."""
    if new.scopes is not None and not await flag(change.session, "api_key_scoping"):
        raise KeyScopingOff
    count = partial(table.count_keys_of_user, user_id=user_id)
    full = partial(TooManyApiKeys, limit)
    await require_room(change.session, ScopedLock.API_KEYS, count, limit=limit, full=full, scope=user_id)
    key = tokens.mint_api_key()
    row = add(change, user_id, new, key_prefix=key.shown, digest=key.digest)
    return row, key.plaintext


def add(change: Change, user_id: UUID, new: NewApiKey, *, key_prefix: str, digest: bytes) -> ApiKeyRow:
    """Add a key by its digest. The caller has checked the right to do so."""
    now = utc_now()
    row = ApiKeyRow(
        id=new_id(),
        tenant_id=change.tenant_id,
        user_id=user_id,
        key_prefix=key_prefix,
        digest=digest,
        description=new.description,
        created_at=now,
        updated_at=now,
        last_used=None,
        expires_at=_expiry(new.expires_in_days),
        is_enabled=True,
        scopes=None if new.scopes is None else sorted(set(new.scopes)),
        disabled_by=None,
        created_by=change.caller.user_id if change.caller else None,
    )
    change.session.add(row)
    change.record(
        "api_key.created", "api_key", row.id, description=row.description, expires_at=row.expires_at, user_id=user_id
    )
    change.touch("api_key", row.id, urgent=True)
    return row


def only_disables(key: ApiKeyRow, sent: Mapping[str, Any]) -> bool:
    """Return whether the update (`schemas.ApiKeyUpdate`) neither enables the key nor changes another field."""
    return not sent.get("is_enabled") and not _edited(key, sent)


async def update(change: Change, caller: Caller, key: ApiKeyRow, sent: Mapping[str, Any]) -> ApiKeyRow:
    """Change a key. `sent` are the fields to change (`schemas.ApiKeyUpdate`).

    Raises `CannotGrant`, `OperatorsOnly`, `KeyScopingOff`, `DisabledByAdministrator`.
    """
    edited = _edited(key, sent)
    if edited:
        # A caller who changes a key must be able to grant the rights of its owner.
        rights.require_may_change(caller, await change.session.get_one(UserRow, key.user_id))
        if edited.get("scopes") is not None and not await flag(change.session, "api_key_scoping"):
            raise KeyScopingOff
        key.assign(edited)
        change.record("api_key.updated", "api_key", key.id, **edited)
        change.touch("api_key", key.id, urgent=True)
    if "is_enabled" in sent:
        set_enabled(change, key, sent["is_enabled"])
    return key


def _edited(key: ApiKeyRow, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that differ after the update, without those of `is_enabled`."""
    fields = {name: sent[name] for name in ("description", "scopes") if name in sent}
    if fields.get("scopes") is not None:
        fields["scopes"] = sorted(set(fields["scopes"]))
    if "expires_in_days" in sent:
        fields["expires_at"] = _expiry(sent["expires_in_days"])
    return key.differing(fields)


def _expiry(days: int | None) -> datetime | None:
    return None if days is None else utc_now() + timedelta(days=days)


def set_enabled(change: Change, key: ApiKeyRow, enabled: bool) -> None:
    """Enable or disable the key. Raises `DisabledByAdministrator` if only an administrator may enable it."""
    actor = _actor(change.caller, key)
    disabled_by = key.disabled_by
    if enabled:
        if disabled_by not in {None, "owner"} and not (change.caller and _administers(change.caller)):
            raise DisabledByAdministrator
        disabled_by = None
    elif key.is_enabled or actor != "owner":
        # An owner who disables a disabled key does not replace the administrator in `disabled_by`.
        disabled_by = actor
    key.assign({"is_enabled": enabled, "disabled_by": disabled_by})
    change.record("api_key.updated", "api_key", key.id, is_enabled=enabled)
    change.touch("api_key", key.id, urgent=True)


async def delete(change: Change, key: ApiKeyRow) -> None:
    await change.session.delete(key)
    change.record("api_key.deleted", "api_key", key.id, description=key.description, user_id=str(key.user_id))
    change.touch("api_key", key.id, urgent=True)


def own_or_administered(key: ApiKeyRow, caller: Caller) -> ApiKeyRow:
    """Return the key if the caller owns it or is an administrator. Raises `ApiKeyNotFound`."""
    if key.user_id != caller.user_id and not _administers(caller):
        raise ApiKeyNotFound
    return key


async def list_keys(session: AsyncSession, query: Select[UUID]) -> list[OwnedApiKey]:
    return await _all_owned(session, await table.listed(session, query))


async def with_status(session: AsyncSession, key: ApiKeyRow) -> OwnedApiKey:
    (owned,) = await _all_owned(session, [await table.with_user(session, key)])
    return owned


async def _all_owned(session: AsyncSession, keys: Sequence[ListedKey]) -> list[OwnedApiKey]:
    costs = await costs_of_keys(session, [listed.key.id for listed in keys], table.first_day_of_month())
    return [_owned(listed, costs.get(listed.key.id, Decimal())) for listed in keys]


def _owned(listed: ListedKey, month_cost_usd: Decimal) -> OwnedApiKey:
    fields = _fields(listed.key, user_active=listed.user_active, month_cost_usd=month_cost_usd)
    return OwnedApiKey.model_validate({**fields, "user_name": listed.user_name})


def _administers(caller: Caller) -> bool:
    """Return whether the caller is an administrator. OAuth clients are treated as administrators: the routes admit only
    those with `admin:write`."""
    return caller.role is Role.ADMIN or caller.kind is CallerKind.OAUTH_CLIENT


def _actor(caller: Caller | None, key: ApiKeyRow) -> DisabledBy:
    if caller is not None and caller.user_id == key.user_id:
        return "owner"
    return "administrator" if caller is not None and _administers(caller) else "system"


def _fields(row: ApiKeyRow, *, user_active: bool, month_cost_usd: Decimal) -> dict[str, object]:
    fields = {column.key: getattr(row, column.key) for column in ApiKeyRow.__table__.columns if column.computed is None}
    return {**fields, "status": _status(row, user_active=user_active), "month_cost_usd": month_cost_usd}


def _status(row: ApiKeyRow, *, user_active: bool) -> str:
    if row.expires_at is not None and row.expires_at <= utc_now():
        return "expired"
    if not row.is_enabled:
        return "disabled"
    return "active" if user_active else "suspended"
