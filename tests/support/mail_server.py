"""An SMTP server on this machine that stores the mails that it accepts."""

import asyncio
import queue
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from tests.support.ports import free_port

SENDER = "Gatehouse <gatehouse@gatehouse.test>"


class _Handler:
    def __init__(self, server: "MailServer") -> None:
        self._server = server

    async def handle_RCPT(  # aiosmtpd calls it by this name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self._server.refusal is not None:
            return self._server.refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        if self._server.refusal_of_content is not None:
            return self._server.refusal_of_content.format(link=link_of(message))
        self._server.envelopes.append((envelope.mail_from, envelope.rcpt_tos))
        self._server.mails.put(message)
        return "250 OK"


class MailServer:
    """`mails` has the accepted mails in the order of their arrival. If `refusal` is set, it is the reply to each
    recipient. If `refusal_of_content` is set, it is the reply to each content, with `{link}` replaced by the mail's
    link. `logins` has the users and passwords that clients have sent."""

    def __init__(self, port: int = 0, **options: Any) -> None:
        self.port = port or free_port()
        self.mails: queue.Queue[EmailMessage] = queue.Queue()
        self.envelopes: list[tuple[str | None, list[str]]] = []
        self.refusal: str | None = None
        self.refusal_of_content: str | None = None
        self.logins: list[tuple[str, str]] = []
        self._controller = Controller(_Handler(self), hostname="127.0.0.1", port=self.port, **options)

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}?tls=off"

    @contextmanager
    def running(self) -> Iterator["MailServer"]:
        self._controller.start()
        try:
            yield self
        finally:
            self._controller.stop()

    async def next(self, seconds: float = 20) -> EmailMessage:
        """Wait for the next mail and return it."""
        return await asyncio.to_thread(self.mails.get, timeout=seconds)


@contextmanager
def mail_server(port: int = 0) -> Iterator[MailServer]:
    with MailServer(port).running() as server:
        yield server


@contextmanager
def mail_server_with_login(context: ssl.SSLContext, *, password: str, implicit: bool = False) -> Iterator[MailServer]:
    """Run a server that accepts mails only over TLS, from the user `gatehouse`."""
    logins: list[tuple[str, str]] = []

    def authenticate(
        server: SMTP, session: Session, envelope: Envelope, mechanism: str, credentials: object
    ) -> AuthResult:
        assert isinstance(credentials, LoginPassword)
        logins.append((credentials.login.decode(), credentials.password.decode()))
        return AuthResult(success=logins[-1] == ("gatehouse", password), handled=False)

    options: dict[str, Any] = {"auth_required": True, "authenticator": authenticate}
    if implicit:
        # By default, the library requires STARTTLS before a login, even if the connection uses TLS from the start.
        options |= {"ssl_context": context, "auth_require_tls": False}
    else:
        options |= {"tls_context": context, "require_starttls": True}
    server = MailServer(**options)
    server.logins = logins
    with server.running():
        yield server


def body_of(mail: EmailMessage, subtype: str) -> str:
    """Return the text of a part: `plain` or `html`."""
    part = mail.get_body((subtype,))
    assert part is not None
    content = part.get_content()
    assert isinstance(content, str)
    return content


def link_of(mail: EmailMessage) -> str:
    """Return the link of a mail."""
    match = re.search(r"https?://\S+", body_of(mail, "plain"))
    assert match is not None
    return match[0]


def token_of(mail: EmailMessage) -> str:
    return parse_qs(urlsplit(link_of(mail)).query)["token"][0]
