"""The named queries behind the replica, as the service role: each loads one topic, whole or by key.

A loader gets the keys to load again, or None for everything. A key whose row is gone is dropped from the replica.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
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
from gatehouse.platform.live import second_factor
from gatehouse.platform.live.outposts import LiveOutpost, LiveTrust
from gatehouse.platform.live.state import LiveClient, LiveKey, LiveScimToken, LiveTenant, LiveUser, Replica
from gatehouse.platform.sign_in_policies import read_session_policy

Keys = Sequence[str] | None
Loader = Callable[[AsyncSession, Replica, Keys], Awaitable[None]]


async def _rows(session: AsyncSession, query: str, keys: Keys, column: str, kind: str = "uuid") -> Sequence[Any]:
    """Rows of a query, narrowed to the keys where there are some. Column and kind are this file's own words."""
    if keys is None:
        return (await session.execute(text(query))).all()
    narrowed = f"SELECT * FROM ({query}) AS q WHERE {column} = ANY(CAST(:keys AS {kind}[]))"  # noqa: S608
    return (await session.execute(text(narrowed), {"keys": list(keys)})).all()


async def tenants(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = (
        f"SELECT t.id, t.custom_rate_limit_rpm, t.scan_rate_limit_rpm, t.session_policy, {second_factor.COLUMNS}"  # noqa: S608
        f" FROM tenants t {second_factor.JOIN} WHERE t.deleted_at IS NULL"
    )
    found = {row.id: row for row in await _rows(session, query, keys, "id")}
    for gone in () if keys is None else {UUID(key) for key in keys} - found.keys():
        replica.tenants.pop(gone, None)
    for row in found.values():
        replica.tenants[row.id] = LiveTenant(
            TenantId(row.id),
            True,
            row.custom_rate_limit_rpm,
            second_factor.read(row),
            read_session_policy(row.session_policy).session_timeout_minutes * 60,
            row.scan_rate_limit_rpm,
        )


async def users(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    # A look into the index for each user: as fast for one as for all, which a join with a grouping is not.
    query = (
        "SELECT id, tenant_id, email, role, operator, is_active, EXTRACT(EPOCH FROM created_at)::float8 AS created_at,"
        " EXISTS (SELECT FROM mfa_totp m WHERE m.user_id = users.id AND m.confirmed_at IS NOT NULL) AS totp,"
        " EXISTS (SELECT FROM mfa_passkeys m WHERE m.user_id = users.id) AS webauthn,"
        " ARRAY(SELECT group_id FROM group_members m WHERE m.user_id = users.id ORDER BY group_id)::text AS groups"
        " FROM users"
    )
    found = {row.id: row for row in await _rows(session, query, keys, "id")}
    for gone in () if keys is None else {UUID(key) for key in keys} - found.keys():
        replica.users.pop(gone, None)
    # Many users are in the same groups: each set of them is made once.
    sets = {array: _ids(array) for array in {row.groups for row in found.values()}}
    for row in found.values():
        replica.users[row.id] = LiveUser(
            row.id,
            TenantId(row.tenant_id),
            row.email,
            Role(row.role),
            row.operator,
            row.is_active,
            sets[row.groups],
            _METHODS[row.totp, row.webauthn],
            row.created_at,
        )


#: by whether a user has TOTP, and a passkey
_METHODS: Final = {
    (False, False): frozenset[str](),
    (True, False): frozenset({"totp"}),
    (False, True): frozenset({"webauthn"}),
    (True, True): frozenset({"totp", "webauthn"}),
}


def _ids(array: str) -> tuple[UUID, ...]:
    """Of PostgreSQL's text of an array."""
    return tuple(UUID(each) for each in array[1:-1].split(",") if each)


async def groups(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """A group that is gone, or whose members have changed by the hundreds: one entry in the feed, and a tenth of the
    time that so many users would take. Who joins or leaves a group alone is told with the user."""
    if keys is None:
        return
    asked = {UUID(key) for key in keys}
    members: dict[UUID, set[UUID]] = defaultdict(set)
    for row in await _rows(session, "SELECT group_id, user_id FROM group_members", keys, "group_id"):
        members[row.user_id].add(row.group_id)
    nobody: set[UUID] = set()
    for user in replica.users.values():
        now = members.get(user.id, nobody)
        if now or not asked.isdisjoint(user.groups):
            groups = tuple(sorted(now.union(user.groups) - (asked - now)))
            if groups != user.groups:
                replica.users[user.id] = msgspec.structs.replace(user, groups=groups)


async def api_keys(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = (
        "SELECT id, user_id, digest, is_enabled, EXTRACT(EPOCH FROM expires_at)::float8 AS expires_at, scopes"
        " FROM api_keys"
    )
    rows = await _rows(session, query, keys, "id")
    for gone in () if keys is None else {UUID(key) for key in keys} - {row.id for row in rows}:
        replica.drop_key(gone)
    for row in rows:
        scopes = None if row.scopes is None else frozenset(row.scopes)
        replica.put_key(bytes(row.digest), LiveKey(row.id, row.user_id, row.is_enabled, row.expires_at, scopes))


async def oauth_clients(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = "SELECT client_id, tenant_id, enabled, scopes FROM oauth_clients"
    found = {row.client_id: row for row in await _rows(session, query, keys, "client_id")}
    for gone in () if keys is None else {UUID(key) for key in keys} - found.keys():
        replica.clients.pop(gone, None)
    for row in found.values():
        replica.clients[row.client_id] = LiveClient(row.client_id, row.tenant_id, row.enabled, frozenset(row.scopes))


async def scim_tokens(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = "SELECT id, tenant_id, digest, EXTRACT(EPOCH FROM expires_at)::float8 AS expires_at FROM scim_tokens"
    asked = None if keys is None else {UUID(key) for key in keys}
    # A few an organization, and changed now and then: looked through whole.
    kept = {digest: live for digest, live in replica.scim_tokens.items() if asked is not None and live.id not in asked}
    for row in await _rows(session, query, keys, "id"):
        kept[bytes(row.digest)] = LiveScimToken(row.id, TenantId(row.tenant_id), row.expires_at)
    replica.scim_tokens = kept


async def outpost_trust(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """One row, replaced whole."""
    del keys
    query = "SELECT ca_certificates, organizations, outposts FROM outpost_trust"
    row = (await session.execute(text(query))).first()
    if row is None:
        replica.outpost_trust = LiveTrust()
        return
    by_serial = {}
    for each in row.outposts:
        outpost = LiveOutpost(UUID(each["outpost_id"]), TenantId(UUID(row.organizations[each["org_id"]])))
        by_serial.update({int(serial, 16): outpost for serial in each["serials"]})
    authorities = [load_pem_x509_certificate(pem.encode()) for pem in row.ca_certificates]
    replica.outpost_trust = LiveTrust(authorities, by_serial)


async def revocations(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = "SELECT subject, EXTRACT(EPOCH FROM expires_at)::float8 AS until FROM revocations WHERE expires_at > now()"
    for row in await _rows(session, query, keys, "subject"):
        replica.revoked[row.subject] = row.until


async def switches(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    query = "SELECT id, kill_switch_disabled_at IS NOT NULL AS engaged FROM model_configs"
    # A model that is gone stays off: a request that still waits for it must not slip through.
    for row in await _rows(
        session, query if keys else query + " WHERE kill_switch_disabled_at IS NOT NULL", keys, "id"
    ):
        if row.engaged:
            replica.switched_off.add(row.id)
        else:
            replica.switched_off.discard(row.id)


async def provider_switches(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """Keys are `<tenant's id>/<provider>`: a tenant's are few, and are read together."""
    query = "SELECT tenant_id, provider FROM provider_kill_switches"
    tenant_ids = None if keys is None else sorted({key.partition("/")[0] for key in keys})
    pairs = {(row.tenant_id, row.provider) for row in await _rows(session, query, tenant_ids, "tenant_id")}
    if tenant_ids is not None:
        changed = set(map(UUID, tenant_ids))
        pairs |= {pair for pair in replica.providers_off if pair[0] not in changed}
    replica.providers_off = frozenset(pairs)


async def provider_health(session: AsyncSession, replica: Replica, keys: Keys) -> None:
    """Keys are tenants' ids: a tenant's providers are few, and are read together."""
    query = "SELECT tenant_id, id FROM providers WHERE unhealthy"
    found = {(row.tenant_id, row.id) for row in await _rows(session, query, keys, "tenant_id")}
    if keys is None:
        replica.unhealthy = found
    else:
        asked = {UUID(key) for key in keys}
        replica.unhealthy = {pair for pair in replica.unhealthy if pair[0] not in asked} | found


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
    """Nothing to keep: who holds requests looks at them."""
    del session, keys
    replica.decisions.set()


#: Every topic that `Change.touch` may name, but `policy`, which the snapshots follow. Keys are rows' ids; for
#: `oauth_client` the public client id, for `provider_health` the tenant's id, for `provider_switch` the tenant's id, a
#: slash and the provider, for `maintenance`, `outpost_trust`
#: and `signing_keys` anything.
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
    "provider_health": provider_health,
    "maintenance": maintenance,
    "signing_keys": signing_keys,
    "approval": approvals,
}
