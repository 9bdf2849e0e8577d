"""Creates, changes and deletes tenants. The operators' audit chain records changes of a tenant. The tenant's own audit
chain records changes inside it."""

from collections.abc import Mapping
from typing import Any, Final

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.platform.access.api_keys import service as api_keys
from gatehouse.platform.access.api_keys.schemas import NewApiKey
from gatehouse.platform.access.api_keys.table import by_digest
from gatehouse.platform.access.tenants.schemas import (
    InvitedOwner,
    NewTenant,
    Owner,
    OwnerKey,
    OwnerRegistered,
    Tenant,
    TenantCreated,
)
from gatehouse.platform.access.users import service as users
from gatehouse.platform.access.users.schemas import NewUser
from gatehouse.platform.access.users.table import UserRow, by_email
from gatehouse.platform.changes.change import DEFAULT_TENANT, Change
from gatehouse.platform.organization.tenants.errors import SlugTaken
from gatehouse.platform.organization.tenants.table import TenantRecord
from gatehouse.platform.spending.beginning import begin_plan

#: Maps a plan to its maximum requests per month; None is unlimited.
MONTHLY_REQUESTS: Final[dict[str, int | None]] = {"starter": 10_000, "business": 1_000_000, "enterprise": None}

#: Maps a column to its name in the organization's own settings.
_SETTING_NAMES: Final = {"name": "display_name", "contact_email": "contact_email"}


class TenantNotFound(NotFound):
    message = "Tenant not found"


class IdTaken(Conflict):
    code = "tenant_exists"
    message = "id: there is or was an organization with this id."


class KeyTaken(Conflict):
    code = "key_taken"
    message = "key_sha256: it is the hash of another organization's key."


class OwnerNotAdmin(Conflict):
    code = "owner_not_admin"
    message = "email: this user of the organization is not an active administrator."


class TenantOfOperators(Conflict):
    code = "tenant_of_operators"
    message = "The platform's operators belong to the tenant `default`, so it cannot be deleted."


async def create(change: Change, new: NewTenant) -> TenantCreated:
    """Create a tenant, and its first admin if an owner is sent. Raises `IdTaken`, `SlugTaken`."""
    now = utc_now()
    tenant = TenantRecord(
        id=TenantId(new.id or new_id()),
        slug=new.slug,
        name=new.name,
        plan=new.plan,
        custom_rate_limit_rpm=None,
        scan_rate_limit_rpm=None,
        monthly_request_limit=MONTHLY_REQUESTS[new.plan],
        timezone="UTC",
        feature_flags={},
        contact_email=None,
        session_policy={},
        mfa_policy={},
        mfa_policy_changed_at=None,
        ip_allowlist={},
        retention_policy={},
        request_fields={},
        dlp_sampling={},
        egress_policy=None,
        created_at=now,
        updated_at=now,
        deleted_at=None,
    )
    change.session.add(tenant)
    with unique({"tenants_pkey": IdTaken, "tenants_slug_key": SlugTaken}):
        await change.session.flush()
    change.record("tenant.created", "tenant", tenant.id, slug=tenant.slug, plan=tenant.plan)
    # Urgent, so that every worker has the tenant when the response is sent.
    change.touch("tenant", tenant.id, urgent=True, tenant_id=tenant.id)
    owner = None if new.owner is None else await _invite(change, tenant.id, new.owner)
    response = Tenant.model_validate(tenant)
    return TenantCreated(**response.model_dump(), owner=owner)


async def _invite(change: Change, tenant_id: TenantId, owner: Owner) -> InvitedOwner:
    """Create the first admin in the new tenant, in the same transaction."""
    async with change.inside(tenant_id) as tenant_change:
        new_user = NewUser(email=owner.email, display_name=owner.display_name, role="admin")
        # The caller is None, because the route has checked the rights and the caller has no user in this tenant.
        user, invitation = await users.create(tenant_change, None, new_user, None)
        assert invitation is not None
        assert invitation.token is not None
        return InvitedOwner(
            id=user.id,
            email=user.email,
            invitation_token=invitation.token,
            invitation_expires_at=invitation.expires_at,
        )


