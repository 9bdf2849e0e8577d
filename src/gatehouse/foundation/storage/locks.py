"""The register of PostgreSQL advisory locks, so that no two purposes share a key.

A `GlobalLock` exists once in the database. A `ScopedLock` exists once for each organization, or for each part of an
organization. The keys of the two kinds cannot collide: a global key is one bigint, and a scoped key is a pair of
integers. A lock is released at the end of its transaction.

The SQL function `gatehouse_take_try` also takes a lock for each counter of sign-in attempts. Its key is a bigint, the
64-bit hash of the counter's key.
"""

from collections.abc import Awaitable, Callable
from enum import Enum, unique
from typing import Final

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncSession


@unique
class GlobalLock(Enum):
    """Locks of the whole database. The value is the key as an SQL expression."""

    SCHEMA_UPGRADE = "7411990"
    #: taken by SQL functions of the migrations
    MONTH_PARTITIONS = "7411991"
    #: taken by an SQL function of the migrations
    USAGE_COUNT_FOLDING = "7411992"
    SIGNING_KEY_ROTATION = "7411993"
    SAML_KEYS = "7411994"
    PLATFORM_FIRST_START = "7411995"
    PORTAL_FIRST_START = "7411996"
    OUTPOST_TRUST = "7411997"
    #: taken by an SQL function of the migrations
    SPEND_FOLDING = "7411998"
    OUTBOX_READER = "hashtext('gatehouse.outbox')"
    ARCHIVER = "hashtext('gatehouse.archiver')"

    @property
    def sql(self) -> str:
        """Returns a statement that waits for the lock."""
        return f"SELECT pg_advisory_xact_lock({self.value})"

    @property
    def try_sql(self) -> str:
        """Returns a statement that tries to take the lock and returns whether it has succeeded."""
        return f"SELECT pg_try_advisory_xact_lock({self.value})"

    @property
    def try_session_sql(self) -> str:
        """Returns the statement of `try_sql` for a lock that lasts as long as the connection."""
        return f"SELECT pg_try_advisory_lock({self.value})"


@unique
class ScopedLock(Enum):
    """Locks within an organization. The key is the pair of two hashes: that of `gatehouse.` followed by the value, and
    that of the scope."""

    # Families with a maximum number of rows in an organization.
    ACCESS_REQUESTS = "access_requests"
    ALERTS = "alerts"
    API_KEYS = "api_keys"
    BUDGETS = "budgets"
    COMPLIANCE_BUNDLES = "compliance_bundles"
    CONTENT_FILTERS = "content_filters"
    DLP_PATTERNS = "dlp_patterns"
    DLP_RULES = "dlp_rules"
    #: files and batches
    FILES = "files"
    GROUPS = "groups"
    MCP_ACCESS = "mcp_access"
    MCP_SERVERS = "mcp_servers"
    MODEL_ACCESS = "model_access"
    MODEL_ALIASES = "model_aliases"
    MODEL_REGISTRY = "model_registry"
    OUTPOSTS = "outposts"
    PASSKEYS = "passkeys"
    POLICIES = "policies"
    PROVIDERS = "providers"
    ROUTING_POLICIES = "routing_policies"
    SAML_PROVIDERS = "saml_providers"
    SCIM_TOKENS = "scim_tokens"
    SHARE_LINKS = "share_links"
    WEBHOOKS = "webhooks"
    # Operations that must not run concurrently.
    DEFAULT_MODEL = "default_model"
    #: also taken by an SQL function of the migrations
    LEGAL_HOLD = "legal_hold"
    REGISTERED_MODEL = "registered_model"
    SIEM = "siem"


_SCOPED: Final[dict[ScopedLock, TextClause]] = {
    lock: text(f"SELECT pg_advisory_xact_lock(hashtext('gatehouse.{lock.value}'), hashtext(:scope))")
    for lock in ScopedLock
}


async def acquire(session: AsyncSession, lock: GlobalLock) -> None:
    await session.execute(text(lock.sql))


async def acquire_scoped(session: AsyncSession, lock: ScopedLock, scope: str) -> None:
    """Waits for the lock. `scope` is the id of an organization, or names a part of an organization."""
    await session.execute(_SCOPED[lock], {"scope": scope})


async def require_room(
    session: AsyncSession,
    lock: ScopedLock,
    count: Callable[[AsyncSession], Awaitable[int]],
    *,
    limit: int,
    full: Callable[[], Exception],
    adding: int = 1,
    scope: object = None,
) -> None:
    """Raises `full()` if `adding` more rows would exceed `limit`. Because of the lock, only one transaction at a time
    adds rows, so that concurrent requests cannot exceed the limit together. `scope` is the owner of the counted rows,
    by default the session's organization."""
    await acquire_scoped(session, lock, str(session.info["tenant_id"] if scope is None else scope))
    if await count(session) + adding > limit:
        raise full()
