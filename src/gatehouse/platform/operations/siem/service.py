"""Shows, changes and tests the receiver of an organization, and checks the fields of each type of receiver."""

import ssl
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, Forbidden, PreconditionFailed, Unprocessable
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.siem import events
from gatehouse.foundation.siem.senders.sender import BatchRefused, url_of
from gatehouse.platform.changes.change import Change
from gatehouse.platform.operations import receiver_urls
from gatehouse.platform.operations.siem import table
from gatehouse.platform.operations.siem.schemas import Siem, SiemUpdate, Status, Tested
from gatehouse.platform.operations.siem.sending import SealedSenders, SealedTarget, secret_context
from gatehouse.platform.operations.siem.table import SiemTargetRow
from gatehouse.platform.request.injected import SplitTransactions

_SHOWN_FIELDS: Final = ("type", "enabled", "url", "host", "port", "ca_certificate", "index", "created_at", "updated_at")
#: The required and the optional fields of each type.
_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "hec": ("url", "token"), "syslog_tcp": ("host", "port"), "syslog_tls": ("host", "port"),
    "webhook": ("url", "secret"), "file": (),
}  # fmt: skip
_OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {"hec": ("index",), "syslog_tls": ("ca_certificate",)}
_TYPE_FIELDS: Final = ("url", "host", "port", "ca_certificate", "index")


class SiemNotConfigured(Conflict):
    code = "siem_not_configured"
    message = "No receiver is configured. Configure one with PUT /api/v1/admin/siem first."


class SiemNotNew(PreconditionFailed):
    """A request with `If-None-Match: *` would set up the receiver of an organization that already has one."""

    code = "siem_configured"
    message = "A receiver is configured. Nothing was changed. Read it with GET /api/v1/admin/siem, then change it."


class FileIsForOperators(Forbidden):
    code = "siem_file_is_for_operators"
    message = "The type `file` writes to the server's disk, so only operators of the platform may choose it."


async def check(transactions: SplitTransactions, receivers: Receivers, body: SiemUpdate) -> None:
    """Check the URL, host and certificates of the body with the address guard and TLS, without opening a connection.
    Raises `Unprocessable`."""
    faults = []
    if reason := await receiver_urls.fault(transactions, receivers, body.url, kind="siem"):
        faults.append(FieldFault("url", reason))
    if body.host is not None and (reason := await _unsafe_host(transactions, receivers, body.host)):
        faults.append(FieldFault("host", reason))
    if body.ca_certificate is not None and (reason := _certificate_fault(body.ca_certificate)):
        faults.append(FieldFault("ca_certificate", reason))
    if faults:
        raise Unprocessable(faults=faults)


async def shown(session: AsyncSession, row: SiemTargetRow | None) -> Siem:
    status = Status.model_validate(dict(await table.status(session)))
    if row is None:
        empty: dict[str, Any] = dict.fromkeys(_SHOWN_FIELDS)
        return Siem(**{**empty, "enabled": False}, token_configured=False, secret_configured=False, status=status)
    fields = {name: getattr(row, name) for name in _SHOWN_FIELDS}
    return Siem(
        **fields,
        token_configured=row.type == "hec" and row.sealed_secret is not None,
        secret_configured=row.type == "webhook" and row.sealed_secret is not None,
        status=status,
    )


