"""The rules of OAuth clients."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.platform.access.oauth_clients import grants, table
from gatehouse.platform.access.oauth_clients.errors import (
    OAuthClientNotFound,
    PlatformWideIsForOperators,
    TenantNotFound,
    TooManySecrets,
)
from gatehouse.platform.access.oauth_clients.schemas import (
    NewOAuthClient,
    OAuthClientCreated,
    OAuthClientUpdate,
    RotatedSecret,
)
from gatehouse.platform.access.oauth_clients.table import OAuthClientRow
from gatehouse.platform.access.tokens.lifetimes import OUTLIVED_SECONDS
from gatehouse.platform.change import Change

#: What a leaked secret is recognised by.
SECRET_PREFIX = "gcs_"  # noqa: S105 - says what a secret is, and is none

#: Secrets before the current one that are accepted at the same time.
MOST_EARLIER_SECRETS: Final = 3


async def find(session: AsyncSession, caller: Caller, client_id: UUID, *, lock: bool) -> OAuthClientRow:
    """Raises `OAuthClientNotFound`, for another tenant's too."""
    client = await table.one(session, caller, client_id, lock=lock)
    if client is None:
        raise OAuthClientNotFound
    return client


async def create(change: Change, caller: Caller, new: NewOAuthClient) -> OAuthClientCreated:
    tenant_id = await _tenant_of(change.session, caller, new)
    grants.check(caller, scopes=new.scopes, tier=new.rate_limit_tier)
    _check_redirects(tenant_id, new.redirect_uris)
    secret = tokens.mint_token(SECRET_PREFIX)
    now = utc_now()
    row = OAuthClientRow(
        id=new_id(),
        # Entirely random: a public id that told the time would be easier to guess.
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
        public=new.public,
        created_at=now,
        updated_at=now,
        last_used=None,
    )
    change.session.add(row)
    async with _of_its_organization(change, row) as part:
        part.record(
            "oauth_client.created",
            "oauth_client",
            row.client_id,
            name=row.name,
            scopes=row.scopes,
            tenant_id=tenant_id,
            rate_limit_tier=row.rate_limit_tier,
            token_lifetime_seconds=row.token_lifetime_seconds,
            redirect_uris=row.redirect_uris,
            public=row.public,
        )
        part.touch("oauth_client", row.client_id)
    shown = {column.key: getattr(row, column.key) for column in OAuthClientRow.__table__.columns}
    return OAuthClientCreated.model_validate({**shown, "client_secret": secret.plaintext})


async def update(change: Change, caller: Caller, client: OAuthClientRow, wanted: OAuthClientUpdate) -> OAuthClientRow:
    """Tokens made before keep their tier and lifetime; scopes that the client loses they lose at once."""
    given = wanted.model_dump(exclude_none=True)
    for each in {"scopes", "redirect_uris"} & given.keys():
        given[each] = list(dict.fromkeys(given[each]))
    _check_redirects(client.tenant_id, given.get("redirect_uris", []))
    changed = {name: value for name, value in given.items() if getattr(client, name) != value}
    if not changed:
        return client
    grants.check(
        caller, scopes=set(changed.get("scopes", ())) - set(client.scopes), tier=changed.get("rate_limit_tier")
    )
    if changed.get("enabled"):
        grants.check(caller, scopes=client.scopes, tier=client.rate_limit_tier)
    for name, value in changed.items():
        setattr(client, name, value)
    client.updated_at = utc_now()
    async with _of_its_organization(change, client) as part:
        part.record("oauth_client.updated", "oauth_client", client.client_id, tenant_id=client.tenant_id, **changed)
        if "enabled" in changed or "scopes" in changed:
            part.touch("oauth_client", client.client_id, urgent=True)
    return client


async def delete(change: Change, client: OAuthClientRow, *, revoke_tokens: bool) -> None:
    await change.session.delete(client)
    # A disabled client's tokens are stopped already, and its deletion must not bring them back.
    revoked = revoke_tokens or not client.enabled
    if revoked:
        until = utc_now() + timedelta(seconds=OUTLIVED_SECONDS)
        await table.revoke_tokens(change.session, client.client_id, until)
    async with _of_its_organization(change, client) as part:
        part.record(
            "oauth_client.deleted", "oauth_client", client.client_id, name=client.name, tenant_id=client.tenant_id
        )
        part.touch("oauth_client", client.client_id, urgent=True)
        if revoked:
            part.touch("revocation", client.client_id, urgent=True)


