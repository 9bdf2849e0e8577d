"""Test mails (docs/mail.md)."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.support.mail_server import SENDER, MailServer, body_of, link_of, mail_server
from tests.support.platform import RunningPlatform, Tenant
from tests.support.tools import tools_of

from gatehouse.foundation.mail.sending import MailNotSent
from gatehouse.foundation.settings import Settings
from gatehouse.platform.access.mail_test.service import MailServerNotSet, NoAddress, send_test

PATH = "/api/admin/mail/test"
PUBLIC_URL = "https://gatehouse.test"


@pytest.fixture(scope="module")
def smtp() -> Iterator[MailServer]:
    with mail_server() as running:
        yield running


@pytest.fixture(scope="module")
async def public(settings: Settings, platform: RunningPlatform, smtp: MailServer) -> AsyncIterator[RunningPlatform]:
    """Another worker with the same database, which sends mail."""
    with_mail = Settings.from_environment({"PUBLIC_URL": PUBLIC_URL, "SMTP_URL": smtp.url, "MAIL_FROM": SENDER})
    names = ("public_url", "smtp_url", "mail_from")
    changed = settings.model_copy(update={name: getattr(with_mail, name) for name in names})
    async with RunningPlatform.start(changed) as running:
        yield running


@pytest.fixture
async def tenant(public: RunningPlatform) -> Tenant:
    return await public.new_tenant()


async def run_job(platform: RunningPlatform, tenant: Tenant) -> None:
    """Run the queued job of the organization."""
    query = "DELETE FROM jobs WHERE kind = 'access.test_mail' AND org_id = %s RETURNING args"
    ((args,),) = platform.sql(query, [tenant.id])
    arguments: dict[str, Any] = args
    await send_test(tools_of(platform.host), tenant.id, **arguments)


async def test_a_test_mail_is_sent_to_the_administrator_who_requested_it(
    public: RunningPlatform, tenant: Tenant, smtp: MailServer
) -> None:
    answer = await tenant.admin.client.post(PATH)
    assert answer.status_code == 202, answer.text
    ((email,),) = public.sql("SELECT email FROM users WHERE id = %s", [tenant.admin.id])
    assert answer.json()["sent_to"] == email
    (queued,) = await public.audit(tenant, "mail.test_queued")
    assert (queued["resource_id"], queued["actor_id"]) == (answer.json()["id"], str(tenant.admin.id))
    await run_job(public, tenant)
    mail = await smtp.next()
    assert (mail["To"], mail["Subject"]) == (email, "Test mail from Gatehouse")
    assert link_of(mail) == f"{PUBLIC_URL}/console"
    assert link_of(mail) in body_of(mail, "html")
    (sent,) = await public.audit(tenant, "mail.test_sent")
    assert (sent["resource_id"], sent["actor_type"]) == (answer.json()["id"], "system")


async def test_the_reason_of_a_failure_is_an_audit_event(
    public: RunningPlatform, tenant: Tenant, smtp: MailServer
) -> None:
    answer = await tenant.admin.client.post(PATH)
    smtp.refusal = "550 no such mailbox"
    try:
        with pytest.raises(MailNotSent):
            await run_job(public, tenant)
    finally:
        smtp.refusal = None
    assert smtp.mails.empty()
    (failed,) = await public.audit(tenant, "mail.test_failed")
    assert (failed["resource_id"], failed["outcome"]) == (answer.json()["id"], "failure")
    assert "550 no such mailbox" in failed["reason"]


async def test_a_deactivated_administrator_gets_no_test_mail(
    public: RunningPlatform, tenant: Tenant, smtp: MailServer
) -> None:
    await tenant.admin.client.post(PATH)
    public.sql("UPDATE users SET is_active = false WHERE id = %s", [tenant.admin.id])
    await run_job(public, tenant)
    assert smtp.mails.empty()
    assert await public.audit(tenant, "mail.test_sent") == []
    (failed,) = await public.audit(tenant, "mail.test_failed")
    assert (failed["outcome"], "was deactivated or removed" in failed["reason"]) == ("failure", True)


async def test_an_unexpected_error_is_an_audit_event_without_its_text(
    public: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_: object, **__: object) -> None:
        raise RuntimeError("smtp://user:password@mail.test")

    await tenant.admin.client.post(PATH)
    monkeypatch.setattr("gatehouse.platform.access.mail_test.service.trial_mail", break_down)
    with pytest.raises(RuntimeError):
        await run_job(public, tenant)
    (failed,) = await public.audit(tenant, "mail.test_failed")
    assert (failed["outcome"], "RuntimeError" in failed["reason"]) == ("failure", True)
    assert "password" not in failed["reason"]


async def test_only_administrators_send_test_mails(public: RunningPlatform, tenant: Tenant) -> None:
    assert (await tenant.user.client.post(PATH)).status_code == 403
    assert (await tenant.auditor.client.post(PATH)).status_code == 403
    assert (await public.client("no credential").post(PATH)).status_code == 401
    assert public.sql("SELECT 1 FROM jobs WHERE kind = 'access.test_mail' AND org_id = %s", [tenant.id]) == []


async def test_a_machine_has_no_address(public: RunningPlatform, tenant: Tenant) -> None:
    client = await public.new_m2m(tenant.id, "admin:write")
    answer = await client.post(PATH)
    assert (answer.status_code, answer.json()["detail"]) == (409, NoAddress.message)


async def test_a_test_mail_is_refused_without_a_mail_server(platform: RunningPlatform) -> None:
    tenant = await platform.new_tenant()
    answer = await tenant.admin.client.post(PATH)
    assert (answer.status_code, answer.json()["detail"]) == (409, MailServerNotSet.message)


async def test_the_sixth_test_mail_in_a_minute_is_refused(public: RunningPlatform, tenant: Tenant) -> None:
    answers = [await tenant.admin.client.post(PATH) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [202] * 5 + [429]
