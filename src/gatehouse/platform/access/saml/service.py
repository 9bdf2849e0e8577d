"""Creates, changes and deletes identity providers."""

from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.egress.guard import BlockedAddress, UnsafeUrl
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.outbound.receivers import ReceiverFailed, Receivers
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.access.saml import table
from gatehouse.platform.access.saml.errors import AdministratorRequired, EntityIdTaken, TooManyIdps
from gatehouse.platform.access.saml.protocol import idp_metadata
from gatehouse.platform.access.saml.protocol.idp_metadata import BadMetadata, ProviderMetadata
from gatehouse.platform.access.saml.protocol.messages import XML_THREADS
from gatehouse.platform.access.saml.protocol.trust import MAX_BYTES
from gatehouse.platform.access.saml.schemas import Idp, IdpList, IdpUpdate, MetadataSource, NewIdp
from gatehouse.platform.access.saml.table import IdpRow
from gatehouse.platform.access.users import rights
from gatehouse.platform.access.users.errors import CannotGrant
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import SplitTransactions

#: Maximum number of identity providers of an organization.
MAX_IDPS: Final = 100


async def list_idps(session: AsyncSession) -> IdpList:
    idps = [Idp.model_validate(row) for row in await table.all_idps(session)]
    return IdpList(idps=idps, total=len(idps))


async def create(change: Change, caller: Caller, new: NewIdp) -> IdpRow:
    """Create an identity provider. Raises `AdministratorRequired`, `EntityIdTaken`, `TooManyIdps`."""
    _require_admin_rights(caller)
    await require_room(change.session, ScopedLock.SAML_PROVIDERS, table.count_idps, limit=MAX_IDPS, full=TooManyIdps)
    now = utc_now()
    row = IdpRow(
        id=new_id(),
        tenant_id=change.tenant_id,
        created_at=now,
        updated_at=now,
        by_operator=caller.operator,
        **{**new.model_dump(), "attribute_mapping": _mapping(new)},
    )
    change.session.add(row)
    await _flush(change.session)
    change.record("saml_idp.created", "saml_idp", row.id, **_audit_details(row))
    return row


async def update(change: Change, caller: Caller, idp: IdpRow, body: IdpUpdate) -> IdpRow:
    """Change an identity provider. Raises `AdministratorRequired`, `EntityIdTaken`."""
    _require_admin_rights(caller)
    sent = body.sent()
    if "attribute_mapping" in sent:
        sent["attribute_mapping"] = _mapping(body)
    changed = idp.differing(sent)
    # An operator who saves an unchanged configuration vouches for it. A later change by another caller resets this.
    if not changed and not (caller.operator and not idp.by_operator):
        return idp
    changed["by_operator"] = caller.operator
    idp.assign(changed)
    await _flush(change.session)
    change.record("saml_idp.updated", "saml_idp", idp.id, **changed)
    return idp


async def delete(change: Change, idp: IdpRow) -> None:
    """Delete the provider. Its sessions continue, and it receives no logout request when they end."""
    await change.session.delete(idp)
    change.record("saml_idp.deleted", "saml_idp", idp.id, name=idp.name, entity_id=idp.entity_id)


def _require_admin_rights(caller: Caller) -> None:
    """Require that the caller may grant the role admin, because a caller who configures a trusted provider can become
    any user, including an administrator. Raises `AdministratorRequired`."""
    try:
        rights.require_may_grant(caller, "admin")
    except CannotGrant:
        raise AdministratorRequired from None


def _mapping(body: NewIdp | IdpUpdate) -> dict[str, str] | None:
    mapping = body.attribute_mapping
    return None if mapping is None else mapping.model_dump(exclude_none=True)


def _audit_details(row: IdpRow) -> dict[str, Any]:
    names = (
        "name",
        "entity_id",
        "sso_url",
        "slo_url",
        "x509_cert",
        "attribute_mapping",
        "is_active",
        "allow_idp_initiated",
    )
    return {name: getattr(row, name) for name in names}


async def _flush(session: AsyncSession) -> None:
    with unique(EntityIdTaken):
        await session.flush()


async def read_metadata(
    transactions: SplitTransactions, receivers: Receivers, source: MetadataSource
) -> ProviderMetadata:
    """Return the identity provider that the metadata in the body, or at its URL, describes. Raises `Unprocessable`."""
    field = "xml" if source.url is None else "url"
    raw = (source.xml or "").encode() if source.url is None else await _fetch(transactions, receivers, source.url)
    try:
        return await XML_THREADS.run(lambda: idp_metadata.read(raw))
    except BadMetadata as error:
        raise Unprocessable(faults=[FieldFault(field, f"the metadata {error}")]) from None


async def _fetch(transactions: SplitTransactions, receivers: Receivers, url: str) -> bytes:
    """Return the document at the URL. If the address is blocked, the audit chain records the host."""
    try:
        return await receivers.get(url, max_bytes=MAX_BYTES)
    except BlockedAddress as error:
        async with transactions.changing() as change:
            change.record(
                "receiver.refused", "saml_idp", outcome="refused", reason=error.reason, host=urlsplit(url).hostname
            )
        reason = f"{error.reason}; it must be on the open internet, or in a network of EGRESS_ALLOWLIST"
    except (UnsafeUrl, ReceiverFailed) as error:
        reason = error.reason
    raise Unprocessable(faults=[FieldFault("url", reason)])
