"""The rules of tenants. What is done to them stands in the operators' audit chain; what is done in them, in theirs."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy.exc import IntegrityError

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.platform.access.api_keys import service as api_keys
from gatehouse.platform.access.api_keys.schemas import NewApiKey
from gatehouse.platform.access.api_keys.table import by_digest
from gatehouse.platform.access.tenants.errors import IdTaken, KeyTaken, OwnerNotAdmin, TenantOfOperators
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
from gatehouse.platform.change import DEFAULT_TENANT, Change
from gatehouse.platform.organization.tenants.errors import SlugTaken
from gatehouse.platform.organization.tenants.table import TenantRecord
from gatehouse.platform.spending.beginning import begin_plan

#: Plan -> requests a month (decisions 7, Plan limits).
MONTHLY_REQUESTS: Final[dict[str, int | None]] = {"starter": 10_000, "business": 1_000_000, "enterprise": None}

#: Columns, by the names that they have in the organization's own settings.
_SETTINGS: Final = {"name": "display_name", "contact_email": "contact_email"}


async def create(change: Change, new: NewTenant) -> TenantCreated:
    """Raises `IdTaken`, `SlugTaken`."""
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
    try:
        await change.session.flush()
    except IntegrityError as error:
        raise (IdTaken if "tenants_pkey" in str(error.orig) else SlugTaken) from None
    change.record("tenant.created", "tenant", tenant.id, slug=tenant.slug, plan=tenant.plan)
    # Urgent, so that whoever registers right after the answer is known to every worker.
    change.touch("tenant", tenant.id, urgent=True, tenant_id=tenant.id)
    owner = None if new.owner is None else await _invite(change, tenant.id, new.owner)
    shown = Tenant.model_validate(tenant)
    return TenantCreated(**shown.model_dump(), owner=owner)


async def _invite(change: Change, tenant_id: TenantId, owner: Owner) -> InvitedOwner:
    """The first admin: made in the new tenant, in the same transaction."""
    async with change.inside(tenant_id) as inside:
        wanted = NewUser(email=owner.email, display_name=owner.display_name, role="admin")
        # Whose right it is was judged by the type of the caller, who is nobody in this tenant.
        user, invitation = await users.create(inside, None, wanted, None)
        assert invitation is not None
        return InvitedOwner(
            id=user.id,
            email=user.email,
            invitation_token=invitation.token,
            invitation_expires_at=invitation.expires_at,
        )


async def register_owner(change: Change, tenant: TenantRecord, owner: OwnerKey) -> OwnerRegistered:
    """Raises `OwnerNotAdmin`, `KeyTaken`."""
    digest = bytes.fromhex(owner.key_sha256)
    async with change.inside(tenant.id) as inside:
        user = await _owner(inside, tenant, owner.email)
        key = await by_digest(inside.session, digest)
        if key is None:
            described = NewApiKey(description="the owner's first key, made by the portal")
            key = api_keys.add(inside, user.id, described, key_prefix=owner.key_prefix, digest=digest)
            try:
                await inside.session.flush()
            except IntegrityError:
                raise KeyTaken from None
        return OwnerRegistered(user_id=user.id, key_id=key.id)


async def _owner(change: Change, tenant: TenantRecord, email: str | None) -> UserRow:
    """The administrator with this address, or the service account that stands for one; made where there is none."""
    wanted = NewUser(
        email=email or f"owner@{tenant.slug}.local",
        display_name=None if email else "Owner",
        role="admin",
        kind="user" if email else "service",
    )
    user = await by_email(change.session, wanted.email)
    if user is None:
        user = await users.add(change, wanted, None)
        change.record("user.created", "user", user.id, email=user.email, role=user.role, kind=user.kind, invited=False)
    elif user.role != "admin" or not user.is_active:
        raise OwnerNotAdmin
    return user


async def update(change: Change, tenant: TenantRecord, sent: Mapping[str, Any]) -> TenantRecord:
    """Changes how the organization is called, and who answers for it. Its own audit chain says so."""
    changed = {name: value for name, value in sent.items() if getattr(tenant, name) != value}
    if not changed:
        return tenant
    before = {_SETTINGS[name]: getattr(tenant, name) for name in changed}
    for name, value in changed.items():
        setattr(tenant, name, value)
    tenant.updated_at = utc_now()
    await change.session.flush()
    shown = {_SETTINGS[name]: value for name, value in changed.items()}
    async with change.inside(tenant.id) as inside:
        inside.record("organization.changed", "organization", tenant.id, **shown, before=before)
    return tenant


async def entitle(change: Change, tenant: TenantRecord, sent: Mapping[str, Any]) -> TenantRecord:
    """Changes what the organization may use. Another plan brings its monthly limit, unless one is sent with it."""
    fields = dict(sent)
    # The portal sends the plan with every change, also where it is the same: an operator's own limit stays then.
    if fields.get("plan", tenant.plan) != tenant.plan:
        fields.setdefault("monthly_request_limit", MONTHLY_REQUESTS[fields["plan"]])
    changed = {name: value for name, value in fields.items() if getattr(tenant, name) != value}
    if not changed:
        return tenant
    for name, value in changed.items():
        setattr(tenant, name, value)
    tenant.updated_at = utc_now()
    if changed.get("monthly_request_limit") is not None:
        await begin_plan(change.session, tenant.id, changed["monthly_request_limit"])
    change.record("tenant.entitlements_changed", "tenant", tenant.id, **changed)
    change.touch("tenant", tenant.id, urgent=True, tenant_id=tenant.id)
    change.touch("policy", tenant.id, urgent=True, tenant_id=tenant.id)
    return tenant


def delete(change: Change, tenant: TenantRecord) -> None:
    """Raises `TenantOfOperators`."""
    if tenant.id == DEFAULT_TENANT:
        raise TenantOfOperators
    tenant.deleted_at = tenant.updated_at = utc_now()
    change.record("tenant.deleted", "tenant", tenant.id, slug=tenant.slug)
    change.touch("tenant", tenant.id, urgent=True, tenant_id=tenant.id)
    change.touch("policy", tenant.id, tenant_id=tenant.id)
