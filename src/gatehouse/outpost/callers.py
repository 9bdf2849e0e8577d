"""Who may call, as the bundle says: looked up by a key's digest, a user's or a client's id."""

from typing import Final
from uuid import UUID

from gatehouse.foundation.identity import Caller, CallerKind, Role
from gatehouse.policy.wire import Bundle, ClientRecord, KeyRecord, UserRecord

_ROLES: Final = {role.value: role for role in Role}


class Callers:
    """One bundle's. A caller is made when it is first asked for."""

    def __init__(self, bundle: Bundle) -> None:
        found = bundle.callers
        self.tenant_id = bundle.tenant_id
        self._rpm = found.custom_rate_limit_rpm
        self._users: dict[UUID, UserRecord] = {user.id: user for user in found.users}
        self._keys: dict[bytes, KeyRecord] = {key.digest: key for key in found.keys}
        self._digests: dict[UUID, bytes] = {key.id: key.digest for key in found.keys}
        self._clients: dict[UUID, ClientRecord] = {client.client_id: client for client in found.clients}
        self._made: dict[UUID, Caller] = {}

    def key(self, digest: bytes) -> KeyRecord | None:
        return self._keys.get(digest)

    def key_by_id(self, key_id: UUID) -> KeyRecord | None:
        digest = self._digests.get(key_id)
        return None if digest is None else self._keys[digest]

    def client(self, client_id: UUID) -> ClientRecord | None:
        return self._clients.get(client_id)

    def user(self, user_id: UUID | None) -> UserRecord | None:
        """None for one who is not there, or must not be let in."""
        user = None if user_id is None else self._users.get(user_id)
        return user if user is not None and user.active else None

    def by_key(self, key: KeyRecord) -> Caller | None:
        """None where the key's user is not let in. That the key is good is left to whoever asks."""
        made = self._made.get(key.id)
        if made is None:
            user = self.user(key.user_id)
            if user is None:
                return None
            scopes = None if key.scopes is None else frozenset(key.scopes)
            made = self._made[key.id] = self._caller(user, CallerKind.API_KEY, key.id, scopes)
        return made

    def by_user(self, user: UserRecord, scopes: frozenset[str]) -> Caller:
        """For a token that names the user."""
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
