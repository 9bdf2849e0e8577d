"""The rules of API keys."""

from datetime import timedelta
from uuid import UUID

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.platform.access.api_keys.errors import ApiKeyNotFound, KeyScopingOff, NotAServiceAccount
from gatehouse.platform.access.api_keys.schemas import ApiKeyCreated, NewApiKey, OwnedApiKeyCreated
from gatehouse.platform.access.api_keys.table import ApiKeyRow
from gatehouse.platform.access.users import rights
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change
from gatehouse.platform.organization.feature_flags.table import flag


async def create(change: Change, caller: Caller, new: NewApiKey) -> ApiKeyCreated:
    """A key of the caller's own: it can never do more than they can, now or later. Raises `KeyScopingOff`."""
    assert caller.user_id is not None
    row, plaintext = await _made(change, caller.user_id, new)
    return ApiKeyCreated.model_validate({**_fields(row), "api_key": plaintext})


async def create_for(change: Change, caller: Caller, user: UserRow, new: NewApiKey) -> OwnedApiKeyCreated:
    """A service account's key, which the caller will hold: so they need the right to grant what it may.

    Raises `NotAServiceAccount`, `CannotGrant`, `KeyScopingOff`.
    """
    rights.may_change(caller, user)
    if user.kind != "service":
        raise NotAServiceAccount
    row, plaintext = await _made(change, user.id, new)
    return OwnedApiKeyCreated.model_validate({**_fields(row), "api_key": plaintext})


async def _made(change: Change, user_id: UUID, new: NewApiKey) -> tuple[ApiKeyRow, str]:
    """The row, and the key itself."""
    if new.scopes is not None and not await flag(change.session, "api_key_scoping"):
        raise KeyScopingOff
    key = tokens.mint_api_key()
    row = add(change, user_id, new, key_prefix=key.shown, digest=key.digest)
    return row, key.plaintext


def add(change: Change, user_id: UUID, new: NewApiKey, *, key_prefix: str, digest: bytes) -> ApiKeyRow:
    """A key of which the hash alone is known. Whoever calls has judged the right to it."""
    now = utc_now()
    row = ApiKeyRow(
        id=new_id(),
        tenant_id=change.tenant_id,
        user_id=user_id,
        key_prefix=key_prefix,
        digest=digest,
        description=new.description,
        created_at=now,
        last_used=None,
        expires_at=None if new.expires_in_days is None else now + timedelta(days=new.expires_in_days),
        is_enabled=True,
        scopes=None if new.scopes is None else sorted(set(new.scopes)),
    )
    change.session.add(row)
    change.record(
        "api_key.created", "api_key", row.id, description=row.description, expires_at=row.expires_at, user_id=user_id
    )
    change.touch("api_key", row.id, urgent=True)
    return row


def set_enabled(change: Change, key: ApiKeyRow, enabled: bool) -> ApiKeyRow:
    key.is_enabled = enabled
    change.record("api_key.updated", "api_key", key.id, is_enabled=enabled)
    change.touch("api_key", key.id, urgent=True)
    return key


async def delete(change: Change, key: ApiKeyRow) -> None:
    await change.session.delete(key)
    change.record("api_key.deleted", "api_key", key.id, description=key.description, user_id=str(key.user_id))
    change.touch("api_key", key.id, urgent=True)


def owned(key: ApiKeyRow, caller: Caller) -> ApiKeyRow:
    """The key, if it is the caller's own; another user's behaves as nonexistent."""
    if key.user_id != caller.user_id:
        raise ApiKeyNotFound
    return key


def _fields(row: ApiKeyRow) -> dict[str, object]:
    return {column.key: getattr(row, column.key) for column in ApiKeyRow.__table__.columns}
