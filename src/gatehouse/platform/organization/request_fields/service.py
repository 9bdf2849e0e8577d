"""Changes the allowed request fields."""

from typing import Final

from gatehouse.engine.fields.tables import ALL_TOOLS, NEVER_ALLOWED, OPENAI_CHAT, TOOL
from gatehouse.foundation.settings import Settings
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.request_fields import schemas
from gatehouse.platform.organization.request_fields.values import RequestFieldsValues, read
from gatehouse.platform.organization.tenants.sources import sources_of
from gatehouse.platform.organization.tenants.stored import store_changes
from gatehouse.platform.organization.tenants.table import TenantRecord

_GUARDED: Final = {**OPENAI_CHAT, ALL_TOOLS: TOOL}


def update(change: Change, tenant: TenantRecord, allowed: list[str]) -> RequestFieldsValues:
    """Replace the allowed fields. When the response is sent, the list is active on every worker."""
    before, after = read(tenant.request_fields), RequestFieldsValues(allowed=tuple(allowed))
    if store_changes(change, tenant, "request_fields", before, after):
        change.touch("policy", tenant.id, urgent=True)
    return after


def to_shown(tenant: TenantRecord, settings: Settings) -> schemas.RequestFields:
    value = read(tenant.request_fields)
    return schemas.RequestFields(
        allowed=list(value.allowed),
        refused=[
            schemas.RefusedField(field=name, reason=guard.reason)
            for name, guard in sorted(_GUARDED.items())
            if name not in value.allowed or name in NEVER_ALLOWED
        ],
        unknown_fields=settings.unknown_fields,
        sources={
            **sources_of(("allowed",), tenant.request_fields),
            "unknown_fields": "environment" if "unknown_fields" in settings.model_fields_set else "default",
        },
    )
