"""Looks up the callers of a bundle by the digest of a key, the id of a user, or the id of a client."""

from typing import Final
from uuid import UUID

from gatehouse.foundation.identity import Caller, CallerKind, Role
from gatehouse.policy.bundles.contents import (
    ClientRecord,
    KeyRecord,
    PolicyBundle,
    UserRecord,
)

_ROLES: Final = {role.value: role for role in Role}


class Callers:
    """The callers of one bundle. The `Caller` of a key is built at its first use."""

    def __init__(self, bundle: PolicyBundle) -> None:
        records = bundle.callers
        self.tenant_id = bundle.tenant_id
        self._rpm = records.custom_rate_limit_rpm
        self._users: dict[UUID, UserRecord] = {user.id: user for user in records.users}
        self._keys: dict[bytes, KeyRecord] = {key.digest: key for key in records.keys}
        self._digests: dict[UUID, bytes] = {key.id: key.digest for key in records.keys}
        self._clients: dict[UUID, ClientRecord] = {client.client_id: client for client in records.clients}
        self._by_key_id: dict[UUID, Caller] = {}

    def key(self, digest: bytes) -> KeyRecord | None:
        return self._keys.get(digest)

    def key_by_id(self, key_id: UUID) -> KeyRecord | None:
        digest = self._digests.get(key_id)
        return None if digest is None else self._keys[digest]

    def client(self, client_id: UUID) -> ClientRecord | None:
        return self._clients.get(client_id)

    def user(self, user_id: UUID | None) -> UserRecord | None:
        """Returns the user, or None if the user is unknown or deactivated."""
        user = None if user_id is None else self._users.get(user_id)
        return user if user is not None and user.active else None

    def by_key(self, key: KeyRecord) -> Caller | None:
        """Returns the caller of an API key, or None if the key's user is unknown or deactivated. The key itself is not
        checked."""
        caller = self._by_key_id.get(key.id)
        if caller is None:
            user = self.user(key.user_id)
            if user is None:
                return None
            scopes = None if key.scopes is None else frozenset(key.scopes)
            caller = self._by_key_id[key.id] = self._caller(user, CallerKind.API_KEY, key.id, scopes)
        return caller

    def by_user(self, user: UserRecord, scopes: frozenset[str]) -> Caller:
        """Returns the caller of a token that identifies the user."""
        return self._caller(user, CallerKind.USER, None, scopes)

    def _caller(self, user: UserRecord, kind: CallerKind, key_id: UUID | None, scopes: frozenset[str] | None) -> Caller:
        return Caller(
            kind=kind,
            tenant_id=self.tenant_id,
            user_id=user.id,
            api_key_id=key_id,
            email=user.email,
            role=_ROLES.get(user.role, Role.USER),
            scopes=scopes,
            groups=user.groups,
            rate_key=f"user:{user.id}",
            custom_rate_limit_rpm=self._rpm,
        )
