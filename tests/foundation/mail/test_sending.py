"""Mails to a real SMTP server: TLS, login, refusals."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.mail_server import SENDER, MailServer, body_of, mail_server, mail_server_with_login
from tests.support.ports import free_port
from tests.support.tls import TlsFiles

from gatehouse.foundation.mail import sending
from gatehouse.foundation.mail.message import Mail, parse_sender
from gatehouse.foundation.mail.sending import MailNotSent, check, send
from gatehouse.foundation.mail.smtp_url import parse_smtp_url

PASSWORD = "a-password-of-smtp"
TOKEN = "a-token-in-the-link"
FROM = parse_sender(SENDER)
MAIL = Mail("ada@example.com", "Hello", f"https://gatehouse.test/?token={TOKEN}\n", "<p>Hello</p>", secret=TOKEN)


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as running:
        yield running


@pytest.fixture
def tls_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TlsFiles:
    """Returns certificates of an authority that this process trusts."""
    tls_files = TlsFiles(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tls_files.authority))
    return tls_files


def listening_with(tls_files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls_files.certificate, tls_files.key)
    return context


async def refused(url: str) -> MailNotSent:
    with pytest.raises(MailNotSent) as error:
        await send(parse_smtp_url(url), MAIL, FROM, message_id="an-id")
    return error.value


async def test_a_mail_arrives_with_both_parts(server: MailServer) -> None:
    await send(parse_smtp_url(server.url), MAIL, FROM, message_id="an-id")
    arrived = await server.next()
    assert server.envelopes == [("gatehouse@gatehouse.test", ["ada@example.com"])]
    assert (body_of(arrived, "plain").strip(), body_of(arrived, "html").strip()) == (MAIL.text.strip(), MAIL.html)


@pytest.mark.filterwarnings("ignore:Requiring AUTH")
@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "implicit"])
async def test_the_login_is_sent_over_tls(tls_files: TlsFiles, implicit: bool) -> None:
    with mail_server_with_login(listening_with(tls_files), password=PASSWORD, implicit=implicit) as server:
        scheme = "smtps" if implicit else "smtp"
        url = f"{scheme}://gatehouse:{PASSWORD}@127.0.0.1:{server.port}"
        await send(parse_smtp_url(url), MAIL, FROM, message_id="an-id")
        assert (await server.next())["Subject"] == "Hello"
        assert server.logins == [("gatehouse", PASSWORD)]
        await check(parse_smtp_url(url), FROM)

        wrong = await refused(url.replace(PASSWORD, "another-password"))
        assert not wrong.is_permanent
        assert "user or password refused: 535" in str(wrong)
        assert "another-password" not in str(wrong)


async def test_nothing_is_sent_to_a_server_with_an_unknown_certificate(
    tls_files: TlsFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with mail_server_with_login(listening_with(tls_files), password=PASSWORD) as server:
        error = await refused(f"smtp://gatehouse:{PASSWORD}@127.0.0.1:{server.port}")
        assert "certificate" in str(error).lower()
        assert not error.is_permanent
        assert server.logins == []


async def test_nothing_is_sent_to_a_server_without_tls_unless_the_setting_allows_it(server: MailServer) -> None:
    error = await refused(server.url.removesuffix("?tls=off"))
    assert not error.is_permanent
    assert "STARTTLS" in str(error)
    assert "tls=off" in str(error)
    assert server.mails.empty()


@pytest.mark.parametrize(("reply", "is_permanent"), [("550 5.1.1 No such user", True), ("451 4.7.1 Greylisted", False)])
async def test_a_refusal_contains_the_reply_of_the_server(server: MailServer, reply: str, is_permanent: bool) -> None:
    server.refusal = reply
    error = await refused(server.url)
    assert reply in str(error)
    assert error.is_permanent is is_permanent


async def test_a_quoted_secret_is_removed_from_a_refusal(server: MailServer) -> None:
    server.refusal_of_content = "554 5.7.1 Blocked: {link}"
    error = await refused(server.url)
    assert "554 5.7.1 Blocked: https://gatehouse.test/?token=[secret]" in str(error)
    assert TOKEN not in str(error)


async def test_a_server_that_is_down_is_a_temporary_fault() -> None:
    error = await refused(f"smtp://127.0.0.1:{free_port()}?tls=off")
    assert not error.is_permanent
    assert "connect" in str(error)


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Yields a server that accepts connections and sends nothing."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_server_that_does_not_reply_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_REPLY_TIMEOUT_SECONDS", 0.2)
    async with silent_server() as port:
        begun = time.monotonic()
        error = await refused(f"smtp://127.0.0.1:{port}?tls=off")
        assert time.monotonic() - begun < 5
        assert "no reply in time" in str(error)
        assert not error.is_permanent