async def update(change: Change, sealer: Sealer, row: SiemTargetRow | None, body: SiemUpdate) -> SiemTargetRow:
    """Change or create the receiver. Raises `Unprocessable` if a field is missing or does not belong to the type, and
    `FileIsForOperators`."""
    sent = body.sent()
    _check_fields(row, sent)
    _check_file_allowed(change.caller, row, sent)
    new_secret = sent.pop("token", None) or sent.pop("secret", None)
    was_enabled, now = row is not None and row.enabled, utc_now()
    if row is None:
        row = SiemTargetRow(tenant_id=change.tenant_id, type=sent["type"], enabled=True, created_at=now, updated_at=now)
        change.session.add(row)
        before: dict[str, Any] = {}
    else:
        before = {name: getattr(row, name) for name in ("type", "enabled", *_TYPE_FIELDS)}
        if sent.get("type", row.type) != row.type:
            row.sealed_secret = None
            sent = {**dict.fromkeys(_TYPE_FIELDS), **sent}
    for name, value in sent.items():
        setattr(row, name, value)
    changed = {name for name in ("type", "enabled", *_TYPE_FIELDS) if getattr(row, name) != before.get(name)}
    if new_secret is not None:
        row.sealed_secret = sealer.seal(new_secret.encode(), context=secret_context(row.tenant_id))
        changed.add("token" if row.type == "hec" else "secret")
    if not changed:
        return row
    row.updated_at = now
    # The URL is not recorded, because many receivers have a secret in it.
    change.record("siem.changed", "siem", changed=sorted(changed), type=row.type, enabled=row.enabled)
    await change.session.flush()
    if row.enabled and not was_enabled:
        await table.begin(change.session, row.tenant_id)
    elif row.enabled:
        await table.try_now(change.session, row.tenant_id)
    elif was_enabled:
        await table.end(change.session, row.tenant_id)
    return row


async def test(transactions: SplitTransactions, senders: SealedSenders) -> Tested:
    """Send one event at once, without the queue, and even if forwarding is disabled. Raises `SiemNotConfigured`."""
    async with transactions.reading() as session:
        row = await table.find(session)
        if row is None:
            raise SiemNotConfigured
        target = SealedTarget.of(row)
    started, error = monotonic(), None
    try:
        await senders.send(target, [events.of_test(target.tenant_id)])
    except BatchRefused as refused:
        error = refused.reason
    milliseconds = round((monotonic() - started) * 1000, 1)
    async with transactions.changing() as change:
        change.record("siem.tested", "siem", type=target.type, success=error is None, error=error)
    return Tested(success=error is None, error=error, latency_ms=milliseconds)


def _check_file_allowed(caller: Caller | None, row: SiemTargetRow | None, sent: Mapping[str, Any]) -> None:
    """Check that only an operator chooses `file`, which uses the server's disk. Raises `FileIsForOperators`."""
    chosen = sent.get("type") == "file" and (row is None or row.type != "file")
    if chosen and not (caller is not None and caller.operator):
        raise FileIsForOperators


def _check_fields(row: SiemTargetRow | None, sent: Mapping[str, Any]) -> None:
    """Check that all required fields are present and belong to the type. Raises `Unprocessable`."""
    kind = sent.get("type") or (row.type if row else None)
    if kind is None:
        raise Unprocessable(faults=[FieldFault("type", "is required for a new receiver")])
    same_type = row is not None and row.type == kind
    fields_of_type = {"type", "enabled", *_REQUIRED[kind], *_OPTIONAL.get(kind, ())}
    # Null is accepted for fields that the type does not have.
    faults = [
        FieldFault(name, f"is not a field of {kind}") for name in sent.keys() - fields_of_type if sent[name] is not None
    ]
    if not same_type:
        faults += [FieldFault(name, f"is required for {kind}") for name in _REQUIRED[kind] if name not in sent]
    elif (
        kind == "hec"
        and "token" not in sent
        and "url" in sent
        and _origin(sent["url"]) != _origin(row.url if row else "")
    ):
        # Otherwise an administrator could obtain the token by setting the URL to a host of their own.
        faults.append(FieldFault("token", "is required again, because it would be sent to another host"))
    if faults:
        raise Unprocessable(faults=sorted(faults, key=lambda fault: fault.field))


async def _unsafe_host(transactions: SplitTransactions, receivers: Receivers, host: str) -> str | None:
    if set(host) & set("/?#@[]"):
        return "not a host name or an address"
    return await receiver_urls.fault(transactions, receivers, url_of(host, 443), kind="siem")


def _origin(url: str | None) -> tuple[str, str]:
    parts = urlsplit(url or "")
    return parts.scheme, parts.netloc


def _certificate_fault(pem: str) -> str | None:
    """Return the reason why `pem` cannot be used as authorities, or None."""
    if "PRIVATE KEY" in pem:
        return "contains a private key: send only certificates"
    try:
        ssl.create_default_context(cadata=pem)
    except (ssl.SSLError, ValueError):
        return "contains no certificates in PEM"
    return None
