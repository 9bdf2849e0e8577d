"""Mails with one-time links, from the request to the use of the link (docs/mail.md)."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest
from tests.support.mail_server import SENDER, MailServer, body_of, link_of, mail_server, token_of
from tests.support.members import member
from tests.support.pages import Visitor
from tests.support.platform import PASSWORD, RunningPlatform, Tenant
from tests.support.ports import free_port
from tests.support.tools import tools_of

from gatehouse.administration import job_worker
from gatehouse.administration.job_worker import JobWorker
from gatehouse.administration.jobs import Jobs
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.mail.sending import MailNotSent
from gatehouse.foundation.settings import Settings
from gatehouse.platform.access.users import mailing
from gatehouse.platform.background.jobs import JOBS, Tools

USERS = "/api/admin/users"
FORGOT = "/api/auth/password/forgot"
NEW = "another password of mine"
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


@pytest.fixture
async def other_tenant(public: RunningPlatform) -> Tenant:
    return await public.new_tenant()


@pytest.fixture
async def mailbox(public: RunningPlatform, smtp: MailServer) -> AsyncIterator[MailServer]:
    """The mail server, without the mails and refusals of other tests."""
    await public.host.later.settle()
    public.sql("DELETE FROM jobs WHERE kind = 'access.mail'")
    while not smtp.mails.empty():
        smtp.mails.get()
    yield smtp
    smtp.refusal = smtp.refusal_of_content = None


@pytest.fixture
async def jobs(
    mailbox: MailServer, public: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Jobs[Tools]]:
    """A process that sends mails, as `gatehouse worker` does."""
    async with MailWorker(public, monkeypatch) as running:
        yield running


class MailWorker:
    """Runs the jobs that send mails, and no other jobs. `changed` replaces fields of the tools."""

    def __init__(self, platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
        monkeypatch.setattr(job_worker, "_POLL_INTERVAL_SECONDS", 0.05)
        monkeypatch.setattr(job_worker, "_MIN_RETRY_SECONDS", 0.05)
        self._jobs = Jobs[Tools](expected=JOBS.expected)
        self._jobs.kinds["access.mail"] = JOBS.kinds["access.mail"]
        self._worker = JobWorker(self._jobs, tools_of(platform.host, **changed), platform.host.database, slots=2)

    async def __aenter__(self) -> Jobs[Tools]:
        self._task = asyncio.create_task(self._worker.run())
        return self._jobs

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def address(domain: str = "example.test") -> str:
    return f"ada-{uuid4().hex[:10]}@{domain}"


async def wait_for(condition: Any, seconds: float = 20) -> Any:
    """Wait until the condition's result is true, and return it."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return result


def jobs_of(platform: RunningPlatform, tenant: Tenant) -> list[Any]:
    """Return state, attempts and error of the tenant's jobs, oldest first."""
    query = (
        "SELECT status, attempts, error FROM jobs WHERE org_id = %s AND kind = 'access.mail' ORDER BY created_at, id"
    )
    return platform.sql(query, [tenant.id])


async def invite(admin: Any, platform: RunningPlatform, **body: Any) -> dict[str, Any]:
    answer = await platform.client(admin.token).post(USERS, json={"email": address(), **body})
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def login(platform: RunningPlatform, email: str, password: str = PASSWORD) -> httpx2.Response:
    return await platform.anonymous.post("/api/auth/login", json={"email": email, "password": password})


def path_of(mail: EmailMessage) -> str:
    link = urlsplit(link_of(mail))
    assert f"{link.scheme}://{link.netloc}" == PUBLIC_URL
    return f"{link.path}?{link.query}"


