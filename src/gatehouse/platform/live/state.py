"""The replica: a worker's copy of who may call and what is switched off. Reads are dictionary look-ups."""

import asyncio
from uuid import UUID

import msgspec

from gatehouse.engine.ports import Maintenance
from gatehouse.foundation.identity import Role, TenantId
from gatehouse.foundation.jwt import SigningKey
from gatehouse.platform.live.news import News
from gatehouse.platform.live.outposts import LiveTrust
from gatehouse.platform.live.second_factor import SecondFactor


class LiveUser(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: TenantId
    email: str
    role: Role
    operator: bool
    active: bool
    #: ids of the groups that the user is a member of
    groups: tuple[UUID, ...] = ()
    #: second factors that the user has enrolled
    methods: frozenset[str] = frozenset()
    #: Unix time
    created_at: float = 0


class LiveKey(msgspec.Struct, frozen=True, gc=False):
    """`expires_at` is Unix time. Whose rights it has is its user's affair."""

    id: UUID
    user_id: UUID
    enabled: bool
    expires_at: float | None
    scopes: frozenset[str] | None

    def usable(self, now: float) -> bool:
        return self.enabled and (self.expires_at is None or self.expires_at > now)


class LiveClient(msgspec.Struct, frozen=True, gc=False):
    """`scopes` are what it may have now: a token made before can have asked for more than that."""

    client_id: UUID
    tenant_id: TenantId | None
    enabled: bool
    scopes: frozenset[str]


class LiveScimToken(msgspec.Struct, frozen=True, gc=False):
    """`expires_at` is Unix time."""

    id: UUID
    tenant_id: TenantId
    expires_at: float | None


class LiveTenant(msgspec.Struct, frozen=True, gc=False):
    id: TenantId
    active: bool
    custom_rate_limit_rpm: int | None
    second_factor: SecondFactor = SecondFactor()
    #: No session's token is believed for longer: a shortened policy holds for tokens that are out already.
    session_seconds: int = 86_400
    scan_rate_limit_rpm: int | None = None


class Replica:
    """Filled by the feed alone; each entry is replaced whole, so a reader never sees half of one."""

    def __init__(self) -> None:
        self.tenants: dict[UUID, LiveTenant] = {}
        self.users: dict[UUID, LiveUser] = {}
        #: by SHA-256 of the key
        self.keys: dict[bytes, LiveKey] = {}
        self.key_digests: dict[UUID, bytes] = {}
        self.clients: dict[UUID, LiveClient] = {}
        #: by SHA-256 of the token; replaced whole, never changed
        self.scim_tokens: dict[bytes, LiveScimToken] = {}
        #: which outposts are who they say
        self.outpost_trust = LiveTrust()
        #: ended sessions and deleted clients, with the Unix time after which no token of theirs can be valid
        self.revoked: dict[UUID, float] = {}
        #: ids of model configs that a kill switch stops
        self.switched_off: set[UUID] = set()
        #: tenants' providers that a kill switch stops as a whole; replaced whole, never changed
        self.providers_off: frozenset[tuple[UUID, str]] = frozenset()
        self.unhealthy: set[tuple[UUID, str]] = set()
        self.maintenance: Maintenance | None = None
        #: the published keys that tokens are verified with, by key id; replaced whole, never changed
        self.signing_keys: dict[str, SigningKey] = {}
        #: the Unix time from which a retired key is not published any more
        self.signing_keys_until: dict[str, float] = {}
        #: the revision that all of the above reflects
        self.revision = 0
        #: set when a person has decided about requests that some worker holds
        self.decisions = asyncio.Event()
        #: of what changed in each organization
        self.news = News()

    def become(self, other: "Replica") -> None:
        """Takes over everything that the other holds, but for its revision, and for what this one's followers wait
        for."""
        kept = {"revision", "decisions", "news"}
        self.__dict__.update({name: value for name, value in vars(other).items() if name not in kept})

    def put_key(self, digest: bytes, key: LiveKey) -> None:
        self.keys[digest] = key
        self.key_digests[key.id] = digest

    def drop_key(self, key_id: UUID) -> None:
        digest = self.key_digests.pop(key_id, None)
        if digest is not None:
            self.keys.pop(digest, None)

    def forget_expired(self, now: float) -> None:
        """Drops the revocations that can stop nothing any more, and the keys whose last token has expired."""
        for subject in [subject for subject, until in self.revoked.items() if until < now]:
            del self.revoked[subject]
        over = {kid for kid, until in self.signing_keys_until.items() if until <= now}
        if over:
            self.signing_keys = {kid: key for kid, key in self.signing_keys.items() if kid not in over}
            self.signing_keys_until = {kid: t for kid, t in self.signing_keys_until.items() if kid not in over}
