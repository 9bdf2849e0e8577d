"""Lists, adds, rotates, changes and removes the credentials of a provider."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.providers import KINDS, ProviderKind
from gatehouse.engine.providers.credentials import environment_name, fields_per_credential, read_secret
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.changes.change import Change
from gatehouse.platform.live.ports import sealing_context
from gatehouse.platform.routing.provider_credentials.schemas import NewCredential, ProviderCredential, SecretFields
from gatehouse.platform.routing.providers import service as providers
from gatehouse.platform.routing.providers.errors import TooManyCredentials, bad_field
from gatehouse.platform.routing.providers.table import (
    MAX_CREDENTIALS,
    NEED_CREDENTIALS,
    CredentialRow,
    ProviderRow,
    credentials_of,
    further_keys,
    provider_ids,
)
from gatehouse.policy.catalog import DEFAULT_CREDENTIAL, CredentialState, credential_key


class CredentialNotFound(NotFound):
    message = "Credential not found"


class CredentialExists(Conflict):
    code = "credential_exists"
    message = "The provider already has a credential with this label. Rotate it, or use another label."


class CredentialsNotUsed(Conflict):
    code = "credentials_not_used"
    message = "This provider needs no secret, so it cannot have credentials."


class LastCredential(Conflict):
    code = "last_credential"
    message = (
        "The provider has no other credential in use. Add one first. To stop all calls, disable the provider, or remove"
        " all of its credentials with DELETE /api/admin/providers/{provider_id}/credentials."
    )


async def list_all(session: AsyncSession, provider: ProviderRow) -> list[ProviderCredential]:
    further = [shown(provider, row) for row in await credentials_of(session, provider.id)]
    return [shown(provider, None), *further] if has_default(provider) else further


def shown(provider: ProviderRow, row: CredentialRow | None) -> ProviderCredential:
    """Return the credential in `row`, or the default one."""
    if row is None:
        return ProviderCredential(
            label=DEFAULT_CREDENTIAL,
            state=provider.credential_state,
            created_at=provider.created_at,
            rotated_at=provider.credentials_updated_at,
            updated_at=provider.updated_at,
        )
    return ProviderCredential(
        label=row.label,
        state=row.state,
        created_at=row.created_at,
        rotated_at=row.rotated_at,
        updated_at=row.updated_at,
    )


def has_default(provider: ProviderRow) -> bool:
    return provider.sealed_credentials is not None


async def find(session: AsyncSession, provider: ProviderRow, label: str) -> CredentialRow | None:
    """Return the row of a credential, or None for the default one. Raises `CredentialNotFound`."""
    if label == DEFAULT_CREDENTIAL and has_default(provider):
        return None
    for row in await credentials_of(session, provider.id):
        if row.label == label:
            return row
    raise CredentialNotFound


async def add(change: Change, sealer: Sealer, provider: ProviderRow, new: NewCredential) -> ProviderCredential:
    """Add a credential. Raises `CredentialsNotUsed`, `CredentialExists`, `TooManyCredentials`, `MissingCredentials`,
    and `Unprocessable` for a field or label that the provider cannot have."""
    secret = _secret(provider, new.model_dump(exclude_unset=True, exclude={"label", "state"}))
    if new.label == DEFAULT_CREDENTIAL:
        raise bad_field("label", "is reserved for the credential that PUT .../credentials sets: use another label")
    rows = await credentials_of(change.session, provider.id)
    if any(row.label == new.label for row in rows):
        raise CredentialExists
    if len(rows) + has_default(provider) >= MAX_CREDENTIALS:
        raise TooManyCredentials
    key = credential_key(provider.id, new.label)
    others = (*await provider_ids(change.session), *await further_keys(change.session))
    if environment_name(key) in map(environment_name, others):
        raise bad_field(
            "label",
            "would give the credential the same environment variables at outposts as another provider or credential",
        )
    now = utc_now()
    if provider.credentials_updated_at is None:
        # Health checks skip providers without this time.
        provider.credentials_updated_at = now
    row = CredentialRow(
        tenant_id=change.tenant_id, provider_id=provider.id, label=new.label, state=new.state,
        sealed_secret=_seal(sealer, change, key, secret), created_at=now, rotated_at=now, updated_at=now,
    )  # fmt: skip
    change.session.add(row)
    _record(change, provider, "provider.credential_added", new.label, state=new.state)
    return shown(provider, row)


async def rotate(
    change: Change, sealer: Sealer, provider: ProviderRow, row: CredentialRow | None, body: SecretFields
) -> ProviderCredential:
    """Replace the secret of a credential. Calls in progress end with the old one. Raises `CredentialsNotUsed`,
    `MissingCredentials`, `InvalidCredentials`."""
    secret = _secret(provider, body.model_dump(exclude_unset=True))
    fields = sorted(secret)
    now = utc_now()
    if row is None:
        in_config = {
            field.name: secret.pop(field.name)
            for field in KINDS[provider.kind].credential_fields
            if field.per_credential and field.name in secret
        }
        provider.config = {**provider.config, **in_config}
        provider.sealed_credentials = _seal(sealer, change, provider.id, secret)
        provider.credentials_updated_at = provider.updated_at = now
    else:
        row.sealed_secret = _seal(sealer, change, credential_key(provider.id, row.label), secret)
        row.rotated_at = row.updated_at = now
    _record(change, provider, "provider.credential_rotated", _label(row), fields=fields)
    return shown(provider, row)


async def set_state(
    change: Change, provider: ProviderRow, row: CredentialRow | None, state: CredentialState
) -> ProviderCredential:
    """Change the state of a credential. Raises `LastCredential`."""
    if state == "disabled":
        await _require_other(change.session, provider, row)
    now: datetime = utc_now()
    if row is None:
        provider.credential_state, provider.updated_at = state, now
    else:
        row.state, row.updated_at = state, now
    _record(change, provider, "provider.credential_state_changed", _label(row), state=state)
    return shown(provider, row)


async def remove(change: Change, provider: ProviderRow, row: CredentialRow | None) -> None:
    """Remove a credential. Raises `LastCredential`."""
    state = provider.credential_state if row is None else row.state
    works_without = provider.kind not in NEED_CREDENTIALS and row is not None and not has_default(provider)
    if state != "disabled" and not works_without:
        await _require_other(change.session, provider, row)
    if row is None:
        per_credential_fields = {field.name for field in KINDS[provider.kind].credential_fields if field.per_credential}
        provider.config = {name: value for name, value in provider.config.items() if name not in per_credential_fields}
        provider.sealed_credentials, provider.credential_state = None, "active"
        provider.updated_at = utc_now()
    else:
        await change.session.delete(row)
    _record(change, provider, "provider.credential_removed", _label(row))


async def _require_other(session: AsyncSession, provider: ProviderRow, row: CredentialRow | None) -> None:
    rows: Sequence[CredentialRow] = await credentials_of(session, provider.id)
    others = any(other.label != _label(row) and other.state != "disabled" for other in rows)
    if row is not None and has_default(provider):
        others = others or provider.credential_state != "disabled"
    if not others:
        raise LastCredential


def _secret(provider: ProviderRow, body: Mapping[str, Any]) -> dict[str, str]:
    kind: ProviderKind | None = KINDS.get(provider.kind)
    if kind is None or not fields_per_credential(kind, provider.config):
        raise CredentialsNotUsed
    return read_secret(kind, provider.config, body)


def _seal(sealer: Sealer, change: Change, key: str, secret: Mapping[str, str]) -> str:
    return sealer.seal(msgspec.json.encode(secret), context=sealing_context(change.tenant_id, key))


def _label(row: CredentialRow | None) -> str:
    return DEFAULT_CREDENTIAL if row is None else row.label


def _record(change: Change, provider: ProviderRow, action: str, label: str, **details: Any) -> None:
    """Record the change, reset the health that was observed with the former credentials, and publish the policy."""
    # The provider's `updated_at` is also the version of its list of credentials.
    provider.updated_at = utc_now()
    providers.forget_health(change, provider)
    change.record(action, "provider", provider.id, credential=label, **details)
    providers.recompile_policy(change)