# invitations and resets ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("jobs")
async def test_an_invited_person_sets_a_password_with_the_link_and_is_signed_in(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer, visitor: Visitor
) -> None:
    public.sql("UPDATE tenants SET name = %s WHERE id = %s", ["Ada & <b>Sons</b>\nBcc: x@example.com", tenant.id])
    created = await invite(tenant.admin, public)
    assert (created["invitation_token"], created["invitation_sent_to"]) == (None, created["email"])
    assert created["invitation_expires_at"]

    mail = await mailbox.next()
    assert (mail["To"], mail["From"], mail["Bcc"]) == (created["email"], SENDER, None)
    assert mail["Subject"] == "Your invitation to Ada & <b>Sons</b> Bcc: x@example.com"
    text, html = body_of(mail, "plain"), body_of(mail, "html")
    for part in (text, html):
        assert "The link works once, until " in part
        assert "If you did not expect this invitation, ignore this mail." in part
    assert "Ada & <b>Sons</b>" in text
    assert "Ada &amp; &lt;b&gt;Sons&lt;/b&gt;" in html
    assert link_of(mail).replace("&", "&amp;") in html

    await visitor.get(path_of(mail))
    await visitor.fill(password=NEW, repeated=NEW)
    assert (visitor.page.status_code, visitor.page.headers["Location"]) == (303, "/console")
    assert visitor.cookie()
    assert (await login(public, created["email"], NEW)).status_code == 200
    # A mailed invitation proves the address, even if a machine issued it.
    assert public.sql("SELECT address_proven_at IS NOT NULL FROM users WHERE id = %s", [created["id"]]) == [(True,)]


@pytest.mark.usefixtures("jobs")
async def test_an_administrator_resets_a_password_by_mail(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer, visitor: Visitor
) -> None:
    ada = await member(public, tenant)
    answer = await public.client(tenant.admin.token).post(f"{USERS}/{ada.id}/password-reset")
    assert (answer.status_code, answer.json()["token"], answer.json()["sent_to"]) == (201, None, ada.email)
    mail = await mailbox.next()
    assert mail["To"] == ada.email
    await visitor.get(path_of(mail))
    await visitor.fill(password=NEW, repeated=NEW)
    assert visitor.page.headers["Location"].startswith("/login?done=password")
    assert (await login(public, ada.email, NEW)).status_code == 200
    # The link works once.
    await visitor.get(path_of(mail))
    assert (await visitor.fill(password=PASSWORD, repeated=PASSWORD)).status_code == 400


async def test_an_administrator_can_get_the_token_in_the_response(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer
) -> None:
    admin = public.client(tenant.admin.token)
    answer = await admin.post(f"{USERS}?delivery=response", json={"email": address()})
    assert answer.json()["invitation_token"].startswith("inv_")
    assert answer.json()["invitation_sent_to"] is None
    reset = await admin.post(f"{USERS}/{answer.json()['id']}/password-reset?delivery=response")
    assert reset.json()["token"].startswith("pwr_")
    assert jobs_of(public, tenant) == []
    refused = await admin.post(f"{USERS}?delivery=pigeon", json={"email": address()})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", "delivery"])


async def test_without_mail_the_response_contains_the_token(platform: RunningPlatform) -> None:
    tenant = await platform.new_tenant()
    created = await invite(tenant.admin, platform)
    assert created["invitation_token"].startswith("inv_")
    assert created["invitation_sent_to"] is None
    for path, body in ((USERS, {"email": address()}), (f"{USERS}/{created['id']}/password-reset", None)):
        refused = await tenant.admin.client.post(f"{path}?delivery=mail", json=body)
        assert refused.status_code == 409
        assert "SMTP_URL" in refused.text
    assert jobs_of(platform, tenant) == []
    refused = await platform.anonymous.post(FORGOT, json={"email": created["email"]})
    assert (refused.status_code, refused.json()["error"]) == (409, "mail_not_configured")


# the job ------------------------------------------------------------------------------------------------------------


