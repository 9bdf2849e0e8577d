"""The queries that load the replica. They run as the service role, and each loads one topic, completely or by key.

A loader receives the keys to reload, or None for all keys. A key whose row is deleted is removed from the replica.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final
from uuid import UUID

import msgspec
from cryptography.x509 import load_pem_x509_certificate
from joserfc.jwk import RSAKey
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.ports import Maintenance
from gatehouse.foundation.identity import Role, TenantId
from gatehouse.foundation.jwt import SigningKey
from gatehouse.platform.live.replica import second_factor
from gatehouse.platform.live.replica.outpost_tokens import LiveOutpost, LiveTrust
from gatehouse.platform.live.replica.sign_in_policies import read_session_policy
from gatehouse.platform.live.replica.state import (
    LiveClient,
    LiveKey,
    LiveScimToken,
    LiveTenant,
    LiveUser,
    Replica,
)
from gatehouse.policy.mcp import McpStdioRecord

Keys = Sequence[str] | None
Loader = Callable[[AsyncSession, Replica, Keys], Awaitable[None]]


async def _rows(session: AsyncSession, query: str, keys: Keys, column: str, kind: str = "uuid") -> Sequence[Any]:
    """Return the rows of a query. If `keys` is not None, returns only the rows with these keys. `column` and `kind`
    (its SQL type) become part of the SQL, so they must be constants."""
    if keys is None:
        return (await session.execute(text(query))).all()
    filtered = f"SELECT * FROM ({query}) AS q WHERE {column} = ANY(CAST(:keys AS {kind}[]))"  # noqa: S608
    return (await session.execute(text(filtered), {"keys": list(keys)})).all()


async def tenants(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = (
        f"SELECT t.id, t.custom_rate_limit_rpm, t.scan_rate_limit_rpm, t.session_policy, {second_factor.POLICY_COLUMNS}"  # noqa: S608
        f" FROM tenants t {second_factor.JOIN} WHERE t.deleted_at IS NULL"
    )
    rows = {row.id: row for row in await _rows(session, query, keys, "id")}
    for deleted_id in _missing(keys, rows.keys()):
        replica.tenants.pop(deleted_id, None)
    for row in rows.values():
        replica.tenants[row.id] = LiveTenant(
            TenantId(row.id),
            True,
            row.custom_rate_limit_rpm,
            second_factor.read(row),
            read_session_policy(row.session_policy).session_timeout_minutes * 60,
            row.scan_rate_limit_rpm,
        )


async def users(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    # Subqueries use the index for each user. Unlike a join with GROUP BY, they are as fast for one user as for all.
    query = (
        "SELECT id, tenant_id, email, role, operator, is_active, EXTRACT(EPOCH FROM created_at)::float8 AS created_at,"
        " EXISTS (SELECT FROM mfa_totp m WHERE m.user_id = users.id AND m.confirmed_at IS NOT NULL) AS totp,"
        " EXISTS (SELECT FROM mfa_passkeys m WHERE m.user_id = users.id) AS webauthn,"
        " ARRAY(SELECT group_id FROM group_members m WHERE m.user_id = users.id ORDER BY group_id)::text AS groups"
        " FROM users"
    )
    rows = {row.id: row for row in await _rows(session, query, keys, "id")}
    for deleted_id in _missing(keys, rows.keys()):
        replica.users.pop(deleted_id, None)
    # Many users have the same groups, so they share one tuple.
    group_ids = {array: _parse_ids(array) for array in {row.groups for row in rows.values()}}
    for row in rows.values():
        replica.users[row.id] = LiveUser(
            row.id,
            TenantId(row.tenant_id),
            row.email,
            Role(row.role),
            row.operator,
            row.is_active,
            group_ids[row.groups],
            _METHODS[row.totp, row.webauthn],
            row.created_at,
        )


#: Second factors, by whether a user has TOTP and whether a user has a passkey.
_METHODS: Final = {
    (False, False): frozenset[str](),
    (True, False): frozenset({"totp"}),
    (False, True): frozenset({"webauthn"}),
    (True, True): frozenset({"totp", "webauthn"}),
}


def _parse_ids(array: str) -> tuple[UUID, ...]:
    """Parse a PostgreSQL uuid array in text form."""
    return tuple(UUID(item) for item in array[1:-1].split(",") if item)


def _missing(keys: Keys, row_ids: AbstractSet[UUID]) -> set[UUID]:
    """Return the requested keys that no longer have a row. Returns no keys if all rows were requested."""
    return set() if keys is None else {UUID(key) for key in keys} - row_ids


async def groups(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """Update the members of groups that were deleted or in which many members changed. To reload them
    with one change for the group takes a tenth of the time of one change for each user. If a single user joins or
    leaves, only the user is reloaded."""
    if keys is None:
        return
    group_ids = {UUID(key) for key in keys}
    members: dict[UUID, set[UUID]] = defaultdict(set)
    for row in await _rows(session, "SELECT group_id, user_id FROM group_members", keys, "group_id"):
        members[row.user_id].add(row.group_id)
    no_groups: set[UUID] = set()
    for user in replica.users.values():
        current = members.get(user.id, no_groups)
        if current or not group_ids.isdisjoint(user.groups):
            groups = tuple(sorted(current.union(user.groups) - (group_ids - current)))
            if groups != user.groups:
                replica.users[user.id] = msgspec.structs.replace(user, groups=groups)


async def api_keys(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = (
        "SELECT id, user_id, digest, is_enabled, EXTRACT(EPOCH FROM expires_at)::float8 AS expires_at, scopes"
        " FROM api_keys"
    )
    rows = await _rows(session, query, keys, "id")
    for deleted_id in _missing(keys, {row.id for row in rows}):
        replica.drop_key(deleted_id)
    for row in rows:
        scopes = None if row.scopes is None else frozenset(row.scopes)
        replica.put_key(bytes(row.digest), LiveKey(row.id, row.user_id, row.is_enabled, row.expires_at, scopes))


async def oauth_clients(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = "SELECT client_id, tenant_id, enabled, scopes, user_scopes FROM oauth_clients"
    rows = {row.client_id: row for row in await _rows(session, query, keys, "client_id")}
    for deleted_id in _missing(keys, rows.keys()):
        replica.clients.pop(deleted_id, None)
    for row in rows.values():
        replica.clients[row.client_id] = LiveClient(
            row.client_id, row.tenant_id, row.enabled, frozenset(row.scopes), frozenset(row.user_scopes)
        )


async def scim_tokens(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = "SELECT id, tenant_id, digest, EXTRACT(EPOCH FROM expires_at)::float8 AS expires_at FROM scim_tokens"
    reloaded = None if keys is None else {UUID(key) for key in keys}
    # A scan over all tokens is fast enough, because there are few tokens and they change rarely.
    scim_tokens = {
        digest: token
        for digest, token in replica.scim_tokens.items()
        if reloaded is not None and token.id not in reloaded
    }
    for row in await _rows(session, query, keys, "id"):
        scim_tokens[bytes(row.digest)] = LiveScimToken(row.id, TenantId(row.tenant_id), row.expires_at)
    replica.scim_tokens = scim_tokens


async def outpost_trust(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """Load which outposts the platform trusts. This is a single row, so `keys` is ignored."""
    del keys
    query = "SELECT ca_certificates, organizations, outposts FROM outpost_trust"
    row = (await session.execute(text(query))).first()
    if row is None:
        replica.outpost_trust = LiveTrust()
        return
    by_serial = {}
    for entry in row.outposts:
        outpost = LiveOutpost(UUID(entry["outpost_id"]), TenantId(UUID(row.organizations[entry["org_id"]])))
        by_serial.update({int(serial, 16): outpost for serial in entry["serials"]})
    authorities = [load_pem_x509_certificate(pem.encode()) for pem in row.ca_certificates]
    replica.outpost_trust = LiveTrust(authorities, by_serial)


async def revocations(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = "SELECT subject, EXTRACT(EPOCH FROM expires_at)::float8 AS until FROM revocations WHERE expires_at > now()"
    for row in await _rows(session, query, keys, "subject"):
        replica.revoked[row.subject] = row.until


async def switches(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = "SELECT id, kill_switch_disabled_at IS NOT NULL AS engaged FROM model_configs"
    # A deleted model stays switched off, so that a request that still waits for it is refused.
    for row in await _rows(
        session, query if keys else query + " WHERE kill_switch_disabled_at IS NOT NULL", keys, "id"
    ):
        if row.engaged:
            replica.switched_off.add(row.id)
        else:
            replica.switched_off.discard(row.id)


async def provider_switches(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """Load the kill switches of providers. Keys are `<tenant id>/<provider>`. All switches of a tenant are loaded
    together, because there are few."""
    query = "SELECT tenant_id, provider FROM provider_kill_switches"
    tenant_ids = None if keys is None else sorted({key.partition("/")[0] for key in keys})
    pairs = {(row.tenant_id, row.provider) for row in await _rows(session, query, tenant_ids, "tenant_id")}
    if tenant_ids is not None:
        changed = set(map(UUID, tenant_ids))
        pairs |= {pair for pair in replica.providers_off if pair[0] not in changed}
    replica.providers_off = frozenset(pairs)


async def mcp_switches(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """Load which MCP servers and tools may be called. Keys are the ids of servers and of tools. A deleted server or
    tool is not among them, so a call that still waits for it is refused."""
    query = (
        "SELECT id, enabled AND switched_off_at IS NULL AS callable FROM mcp_servers UNION ALL"
        " SELECT id, status = 'approved' AND switched_off_at IS NULL AND missing_since IS NULL FROM mcp_tools"
    )
    rows = await _rows(session, query, keys, "id")
    replica.mcp_callable -= {UUID(key) for key in keys or ()}
    replica.mcp_callable |= {row.id for row in rows if row.callable}
    query = (
        "SELECT id, stdio ->> 'command' AS command, sealed_environment, switched_off_at FROM mcp_servers"
        " WHERE stdio IS NOT NULL"
    )
    current: dict[str, str | None] = {
        str(row.id): None if row.switched_off_at else McpStdioRecord(row.command, row.sealed_environment).definition
        for row in await _rows(session, query, keys, "id")
    }
    if keys is None:
        replica.stdio_definitions = current
        return
    present = {str(row.id) for row in rows}
    replica.stdio_changed({**current, **{key: None for key in keys if key not in present}}, False)


async def provider_health(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """Load the unhealthy providers. Keys are tenant ids. All providers of a tenant are loaded together, because there
    are few."""
    query = "SELECT tenant_id, id FROM providers WHERE unhealthy"
    unhealthy = {(row.tenant_id, row.id) for row in await _rows(session, query, keys, "tenant_id")}
    if keys is None:
        replica.unhealthy = unhealthy
    else:
        tenant_ids = {UUID(key) for key in keys}
        replica.unhealthy = {pair for pair in replica.unhealthy if pair[0] not in tenant_ids} | unhealthy


async def maintenance(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    del keys
    row = (await session.execute(text("SELECT value FROM platform_state WHERE key = 'maintenance'"))).first()
    if row is None or not row.value.get("enabled"):
        replica.maintenance = None
    else:
        replica.maintenance = Maintenance(row.value.get("message") or "", int(row.value.get("retry_after") or 60))


async def signing_keys(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    del keys
    query = (
        "SELECT kid, public_jwk, EXTRACT(EPOCH FROM expires_at)::float8 AS until FROM signing_keys"
        " WHERE expires_at IS NULL OR expires_at > now()"
    )
    rows = (await session.execute(text(query))).all()
    replica.signing_keys_until = {row.kid: row.until for row in rows if row.until is not None}
    replica.signing_keys = {row.kid: SigningKey(row.kid, RSAKey.import_key(row.public_jwk)) for row in rows}


async def approvals(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """Wake the `LiveApprovals` of this worker, which reads the decisions itself."""
    del session, keys
    replica.decisions.set()


async def mcp_connections(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """Drop users' tokens for MCP servers from the memory of this worker, which reads them again when a call needs
    them. Keys are `<server id>/<user id>`, or the server's id for all of its users."""
    del session
    replica.connections_changed(keys)


#: The loader for every topic of `Change.touch`, except for `policy`, which the snapshots follow. Keys are row ids, with
#: these exceptions: the public client id for `oauth_client`, the tenant's id for `provider_health`, the tenant's id, a
#: slash and the provider for `provider_switch`, and the ids of server and user for `mcp_connection`. For `maintenance`,
#: `outpost_trust` and `signing_keys` the key is ignored.
LOADERS: Final[dict[str, Loader]] = {
    "tenant": tenants,
    "user": users,
    "group": groups,
    "api_key": api_keys,
    "oauth_client": oauth_clients,
    "scim_token": scim_tokens,
    "outpost_trust": outpost_trust,
    "revocation": revocations,
    "switch": switches,
    "provider_switch": provider_switches,
    "mcp_switch": mcp_switches,
    "mcp_connection": mcp_connections,
    "provider_health": provider_health,
    "maintenance": maintenance,
    "signing_keys": signing_keys,
    "approval": approvals,
}
