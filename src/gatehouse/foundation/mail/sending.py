"""Sends messages to the configured SMTP server.

The server's address comes from the environment and never from an organization, so the egress guard does not apply
(docs/security.md, "Outgoing connections").
"""

import asyncio
import ssl
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Final

from aiosmtplib import SMTP, SMTPAuthenticationError, SMTPException, SMTPNotSupported, SMTPResponseException
from aiosmtplib.errors import SMTPRecipientsRefused

from gatehouse.foundation.mail.message import Mail, OversizedMail, build_message, one_line
from gatehouse.foundation.mail.smtp_url import SmtpServer

#: maximum time from the resolution of the server's name to the server's reply to the message
SEND_TIMEOUT_SECONDS: Final = 60.0
#: maximum wait for one reply of the server
_REPLY_TIMEOUT_SECONDS: Final = 20.0
_MAX_REASON_CHARACTERS: Final = 300
_FIRST_PERMANENT_CODE: Final = 500


class MailNotSent(Exception):
    """The server did not accept a mail. The text contains no secret.

    `is_permanent` is true if the server would refuse the same mail again. Faults of the connection, of TLS and of the
    login are not permanent: after the operator has corrected them, the mail can be sent.
    """

    def __init__(self, reason: str, *, is_permanent: bool) -> None:
        super().__init__(one_line(reason, _MAX_REASON_CHARACTERS))
        self.is_permanent = is_permanent


async def send(server: SmtpServer, mail: Mail, sender: Address, *, message_id: str) -> None:
    """Sends a mail. Raises `MailNotSent`."""
    try:
        message = build_message(mail, sender, message_id)
    except (OversizedMail, ValueError) as error:
        raise MailNotSent(f"the mail cannot be built: {type(error).__name__}", is_permanent=True) from None
    await _converse(server, sender, message, secret=mail.secret)


async def check(server: SmtpServer, sender: Address) -> None:
    """Connects and logs in without sending a mail. Raises `MailNotSent`."""
    await _converse(server, sender, None)


async def _converse(server: SmtpServer, sender: Address, message: EmailMessage | None, *, secret: str = "") -> None:
    client = SMTP(
        hostname=server.host,
        port=server.port,
        # The default is the name of this machine, which may be internal.
        local_hostname=sender.domain,
        timeout=_REPLY_TIMEOUT_SECONDS,
        use_tls=server.tls == "implicit",
        start_tls=server.tls == "starttls",
        tls_context=None if server.tls == "off" else ssl.create_default_context(),
    )
    step = "connect"
    try:
        async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
            try:
                await client.connect()
                step = "log in"
                if server.username is not None and server.password is not None:
                    await client.login(server.username, server.password)
                step = "send"
                if message is not None:
                    await client.send_message(message)
            finally:
                client.close()
    except TimeoutError as error:
        raise _fault(server, step, "no reply in time") from error
    except (SMTPException, OSError) as error:
        raise _failure(server, step, error, secret) from None


def _fault(server: SmtpServer, step: str, reason: str, *, is_permanent: bool = False) -> MailNotSent:
    return MailNotSent(f"{server.host}:{server.port} ({step}): {reason}", is_permanent=is_permanent)


def _failure(server: SmtpServer, step: str, error: Exception, secret: str) -> MailNotSent:
    if isinstance(error, SMTPRecipientsRefused) and error.recipients:
        # A mail has one recipient, so the refusal of this recipient is the reason.
        error = error.recipients[0]
    if isinstance(error, SMTPNotSupported):
        # The server supports no such address (SMTPUTF8) while sending, or no usable login method while logging in.
        return _fault(server, step, str(error), is_permanent=step == "send")
    if isinstance(error, SMTPResponseException):
        is_permanent = step == "send" and error.code >= _FIRST_PERMANENT_CODE
        reason = "user or password refused: " if isinstance(error, SMTPAuthenticationError) else ""
        # Servers quote the text that they refuse, which may contain the secret.
        message = error.message.replace(secret, "[secret]") if secret else error.message
        return _fault(server, step, f"{reason}{error.code} {message}", is_permanent=is_permanent)
    hint = " Without TLS, mails are sent only with ?tls=off in SMTP_URL." if "STARTTLS" in str(error) else ""
    return _fault(server, step, (str(error) or type(error).__name__) + hint)