async def test_the_token_is_sealed_until_it_is_sent_and_never_stored_in_clear(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await invite(tenant.admin, public)
    (args,) = public.sql("SELECT args FROM jobs WHERE org_id = %s AND kind = 'access.mail'", [tenant.id])[0]
    assert set(args) == {"token_id"}
    columns = "SELECT sealed_token, mailed_at FROM one_time_tokens WHERE user_id = %s"
    ((sealed, mailed_at),) = public.sql(columns, [created["id"]])
    assert sealed.startswith("v1.")
    assert mailed_at is None
    async with MailWorker(public, monkeypatch):
        token = token_of(await mailbox.next())
        await wait_for(lambda: jobs_of(public, tenant)[0][0] == "done")
    ((sealed, mailed_at),) = public.sql(columns, [created["id"]])
    assert (sealed, mailed_at is not None) == (None, True)
    for table in ("jobs", "audit_events", "one_time_tokens"):
        assert public.sql(f"SELECT count(*) FROM {table} t WHERE t::text LIKE %s", [f"%{token}%"]) == [(0,)]


async def test_a_mail_is_delivered_after_the_server_is_up_again(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    server = MailServer(port)
    changed = Settings.from_environment({"PUBLIC_URL": PUBLIC_URL, "SMTP_URL": server.url, "MAIL_FROM": SENDER})
    created = await invite(tenant.admin, public)
    async with MailWorker(public, monkeypatch, settings=changed):
        await wait_for(lambda: jobs_of(public, tenant)[0][1] >= 2)
        assert "connect" in jobs_of(public, tenant)[0][2]
        with server.running():
            assert (await server.next())["To"] == created["email"]
            await wait_for(lambda: jobs_of(public, tenant)[0][0] == "done")
            assert server.mails.empty()
    assert await public.audit(tenant, "user.mail_failed") == []


@pytest.mark.usefixtures("jobs")
async def test_a_temporary_refusal_is_tried_again(public: RunningPlatform, tenant: Tenant, mailbox: MailServer) -> None:
    mailbox.refusal = "451 4.7.1 Greylisted"
    await invite(tenant.admin, public)
    await wait_for(lambda: jobs_of(public, tenant)[0][1] >= 2)
    mailbox.refusal = None
    await mailbox.next()
    await wait_for(lambda: jobs_of(public, tenant)[0][0] == "done")


@pytest.mark.usefixtures("jobs")
async def test_a_permanent_refusal_ends_the_job_and_is_in_the_audit_log(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer
) -> None:
    mailbox.refusal_of_content = "554 5.7.1 Blocked: {link}"
    created = await invite(tenant.admin, public)
    ((_, attempts, error),) = await wait_for(lambda: [job for job in jobs_of(public, tenant) if job[0] == "failed"])
    assert attempts == 1
    assert "554 5.7.1 Blocked" in error
    (event,) = await public.audit(tenant, "user.mail_failed")
    assert (event["resource_id"], event["outcome"], event["actor_type"]) == (created["id"], "failure", "system")
    assert event["details"] == {"purpose": "invitation"}
    assert "554 5.7.1 Blocked" in event["reason"]
    # The server's reply quoted the link, which is removed from the reason.
    assert "[secret]" in event["reason"]
    assert "inv_" not in error + event["reason"]
    assert public.sql("SELECT sealed_token FROM one_time_tokens WHERE user_id = %s", [created["id"]]) == [(None,)]


async def test_a_mail_that_was_sent_is_not_sent_again(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer
) -> None:
    await invite(tenant.admin, public)
    (token_id,) = public.sql("SELECT args->>'token_id' FROM jobs WHERE org_id = %s", [tenant.id])[0]
    tools = tools_of(public.host)
    await mailing.send_link(tools, tenant.id, token_id=token_id)
    await mailing.send_link(tools, tenant.id, token_id=token_id)
    assert mailbox.mails.qsize() == 1
    # A process that is killed before it stores the result sends the same mail again, with the same id.
    mail = mailbox.mails.get()
    assert mail["Message-ID"] == f"<{token_id}@gatehouse.test>"


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM one_time_tokens WHERE user_id = %s",
        "UPDATE one_time_tokens SET used_at = now() WHERE user_id = %s",
        "UPDATE users SET is_active = false WHERE id = %s",
    ],
)
async def test_a_link_that_is_void_is_not_sent(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer, change: str
) -> None:
    created = await invite(tenant.admin, public)
    (token_id,) = public.sql("SELECT args->>'token_id' FROM jobs WHERE org_id = %s", [tenant.id])[0]
    public.sql(change, [created["id"]])
    await mailing.send_link(tools_of(public.host), tenant.id, token_id=token_id)
    assert mailbox.mails.empty()


