"""The replica: a worker's in-memory copy of callers and switches. Reads are dictionary lookups."""

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

import msgspec

from gatehouse.engine.ports import Maintenance
from gatehouse.foundation.identity import Role, TenantId
from gatehouse.foundation.jwt import SigningKey
from gatehouse.platform.live.replica.news import ChangeNotifications
from gatehouse.platform.live.replica.outpost_tokens import LiveTrust
from gatehouse.platform.live.replica.second_factor import SecondFactor


class LiveUser(msgspec.Struct, frozen=True, gc=False):
    """A user, with the groups and second factors that decide about requests."""

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
    """An API key, which has the rights of its user. `expires_at` is Unix time."""

    id: UUID
    user_id: UUID
    enabled: bool
    expires_at: float | None
    scopes: frozenset[str] | None

    def usable(self, now: float) -> bool:
        """Return whether the key is enabled and not expired at the Unix time `now`."""
        return self.enabled and (self.expires_at is None or self.expires_at > now)


class LiveClient(msgspec.Struct, frozen=True, gc=False):
    """An OAuth client. `scopes` are the scopes that the client has now; a token issued earlier may contain more."""

    client_id: UUID
    tenant_id: TenantId | None
    enabled: bool
    scopes: frozenset[str]
    #: scopes that the client may have as an application that acts for users
    user_scopes: frozenset[str]


class LiveScimToken(msgspec.Struct, frozen=True, gc=False):
    """A SCIM token. `expires_at` is Unix time."""

    id: UUID
    tenant_id: TenantId
    expires_at: float | None


class LiveTenant(msgspec.Struct, frozen=True, gc=False):
    """An organization, with the limits and policies that decide about requests."""

    id: TenantId
    active: bool
    custom_rate_limit_rpm: int | None
    second_factor: SecondFactor = SecondFactor()
    #: maximum age of a session token; a shortened policy applies to tokens issued earlier too
    session_seconds: int = 86_400
    scan_rate_limit_rpm: int | None = None


def _ignore(keys: Sequence[str] | None) -> None:
    del keys


def _ignore_definitions(current: dict[str, str | None], is_complete: bool) -> None:
    del current, is_complete


class Replica:
    """The in-memory copy of one worker. Only the feed writes it. Each entry is replaced as a whole, so a reader never
    sees an incomplete entry."""

    def __init__(self) -> None:
        self.tenants: dict[UUID, LiveTenant] = {}
        self.users: dict[UUID, LiveUser] = {}
        #: by the SHA-256 digest of the key
        self.keys: dict[bytes, LiveKey] = {}
        self.key_digests: dict[UUID, bytes] = {}
        self.clients: dict[UUID, LiveClient] = {}
        #: by the SHA-256 digest of the token; replaced as a whole, never modified
        self.scim_tokens: dict[bytes, LiveScimToken] = {}
        #: authorities and certificates of outposts that the portal trusts
        self.outpost_trust = LiveTrust()
        #: ids of ended sessions and deleted clients, with the Unix time at which their last token expires
        self.revoked: dict[UUID, float] = {}
        #: ids of model configs whose kill switch is engaged
        self.switched_off: set[UUID] = set()
        #: pairs of a tenant and a provider whose kill switch is engaged; replaced as a whole, never modified
        self.providers_off: frozenset[tuple[UUID, str]] = frozenset()
        #: ids of MCP servers and tools that may be called: enabled or approved, and no kill switch is engaged
        self.mcp_callable: set[UUID] = set()
        self.unhealthy: set[tuple[UUID, str]] = set()
        self.maintenance: Maintenance | None = None
        #: published keys that verify tokens, by key id; replaced as a whole, never modified
        self.signing_keys: dict[str, SigningKey] = {}
        #: Unix time at which a retired key stops being published, by key id
        self.signing_keys_until: dict[str, float] = {}
        #: the revision that all of this data reflects
        self.revision = 0
        #: set when a decision about held requests was made
        self.decisions = asyncio.Event()
        #: notifies long polls of changes in an organization
        self.news = ChangeNotifications()
        #: receives the keys of changed connections (topic `mcp_connection`), or None if any may have changed
        self.connections_changed: Callable[[Sequence[str] | None], None] = _ignore
        #: the definitions of all stdio servers by id, as they were when all data was loaded; None if switched off
        self.stdio_definitions: dict[str, str | None] = {}
        #: receives the definitions of servers that may have changed, or None for those that were switched off or
        #: removed, and whether these are all servers
        self.stdio_changed: Callable[[dict[str, str | None], bool], None] = _ignore_definitions

    def become(self, other: "Replica") -> None:
        """Take over all data of `other`, except its revision and the objects on which users of this replica wait."""
        own = {"revision", "decisions", "news", "connections_changed", "stdio_changed"}
        self.__dict__.update({name: value for name, value in vars(other).items() if name not in own})
        self.connections_changed(None)
        self.stdio_changed({**self.stdio_definitions}, True)

    def put_key(self, digest: bytes, key: LiveKey) -> None:
        self.keys[digest] = key
        self.key_digests[key.id] = digest

    def drop_key(self, key_id: UUID) -> None:
        digest = self.key_digests.pop(key_id, None)
        if digest is not None:
            self.keys.pop(digest, None)

    def forget_expired(self, now: float) -> None:
        """Remove revocations whose last token has expired, and signing keys that are no longer published."""
        for subject in [subject for subject, until in self.revoked.items() if until < now]:
            del self.revoked[subject]
        expired = {kid for kid, until in self.signing_keys_until.items() if until <= now}
        if expired:
            self.signing_keys = {kid: key for kid, key in self.signing_keys.items() if kid not in expired}
            self.signing_keys_until = {kid: t for kid, t in self.signing_keys_until.items() if kid not in expired}
