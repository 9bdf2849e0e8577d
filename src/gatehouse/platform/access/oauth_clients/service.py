"""Creates, changes and deletes OAuth clients, and rotates their secrets."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.rate_limits.selection import CLIENT_TIERS
from gatehouse.foundation.clock import iso, utc_now
from gatehouse.foundation.errors import Conflict, Forbidden, NotFound
from gatehouse.foundation.identity import Caller, CallerKind, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.oauth_clients import table
from gatehouse.platform.access.oauth_clients.schemas import (
    NewOAuthClient,
    OAuthClientCreated,
    OAuthClientUpdate,
    RotatedSecret,
)
from gatehouse.platform.access.oauth_clients.table import OAuthClientRow
from gatehouse.platform.access.tokens.lifetimes import MAX_TOKEN_AGE_SECONDS
from gatehouse.platform.changes.change import Change

#: Prefix by which scanners recognize a leaked secret.
SECRET_PREFIX = "gcs_"  # noqa: S105 - a prefix, not a secret

#: Maximum number of earlier secrets that are accepted at the same time.
MAX_EARLIER_SECRETS: Final = 3

#: The rate limit tiers in ascending order.
_TIERS = tuple(CLIENT_TIERS)


class OAuthClientNotFound(NotFound):
    message = "OAuth client not found"


class ClientTenantNotFound(NotFound):
    """`tenant_id` names no organization, or one that the caller cannot see."""

    message = "Organization not found"


class PlatformWideIsForOperators(Forbidden):
    message = "Only an operator can create platform-wide clients: name an organization as tenant_id."


class TooManySecrets(Conflict):
    code = "too_many_secrets"
    error_format = "error_message"

    def __init__(self, maximum: int, until: datetime) -> None:
        super().__init__(
            f"{maximum} earlier secrets are still accepted, which is the maximum. Try again after {iso(until)}, or send"
            " grace_period_seconds 0, which ends them now."
        )


class GrantExceeded(Forbidden):
    """A machine, or a key with scopes, tried to grant rights that it does not have."""

    code = "grant_exceeded"


async def find(session: AsyncSession, caller: Caller, client_id: UUID, *, lock: bool) -> OAuthClientRow:
    """Return the client. Raises `OAuthClientNotFound`, also for a client of another tenant."""
    client = await table.find_client(session, caller, client_id, lock=lock)
    if client is None:
        raise OAuthClientNotFound
    return client


async def create(change: Change, caller: Caller, new: NewOAuthClient) -> OAuthClientCreated:
    tenant_id = await _new_client_tenant(change.session, caller, new)
    _check_grant(caller, scopes={*new.scopes, *new.user_scopes}, tier=new.rate_limit_tier)
    secret = tokens.mint_token(SECRET_PREFIX)
    now = utc_now()
    row = OAuthClientRow(
        id=new_id(),
        # The public id is entirely random. An id that contains the time would be easier to guess.
        client_id=uuid4(),
        tenant_id=tenant_id,
        name=new.name,
        scopes=list(dict.fromkeys(new.scopes)),
        created_by=caller.user_id,
        enabled=True,
        rate_limit_tier=new.rate_limit_tier,
        token_lifetime_seconds=new.token_lifetime_seconds,
        secret_digest=secret.digest,
        previous_secret_digest=None,
        previous_secret_expires_at=None,
        earlier_secrets=[],
        redirect_uris=list(dict.fromkeys(new.redirect_uris)),
        user_scopes=list(dict.fromkeys(new.user_scopes)),
        public=new.public,
        created_at=now,
        updated_at=now,
        last_used=None,
    )
    change.session.add(row)
    async with _owner_change(change, row) as owner_change:
        owner_change.record(
            "oauth_client.created",
            "oauth_client",
            row.client_id,
            name=row.name,
            scopes=row.scopes,
            tenant_id=tenant_id,
            rate_limit_tier=row.rate_limit_tier,
            token_lifetime_seconds=row.token_lifetime_seconds,
            redirect_uris=row.redirect_uris,
            user_scopes=row.user_scopes,
            public=row.public,
        )
        owner_change.touch("oauth_client", row.client_id)
    fields = {column.key: getattr(row, column.key) for column in OAuthClientRow.__table__.columns}
    return OAuthClientCreated.model_validate({**fields, "client_secret": secret.plaintext})


async def update(change: Change, caller: Caller, client: OAuthClientRow, body: OAuthClientUpdate) -> OAuthClientRow:
    """Change the client. Existing tokens keep tier and lifetime, but lose at once the scopes that the client loses.

    Raises `GrantExceeded`."""
    sent = body.model_dump(exclude_none=True)
    for name in {"scopes", "redirect_uris", "user_scopes"} & sent.keys():
        sent[name] = list(dict.fromkeys(sent[name]))
    changed = client.differing(sent)
    if not changed:
        return client
    added = {
        scope for name in ("scopes", "user_scopes") for scope in set(changed.get(name, ())) - set(getattr(client, name))
    }
    _check_grant(caller, scopes=added, tier=changed.get("rate_limit_tier"))
    if changed.get("enabled") or {"redirect_uris", "public"} & changed.keys():
        # Whoever controls a redirect URI gets tokens with the client's scopes.
        _check_grant(caller, scopes={*client.scopes, *client.user_scopes}, tier=client.rate_limit_tier)
    client.assign(changed)
    async with _owner_change(change, client) as owner_change:
        owner_change.record(
            "oauth_client.updated", "oauth_client", client.client_id, tenant_id=client.tenant_id, **changed
        )
        if {"enabled", "scopes", "user_scopes"} & changed.keys():
            owner_change.touch("oauth_client", client.client_id, urgent=True)
    return client


async def delete(change: Change, client: OAuthClientRow, *, revoke_tokens: bool) -> None:
    await change.session.delete(client)
    # A disabled client's tokens are already refused, and its deletion must not make them valid again.
    revoked = revoke_tokens or not client.enabled
    if revoked:
        until = utc_now() + timedelta(seconds=MAX_TOKEN_AGE_SECONDS)
        await table.revoke_tokens(change.session, client.client_id, until)
    async with _owner_change(change, client) as owner_change:
        owner_change.record(
            "oauth_client.deleted", "oauth_client", client.client_id, name=client.name, tenant_id=client.tenant_id
        )
        owner_change.touch("oauth_client", client.client_id, urgent=True)
        if revoked:
            owner_change.touch("revocation", client.client_id, urgent=True)


async def rotate_secret(
    change: Change, caller: Caller, client: OAuthClientRow, *, grace_seconds: int, shorten: bool = False
) -> RotatedSecret:
    """Create a new secret. The previous secret stays valid for `grace_seconds`. Secrets before it stay valid until
    their own expiry; with `shorten`, for at most `grace_seconds`. Raises `TooManySecrets`, `GrantExceeded`."""
    # The caller sees the secret, and with it gets all rights of the client.
    _check_grant(caller, scopes=client.scopes, tier=client.rate_limit_tier)
    secret = tokens.mint_token(SECRET_PREFIX)
    now = utc_now()
    expires_at = now + timedelta(seconds=grace_seconds)
    latest = expires_at if shorten else datetime.max.replace(tzinfo=UTC)
    earlier = [(digest, min(until, latest)) for digest, until in _earlier_secrets(client)]
    earlier = [(digest, until) for digest, until in earlier if until > now]
    if len(earlier) + (expires_at > now) > MAX_EARLIER_SECRETS:
        raise TooManySecrets(MAX_EARLIER_SECRETS, min(until for _, until in earlier))
    client.earlier_secrets = [{"digest": digest.hex(), "expires_at": until.timestamp()} for digest, until in earlier]
    client.previous_secret_digest = client.secret_digest
    client.previous_secret_expires_at = expires_at
    client.secret_digest = secret.digest
    client.updated_at = now
    async with _owner_change(change, client) as owner_change:
        owner_change.record(
            "oauth_client.secret_rotated",
            "oauth_client",
            client.client_id,
            tenant_id=client.tenant_id,
            previous_secret_expires_at=expires_at,
        )
    return RotatedSecret(
        client_id=client.client_id,
        new_client_secret=secret.plaintext,
        grace_period_seconds=grace_seconds,
        previous_secret_expires_at=expires_at,
    )


def _earlier_secrets(client: OAuthClientRow) -> Iterator[tuple[bytes, datetime]]:
    """Yield the digests of earlier secrets, each with its expiry."""
    for entry in client.earlier_secrets:
        yield bytes.fromhex(entry["digest"]), datetime.fromtimestamp(entry["expires_at"], UTC)
    if client.previous_secret_digest is not None and client.previous_secret_expires_at is not None:
        yield client.previous_secret_digest, client.previous_secret_expires_at


@asynccontextmanager
async def _owner_change(change: Change, client: OAuthClientRow) -> AsyncIterator[Change]:
    """Yield a change in the tenant that owns the client, so that the organization's audit chain contains the changes
    that operators and the portal make to its clients. Changes of a platform-wide client are recorded in the caller's
    tenant."""
    if client.tenant_id in {None, change.tenant_id}:
        yield change
        return
    assert client.tenant_id is not None
    async with change.inside(client.tenant_id) as owner_change:
        yield owner_change


async def tenant_filter(session: AsyncSession, caller: Caller, tenant_id: UUID | None) -> TenantId | None:
    """Return the tenant that a list is restricted to, if the caller may see it. Raises `ClientTenantNotFound`."""
    return None if tenant_id is None else await _permitted_tenant(session, caller, tenant_id)


async def _new_client_tenant(session: AsyncSession, caller: Caller, new: NewOAuthClient) -> TenantId | None:
    """Return the tenant of a new client; None for a platform-wide client, which requires an explicit null.

    Raises `ClientTenantNotFound`, `PlatformWideIsForOperators`."""
    if new.tenant_id is not None:
        return await _permitted_tenant(session, caller, new.tenant_id)
    if "tenant_id" in new.model_fields_set and table.is_operator(caller):
        return None
    if "tenant_id" in new.model_fields_set or caller.tenant_id is None:
        raise PlatformWideIsForOperators
    return caller.tenant_id


async def _permitted_tenant(session: AsyncSession, caller: Caller, tenant_id: UUID) -> TenantId:
    if tenant_id != caller.tenant_id and not (
        table.manages_tenants(caller) and await table.tenant_exists(session, tenant_id)
    ):
        raise ClientTenantNotFound
    return TenantId(tenant_id)


def _check_grant(caller: Caller, *, scopes: Iterable[str] = (), tier: str | None = None) -> None:
    """Check that the caller may grant these scopes and this tier. Raises `GrantExceeded`.

    A user with the role admin may grant every scope and tier, because both apply inside the organization only, where an
    admin may do everything. A machine (an OAuth client, or an API key with scopes) may grant only rights that it has.
    It may neither enable a client that has more rights, nor rotate its secret.
    """
    missing = sorted(scope for scope in scopes if not caller.has_scope(scope))
    if missing:
        raise GrantExceeded(f"Your credential cannot give scopes that it lacks: {', '.join(missing)}.")
    if (
        tier is not None
        and caller.kind is CallerKind.OAUTH_CLIENT
        and _tier_rank(tier) > _tier_rank(caller.rate_limit_tier)
    ):
        raise GrantExceeded(f"Your credential cannot give the rate limit tier {tier}, which is above its own.")


def _tier_rank(tier: str) -> int:
    """Return the tier's rank. Unknown tiers are treated as standard."""
    return _TIERS.index(tier) if tier in _TIERS else 0