async def test_an_expired_link_ends_its_job(public: RunningPlatform, tenant: Tenant, mailbox: MailServer) -> None:
    await invite(tenant.admin, public)
    (token_id,) = public.sql("SELECT args->>'token_id' FROM jobs WHERE org_id = %s", [tenant.id])[0]
    public.sql("UPDATE one_time_tokens SET expires_at = now() WHERE id = %s", [token_id])
    with pytest.raises(MailNotSent, match="expired") as error:
        await mailing.send_link(tools_of(public.host), tenant.id, token_id=token_id)
    assert error.value.is_permanent
    assert mailbox.mails.empty()


async def test_a_process_without_the_setting_leaves_the_mail_to_other_processes(
    public: RunningPlatform, platform: RunningPlatform, tenant: Tenant
) -> None:
    await invite(tenant.admin, public)
    (token_id,) = public.sql("SELECT args->>'token_id' FROM jobs WHERE org_id = %s", [tenant.id])[0]
    with pytest.raises(MailNotSent, match="SMTP_URL") as error:
        await mailing.send_link(tools_of(platform.host), tenant.id, token_id=token_id)
    assert not error.value.is_permanent


# a forgotten password -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("jobs")
async def test_a_person_who_forgot_the_password_sets_a_new_one(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer, visitor: Visitor
) -> None:
    ada = await member(public, tenant)
    await visitor.get("/login")
    assert 'href="/login/forgot"' in visitor.page.text
    await visitor.get("/login/forgot")
    await visitor.fill(email=ada.email.upper())
    assert "If the address has an account with a password, a mail with a link is on its way." in visitor.page.text
    mail = await mailbox.next()
    assert (mail["To"], mail["Subject"]) == (ada.email, f"Set a new password for {tenant.slug}")
    # Nothing has changed yet.
    assert (await login(public, ada.email)).status_code == 200
    await visitor.get(path_of(mail))
    await visitor.fill(password=NEW, repeated=NEW)
    assert (await login(public, ada.email)).status_code == 401
    assert (await login(public, ada.email, NEW)).status_code == 200
    (event,) = await public.audit(tenant, "user.password_reset_issued")
    assert (event["actor_id"], event["resource_id"], event["details"]["requested"]) == (None, str(ada.id), True)
    expiry = "SELECT expires_at - created_at = interval '1 hour' FROM one_time_tokens WHERE user_id = %s"
    assert public.sql(expiry, [ada.id]) == [(True,)]


async def test_the_response_does_not_reveal_whether_an_address_has_an_account(
    public: RunningPlatform, tenant: Tenant, visitor: Visitor
) -> None:
    ada = await member(public, tenant)
    without_password = await invite(tenant.admin, public)
    inactive = await member(public, tenant, signed_in=False)
    public.sql("UPDATE users SET is_active = false WHERE id = %s", [inactive.id])
    before = len(jobs_of(public, tenant))
    answers, pages = set(), set()
    for email in (ada.email, without_password["email"], inactive.email, address()):
        answer = await public.anonymous.post(FORGOT, json={"email": email})
        answers.add((answer.status_code, answer.text))
        await visitor.get("/login/forgot")
        await visitor.fill(email=email)
        pages.add((visitor.page.status_code, visitor.page.text))
    assert len(answers) == len(pages) == 1
    assert {status for status, _ in answers | pages} == {202, 200}
    await public.host.later.settle()
    # There is one request by the API and one by the page for the only account with a password.
    assert len(jobs_of(public, tenant)) == before + 2


