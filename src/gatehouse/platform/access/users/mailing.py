"""Sends the mails with one-time links, as jobs (docs/mail.md).

    queued -> sent      the server accepted the mail: `mailed_at` is set, and the sealed token is deleted
    queued -> failed    the server refused the mail permanently, or the link has expired: audit event `user.mail_failed`
    queued -> dropped   the token was revoked or used, or the user was deactivated

After a temporary fault, for example if the server does not answer, the job is tried again until the link expires.
"""

from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID

from sqlalchemy import Row, Select, Update, select, update

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.mail.message import parse_sender
from gatehouse.foundation.mail.sending import SEND_TIMEOUT_SECONDS, MailNotSent, send
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.platform.access.mail.rendering import link_mail
from gatehouse.platform.access.users.table import OneTimeTokenRow, UserRow
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.tenants.table import TenantRecord

#: Time limit of a job: sends the mail and runs the SQL statements around it.
_JOB_TIMEOUT_SECONDS: Final = SEND_TIMEOUT_SECONDS + 30.0


#: The row of a link to send: purpose, sealed token, expiry, address and organization.
_LinkRow: TypeAlias = Row[str, str | None, datetime, str, str]


def token_context(tenant_id: TenantId | UUID, token_id: UUID) -> bytes:
    """Return the sealing context of a one-time token."""
    return f"one_time_token:{tenant_id}:{token_id}".encode()


async def queue_mail(change: Change, sealer: Sealer, row: OneTimeTokenRow, token: str) -> None:
    """Queue the mail with a new token. The row contains the sealed token until the mail is sent."""
    row.sealed_token = sealer.seal(token.encode(), context=token_context(row.tenant_id, row.id))
    row.by_mail = True
    # The job's parameters contain no secret and no address. The job reads the current ones when it runs.
    await JOBS.queue(change.session, send_link, change.tenant_id, token_id=str(row.id))


def _is_final(error: Exception) -> bool:
    return isinstance(error, MailNotSent) and error.is_permanent


@JOBS.job("access.mail", max_attempts=None, timeout_seconds=_JOB_TIMEOUT_SECONDS, is_final=_is_final)
async def send_link(tools: Tools, tenant_id: TenantId, *, token_id: str) -> None:
    """Send the mail with a one-time link, unless it was sent already, or the token was used or revoked. Raises
    `MailNotSent`.

    Only one process runs the job, and it stores `mailed_at` as soon as the server has accepted the mail. If the process
    is killed before that, the mail is sent again, with the same Message-ID and the same link.
    """
    async with tools.database.tenant(tenant_id) as session:
        link = (await session.execute(_unsent(UUID(token_id)))).one_or_none()
    if link is None:
        return
    try:
        await _send(tools, tenant_id, UUID(token_id), link)
    except MailNotSent as error:
        if error.is_permanent:
            await _record_failure(tools, tenant_id, UUID(token_id), str(error))
        raise
    async with tools.database.tenant(tenant_id) as session:
        await session.execute(_of_token(UUID(token_id)).values(sealed_token=None, mailed_at=utc_now()))
        await session.commit()


async def _send(tools: Tools, tenant_id: TenantId, token_id: UUID, link: _LinkRow) -> None:
    if link.expires_at <= utc_now():
        raise MailNotSent("the link expired before the mail could be sent", is_permanent=True)
    mail_settings = tools.settings.mail
    if mail_settings is None:
        raise MailNotSent("SMTP_URL is not set for the process that runs background work", is_permanent=False)
    token = _open_token(tools.sealer, tenant_id, token_id, link.sealed_token)
    mail = link_mail(
        link.purpose, public_url=mail_settings.public_url, token=token, email=link.email,
        organization=link.organization, expires_at=link.expires_at,
    )  # fmt: skip
    await send(mail_settings.server, mail, parse_sender(mail_settings.sender), message_id=str(token_id))


def _unsent(token_id: UUID) -> Select[str, str | None, datetime, str, str]:
    """Return the query that selects the fields of the mail, if its link is still to be sent."""
    return (
        select(
            OneTimeTokenRow.purpose, OneTimeTokenRow.sealed_token, OneTimeTokenRow.expires_at, UserRow.email,
            TenantRecord.name.label("organization"),
        )
        .join(UserRow, UserRow.id == OneTimeTokenRow.user_id)
        .join(TenantRecord, TenantRecord.id == OneTimeTokenRow.tenant_id)
        .where(
            OneTimeTokenRow.id == token_id, OneTimeTokenRow.used_at.is_(None),
            OneTimeTokenRow.sealed_token.is_not(None), UserRow.is_active, TenantRecord.deleted_at.is_(None),
        )
    )  # fmt: skip


def _of_token(token_id: UUID) -> Update:
    return update(OneTimeTokenRow).where(OneTimeTokenRow.id == token_id)


def _open_token(sealer: Sealer, tenant_id: TenantId, token_id: UUID, sealed_token: str) -> str:
    try:
        return sealer.open(sealed_token, context=token_context(tenant_id, token_id)).decode()
    except CannotOpen:
        raise MailNotSent(
            "the link cannot be opened with the master keys of this process: issue another", is_permanent=True
        ) from None


async def _record_failure(tools: Tools, tenant_id: TenantId, token_id: UUID, reason: str) -> None:
    async with tools.database.tenant(tenant_id) as session:
        change = Change(session, None, tenant_id=tenant_id)
        row = await session.get(OneTimeTokenRow, token_id, with_for_update=True)
        if row is not None and row.sealed_token is not None:
            row.sealed_token = None
            change.record(
                "user.mail_failed", "user", row.user_id, outcome="failure", reason=reason, purpose=row.purpose
            )
        await change.commit()