async def register_owner(change: Change, tenant: TenantRecord, owner: OwnerKey) -> OwnerRegistered:
    """Add the owner's key, and the owner if new. Raises `OwnerNotAdmin`, `KeyTaken`."""
    digest = bytes.fromhex(owner.key_sha256)
    async with change.inside(tenant.id) as tenant_change:
        user = await _find_or_create_owner(tenant_change, tenant, owner.email)
        key = await by_digest(tenant_change.session, digest)
        if key is None:
            new_key = NewApiKey(description="the owner's first key, made by the portal")
            key = api_keys.add(tenant_change, user.id, new_key, key_prefix=owner.key_prefix, digest=digest)
            with unique(KeyTaken):
                await tenant_change.session.flush()
        return OwnerRegistered(user_id=user.id, key_id=key.id)


async def _find_or_create_owner(change: Change, tenant: TenantRecord, email: str | None) -> UserRow:
    """Return the administrator with this address, or without an address the owner's service account. Create it if there
    is none. Raises `OwnerNotAdmin`."""
    new_user = NewUser(
        email=email or f"owner@{tenant.slug}.local",
        display_name=None if email else "Owner",
        role="admin",
        kind="user" if email else "service",
    )
    user = await by_email(change.session, new_user.email)
    if user is None:
        user = await users.add(change, new_user, None)
        change.record("user.created", "user", user.id, email=user.email, role=user.role, kind=user.kind, invited=False)
    elif user.role != "admin" or not user.is_active:
        raise OwnerNotAdmin
    return user


async def update(change: Change, tenant: TenantRecord, sent: Mapping[str, Any]) -> TenantRecord:
    """Change the organization's name and contact address. The organization's own audit chain records the change."""
    changed = tenant.differing(sent)
    if not changed:
        return tenant
    before = {_SETTING_NAMES[name]: getattr(tenant, name) for name in changed}
    tenant.assign(changed)
    await change.session.flush()
    settings = {_SETTING_NAMES[name]: value for name, value in changed.items()}
    async with change.inside(tenant.id) as tenant_change:
        tenant_change.record("organization.changed", "organization", tenant.id, **settings, before=before)
    return tenant


async def change_entitlements(change: Change, tenant: TenantRecord, sent: Mapping[str, Any]) -> TenantRecord:
    """Change the organization's plan and limits. A new plan also sets the monthly limit of the plan, unless the request
    contains a limit."""
    fields = dict(sent)
    # The portal sends the plan with every change. If the plan has not changed, a limit that an operator set stays.
    if fields.get("plan", tenant.plan) != tenant.plan:
        fields.setdefault("monthly_request_limit", MONTHLY_REQUESTS[fields["plan"]])
    changed = tenant.differing(fields)
    if not changed:
        return tenant
    tenant.assign(changed)
    if changed.get("monthly_request_limit") is not None:
        await begin_plan(change.session, tenant.id, changed["monthly_request_limit"])
    change.record("tenant.entitlements_changed", "tenant", tenant.id, **changed)
    change.touch("tenant", tenant.id, urgent=True, tenant_id=tenant.id)
    change.touch("policy", tenant.id, urgent=True, tenant_id=tenant.id)
    return tenant


def delete(change: Change, tenant: TenantRecord) -> None:
    """Mark the tenant as deleted. Raises `TenantOfOperators`."""
    if tenant.id == DEFAULT_TENANT:
        raise TenantOfOperators
    tenant.deleted_at = tenant.updated_at = utc_now()
    change.record("tenant.deleted", "tenant", tenant.id, slug=tenant.slug)
    change.touch("tenant", tenant.id, urgent=True, tenant_id=tenant.id)
    change.touch("policy", tenant.id, tenant_id=tenant.id)