async def test_the_work_is_done_after_the_response(
    public: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work that depends on the account does not delay the response."""
    ada = await member(public, tenant)
    background_work: list[Any] = []

    async def run(work: Any) -> None:
        background_work.append(work)

    with monkeypatch.context() as patch:
        patch.setattr(public.host.later, "run", run)
        assert (await public.anonymous.post(FORGOT, json={"email": ada.email})).status_code == 202
    assert jobs_of(public, tenant) == []
    await background_work[0]
    assert len(jobs_of(public, tenant)) == 1


async def test_every_organization_with_the_address_sends_a_mail(
    public: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    ada, twin = await member(public, tenant), await member(public, other_tenant)
    public.sql("UPDATE users SET email = %s WHERE id = %s", [ada.email, twin.id])
    await public.anonymous.post(FORGOT, json={"email": ada.email})
    await public.host.later.settle()
    assert (len(jobs_of(public, tenant)), len(jobs_of(public, other_tenant))) == (1, 1)


async def test_an_account_gets_three_mails_an_hour_and_a_strangers_request_voids_no_link(
    public: RunningPlatform, tenant: Tenant
) -> None:
    ada = await member(public, tenant)
    reset = await public.client(tenant.admin.token).post(f"{USERS}/{ada.id}/password-reset?delivery=response")
    await asyncio.gather(*(public.anonymous.post(FORGOT, json={"email": ada.email}) for _ in range(6)))
    await public.host.later.settle()
    assert len(jobs_of(public, tenant)) == 3
    body = {"token": reset.json()["token"], "password": NEW}
    assert (await public.anonymous.post("/api/auth/password/reset", json=body)).status_code == 204
    # A new password voids the links that were sent before.
    tokens = public.sql("SELECT count(*) FROM one_time_tokens WHERE user_id = %s AND used_at IS NULL", [ada.id])
    assert tokens == [(0,)]


async def test_requests_count_against_the_limit_of_sign_ins_of_an_address(public: RunningPlatform) -> None:
    email = address()
    statuses = [(await public.anonymous.post(FORGOT, json={"email": email})).status_code for _ in range(12)]
    assert (statuses[:10], statuses[10:]) == ([202] * 10, [429] * 2)
    assert (await login(public, email)).status_code == 429


@pytest.mark.parametrize("body", [{}, {"email": "nobody"}, {"email": "a@b.test\r\nBcc: c@d.test"}, {"email": 1}])
async def test_an_invalid_address_is_refused(public: RunningPlatform, body: dict[str, Any]) -> None:
    answer = await public.anonymous.post(FORGOT, json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "email"])


async def test_the_page_names_a_bad_address_and_does_not_exist_without_mail(
    public: RunningPlatform, platform: RunningPlatform, visitor: Visitor
) -> None:
    await visitor.get("/login/forgot")
    await visitor.fill(email="nobody")
    assert visitor.page.status_code == 400
    assert "E-mail:" in visitor.page.text
    without = Visitor(platform)
    await without.get("/login")
    assert "/login/forgot" not in without.page.text
    assert (await without.get("/login/forgot")).status_code == 404
    await without.client.aclose()


# confirming an address ----------------------------------------------------------------------------------------------


@pytest.fixture
def domain(public: RunningPlatform, tenant: Tenant) -> str:
    """A verified domain of the tenant that is open for registration."""
    name = f"{uuid4().hex[:10]}.test"
    public.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, self_registration, verified_at) VALUES (%s, %s, true, now())",
        [tenant.id, name],
    )
    return name


async def register(platform: RunningPlatform, email: str) -> None:
    answer = await platform.anonymous.post("/api/auth/register", json={"email": email, "password": PASSWORD})
    assert answer.status_code == 202, answer.text
    await platform.host.later.settle()


@pytest.mark.usefixtures("jobs")
async def test_a_registered_person_confirms_the_address_and_is_signed_in(
    public: RunningPlatform, tenant: Tenant, domain: str, mailbox: MailServer, visitor: Visitor
) -> None:
    email = address(domain)
    await register(public, email)
    mail = await mailbox.next()
    assert mail["Subject"] == f"Confirm your e-mail address for {tenant.slug}"
    refused = await login(public, email)
    assert (refused.status_code, refused.json()["error"]) == (403, "address_not_confirmed")
    # The link is sent again, because a mail may be lost. A wrong password gets the usual response.
    assert token_of(await mailbox.next()) != token_of(mail)
    assert (await login(public, email, NEW)).status_code == 401
    await visitor.sign_in(email)
    assert (visitor.page.status_code, "Confirm your e-mail address first" in visitor.page.text) == (403, True)
    (listed,) = (await public.client(tenant.admin.token).get(USERS, params={"search": email})).json()["items"]
    assert listed["awaits_confirmation"] is True

    await visitor.get(path_of(mail))
    await visitor.fill(password=NEW)
    assert (visitor.page.status_code, "this is not the account" in visitor.page.text) == (400, True)
    await visitor.fill(password=PASSWORD)
    assert (visitor.page.status_code, visitor.page.headers["Location"]) == (303, "/console")
    assert visitor.cookie()
    signed_in = await login(public, email)
    assert signed_in.json()["user"]["awaits_confirmation"] is False
    failed, confirmed = await public.audit(tenant, "user.address_confirmed")
    assert (failed["outcome"], failed["reason"], confirmed["outcome"]) == ("failure", "wrong_password", "success")
    await visitor.get(path_of(mail))
    assert (await visitor.fill(password=PASSWORD)).status_code == 400


@pytest.mark.usefixtures("jobs")
async def test_the_owner_of_an_address_takes_over_an_account_that_another_person_registered(
    public: RunningPlatform, domain: str, mailbox: MailServer, visitor: Visitor
) -> None:
    """The other person has chosen the password, so the owner of the mailbox cannot confirm the address, but can set
    another password."""
    email = address(domain)
    await register(public, email)
    confirmation = await mailbox.next()
    body = {"token": token_of(confirmation), "password": NEW}
    refused = await public.anonymous.post("/api/auth/email/confirm", json=body)
    assert (refused.status_code, refused.json()) == (403, {"detail": "password: this is not the account's password."})
    await public.anonymous.post(FORGOT, json={"email": email})
    await visitor.get(path_of(await mailbox.next()))
    await visitor.fill(password=NEW, repeated=NEW)
    assert (await login(public, email)).status_code == 401
    assert (await login(public, email, NEW)).status_code == 200
    late = await public.anonymous.post("/api/auth/email/confirm", json={**body, "password": PASSWORD})
    assert late.status_code == 400


async def test_without_mail_a_registered_person_signs_in_at_once(
    platform: RunningPlatform, public: RunningPlatform, domain: str
) -> None:
    email = address(domain)
    await register(platform, email)
    assert (await login(platform, email)).status_code == 200
    # The user can still sign in after mail is configured.
    assert (await login(public, email)).status_code == 200


@pytest.mark.usefixtures("jobs")
async def test_a_person_confirms_a_new_address(public: RunningPlatform, tenant: Tenant, mailbox: MailServer) -> None:
    ada, moved = await member(public, tenant), address()
    admin = public.client(tenant.admin.token)
    assert (await admin.patch(f"{USERS}/{ada.id}", json={"email": moved})).status_code == 200
    mail = await mailbox.next()
    assert mail["To"] == moved
    # The account was in use before and stays usable.
    assert (await login(public, moved)).status_code == 200
    body = {"token": token_of(mail), "password": PASSWORD}
    assert (await public.anonymous.post("/api/auth/email/confirm", json=body)).status_code == 204
    assert public.sql("SELECT address_proven_at IS NOT NULL FROM users WHERE id = %s", [ada.id]) == [(True,)]
    # A user without a password gets no mail, because the confirmation requires the password.
    created = await invite(tenant.admin, public)
    await mailbox.next()
    before = len(jobs_of(public, tenant))
    await admin.patch(f"{USERS}/{created['id']}", json={"email": address()})
    assert len(jobs_of(public, tenant)) == before


@pytest.mark.parametrize("token", ["adr_unknown", str(new_id())])
async def test_an_unknown_token_confirms_nothing(public: RunningPlatform, token: str) -> None:
    body = {"token": token, "password": PASSWORD}
    assert (await public.anonymous.post("/api/auth/email/confirm", json=body)).status_code == 400


@pytest.mark.usefixtures("jobs")
async def test_a_link_of_another_kind_confirms_nothing(
    public: RunningPlatform, tenant: Tenant, mailbox: MailServer
) -> None:
    ada = await member(public, tenant)
    await public.anonymous.post(FORGOT, json={"email": ada.email})
    body = {"token": token_of(await mailbox.next()), "password": PASSWORD}
    assert (await public.anonymous.post("/api/auth/email/confirm", json=body)).status_code == 400
