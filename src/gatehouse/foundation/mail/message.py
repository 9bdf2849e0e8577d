"""Builds messages with a text and an HTML part."""

from email import policy
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from typing import Final

import msgspec

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now

MAX_SUBJECT_CHARACTERS: Final = 200
#: Maximum size of a message. Our mails are far smaller: the limit detects a mistake before a server refuses the mail.
MAX_MESSAGE_BYTES: Final = 64 * 1024


class Mail(msgspec.Struct, frozen=True):
    """A mail to one recipient. `secret` is a part of `text` and `html` that must not appear in errors and logs."""

    recipient: str
    subject: str
    text: str
    html: str
    secret: str

    def __repr__(self) -> str:
        return "Mail(...)"


class OversizedMail(Exception):
    """The message is larger than `MAX_MESSAGE_BYTES`."""


def parse_sender(value: str) -> Address:
    """Returns the sender of `ada@example.com` or `Gatehouse <ada@example.com>`. Raises `ValueError`."""
    if not value.isprintable():
        raise ValueError("must be an address without line breaks and control characters")
    name, address = parseaddr(value)
    try:
        return Address(name, addr_spec=emails.ascii_form(address))
    except (ValueError, HeaderParseError):
        raise ValueError("must be an address like ops@example.com or Gatehouse <ops@example.com>") from None


def one_line(text: str, max_chars: int) -> str:
    """Returns the text as one line of at most `max_chars` characters, without control characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"


def build_message(mail: Mail, sender: Address, message_id: str) -> EmailMessage:
    """Returns the message. `message_id` is the part of the message id before the @ sign. A mail that is sent again must
    have the same `message_id`, so that mailboxes can detect the duplicate. Raises `OversizedMail`, and `ValueError` for
    a recipient that is not one address."""
    message = EmailMessage(policy=policy.SMTP)
    message["From"] = sender
    message["To"] = Address(addr_spec=emails.ascii_form(mail.recipient))
    message["Subject"] = one_line(mail.subject, MAX_SUBJECT_CHARACTERS)
    message["Date"] = format_datetime(utc_now())
    message["Message-ID"] = f"<{message_id}@{sender.domain}>"
    # This header suppresses automatic replies, such as those of absent people (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    message.add_alternative(mail.html, subtype="html")
    if len(message.as_bytes()) > MAX_MESSAGE_BYTES:
        raise OversizedMail
    return message
