"""Queues test mails, and sends them as jobs."""

from typing import Final
from uuid import UUID

from gatehouse.foundation import emails
from gatehouse.foundation.errors import Conflict
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.mail.message import parse_sender
from gatehouse.foundation.mail.sending import SEND_TIMEOUT_SECONDS, MailNotSent, send
from gatehouse.foundation.settings import Settings
from gatehouse.platform.access.mail.rendering import trial_mail
from gatehouse.platform.access.mail_test.schemas import TestMailQueued
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.tenants.table import TenantRecord

#: Time limit of a job, which sends the mail and runs a few SQL statements.
_JOB_TIMEOUT_SECONDS: Final = SEND_TIMEOUT_SECONDS + 30.0


class MailServerNotSet(Conflict):
    code = "mail_server_not_set"
    message = "The platform sends no mail. Its operator sets SMTP_URL, MAIL_FROM and PUBLIC_URL."


class NoAddress(Conflict):
    code = "no_address"
    message = "A test mail goes to the caller's own address, and this caller has none. Call as a person."


async def queue_test(change: Change, settings: Settings) -> TestMailQueued:
    """Queue a test mail to the caller's address. Raises `MailServerNotSet`, `NoAddress`."""
    if settings.mail is None:
        raise MailServerNotSet
    user_id = change.caller.user_id if change.caller is not None else None
    user = None if user_id is None else await change.session.get(UserRow, user_id)
    address = None if user is None else emails.visible_address(user.email)
    if user is None or address is None:
        raise NoAddress
    mail_id = new_id()
    await JOBS.queue(change.session, send_test, change.tenant_id, mail_id=str(mail_id), user_id=str(user.id))
    change.record("mail.test_queued", "mail", mail_id)
    return TestMailQueued(id=mail_id, sent_to=address)


@JOBS.job("access.test_mail", max_attempts=1, timeout_seconds=_JOB_TIMEOUT_SECONDS)
async def send_test(tools: Tools, tenant_id: TenantId, *, mail_id: str, user_id: str) -> None:
    """Send a test mail to a user, and record the result. Any error is recorded as the result and raised again."""
    async with tools.database.tenant(tenant_id) as session:
        user = await session.get(UserRow, UUID(user_id))
        organization = await session.get(TenantRecord, tenant_id)
    if user is None or organization is None or not user.is_active:
        reason = "The account that requested the mail was deactivated or removed before the mail was sent."
        await _record(tools, tenant_id, mail_id, failure=reason)
        return
    try:
        await _send(tools.settings, mail_id, user.email, organization.name)
    except MailNotSent as error:
        await _record(tools, tenant_id, mail_id, failure=str(error))
        raise
    except Exception as error:
        # The text of the error may contain the URL of the mail server with its password.
        reason = f"Internal error ({type(error).__name__}). It is in the log of the process that runs background work."
        await _record(tools, tenant_id, mail_id, failure=reason)
        raise
    await _record(tools, tenant_id, mail_id, failure=None)


async def _send(settings: Settings, mail_id: str, email: str, organization: str) -> None:
    if settings.mail is None:
        raise MailNotSent("SMTP_URL is not set for the process that runs background work", is_permanent=False)
    mail = trial_mail(public_url=settings.mail.public_url, email=email, organization=organization)
    await send(settings.mail.server, mail, parse_sender(settings.mail.sender), message_id=mail_id)


async def _record(tools: Tools, tenant_id: TenantId, mail_id: str, *, failure: str | None) -> None:
    async with tools.database.tenant(tenant_id) as session:
        change = Change(session, None, tenant_id=tenant_id)
        if failure is None:
            change.record("mail.test_sent", "mail", mail_id)
        else:
            change.record("mail.test_failed", "mail", mail_id, outcome="failure", reason=failure)
        await change.commit()