async def rotate_secret(
    change: Change, caller: Caller, client: OAuthClientRow, *, grace_seconds: int, shorten: bool = False
) -> RotatedSecret:
    """A new secret. The one before is accepted for `grace_seconds` more, those before it until their own ends, or with
    `shorten` no longer than that. Raises `TooManySecrets`."""
    # Who holds a client's secret can do what the client can.
    grants.check(caller, scopes=client.scopes, tier=client.rate_limit_tier)
    secret = tokens.mint_token(SECRET_PREFIX)
    now = utc_now()
    expires_at = now + timedelta(seconds=grace_seconds)
    latest = expires_at if shorten else datetime.max.replace(tzinfo=UTC)
    earlier = [(digest, min(until, latest)) for digest, until in _earlier(client)]
    earlier = [(digest, until) for digest, until in earlier if until > now]
    if len(earlier) + (expires_at > now) > MOST_EARLIER_SECRETS:
        raise TooManySecrets(MOST_EARLIER_SECRETS, min(until for _, until in earlier))
    client.earlier_secrets = [{"digest": digest.hex(), "expires_at": until.timestamp()} for digest, until in earlier]
    client.previous_secret_digest = client.secret_digest
    client.previous_secret_expires_at = expires_at
    client.secret_digest = secret.digest
    client.updated_at = now
    async with _of_its_organization(change, client) as part:
        part.record(
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


def _earlier(client: OAuthClientRow) -> Iterator[tuple[bytes, datetime]]:
    """Digests of the secrets before the current one, and until when each is accepted."""
    for entry in client.earlier_secrets:
        yield bytes.fromhex(entry["digest"]), datetime.fromtimestamp(entry["expires_at"], UTC)
    if client.previous_secret_digest is not None and client.previous_secret_expires_at is not None:
        yield client.previous_secret_digest, client.previous_secret_expires_at


@asynccontextmanager
async def _of_its_organization(change: Change, client: OAuthClientRow) -> AsyncIterator[Change]:
    """What is told of a client is told where it belongs: an organization sees in its own audit chain what operators and
    the portal did to its clients. A platform-wide client's is told in the chain of whoever changed it."""
    if client.tenant_id in {None, change.tenant_id}:
        yield change
        return
    assert client.tenant_id is not None
    async with change.inside(client.tenant_id) as part:
        yield part


def _check_redirects(tenant_id: TenantId | None, redirect_uris: list[str]) -> None:
    """People are sent on to a client without being asked, so it is the platform's own. Raises `Unprocessable`."""
    if redirect_uris and tenant_id is not None:
        fault = FieldFault("redirect_uris", "only platform-wide clients have them (tenant_id null)")
        raise Unprocessable(faults=[fault])


async def tenant_filter(session: AsyncSession, caller: Caller, tenant_id: UUID | None) -> TenantId | None:
    """The tenant that a list is asked for, if the caller may ask for it. Raises `TenantNotFound`."""
    return None if tenant_id is None else await _named(session, caller, tenant_id)


async def _tenant_of(session: AsyncSession, caller: Caller, new: NewOAuthClient) -> TenantId | None:
    """Whose the new client is; None for a platform-wide one, which nobody gets without saying null."""
    if new.tenant_id is not None:
        return await _named(session, caller, new.tenant_id)
    if "tenant_id" in new.model_fields_set and table.is_operator(caller):
        return None
    if "tenant_id" in new.model_fields_set or caller.tenant_id is None:
        raise PlatformWideIsForOperators
    return caller.tenant_id


async def _named(session: AsyncSession, caller: Caller, tenant_id: UUID) -> TenantId:
    if tenant_id != caller.tenant_id and not (
        table.manages_tenants(caller) and await table.tenant_exists(session, tenant_id)
    ):
        raise TenantNotFound
    return TenantId(tenant_id)
