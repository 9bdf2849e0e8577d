"""The replica: a worker's copy of who may call and what is switched off. Reads are dictionary look-ups."""

from uuid import UUID

import msgspec

from gatehouse.engine.ports import Maintenance
from gatehouse.foundation.identity import Role, TenantId
from gatehouse.foundation.jwt import SigningKey


class LiveUser(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: TenantId
    email: str
    role: Role
    operator: bool
    active: bool


class LiveKey(msgspec.Struct, frozen=True, gc=False):
    """`expires_at` is Unix time. Whose rights it has is its user's affair."""

    id: UUID
    user_id: UUID
    enabled: bool
    expires_at: float | None
    scopes: frozenset[str] | None


class LiveClient(msgspec.Struct, frozen=True, gc=False):
    client_id: UUID
    tenant_id: TenantId | None
    enabled: bool


class LiveTenant(msgspec.Struct, frozen=True, gc=False):
    id: TenantId
    active: bool
    custom_rate_limit_rpm: int | None
    #: the system configuration `mfa_required`
    mfa_required: bool = False


class Replica:
    """Filled by the feed alone; each entry is replaced whole, so a reader never sees half of one."""

    def __init__(self) -> None:
        self.tenants: dict[UUID, LiveTenant] = {}
        self.users: dict[UUID, LiveUser] = {}
        #: by SHA-256 of the key
        self.keys: dict[bytes, LiveKey] = {}
        self.key_digests: dict[UUID, bytes] = {}
        self.clients: dict[UUID, LiveClient] = {}
        #: ended sessions and deleted clients, with the Unix time after which no token of theirs can be valid
        self.revoked: dict[UUID, float] = {}
        #: ids of model configs that a kill switch stops
        self.switched_off: set[UUID] = set()
        self.unhealthy: set[tuple[UUID, str]] = set()
        self.maintenance: Maintenance | None = None
        #: the published keys that tokens are verified with, by key id
        self.signing_keys: dict[str, SigningKey] = {}
        #: the revision that all of the above reflects
        self.revision = 0

    def put_key(self, digest: bytes, key: LiveKey) -> None:
        self.keys[digest] = key
        self.key_digests[key.id] = digest

    def drop_key(self, key_id: UUID) -> None:
        digest = self.key_digests.pop(key_id, None)
        if digest is not None:
            self.keys.pop(digest, None)

    def forget_expired_revocations(self, now: float) -> None:
        for subject in [subject for subject, until in self.revoked.items() if until < now]:
            del self.revoked[subject]
