"""Renders the mails with a one-time link, and the test mail."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from gatehouse.foundation.mail.message import Mail, one_line

_MAX_NAME_CHARACTERS: Final = 100


class _LinkTexts(msgspec.Struct, frozen=True):
    """The texts of one kind of mail, and the page that its link opens. `{organization}` and `{email}` are replaced."""

    path: str
    subject: str
    lead: str
    button: str
    unexpected: str


#: By the purpose of the one-time token (`users.one_time`).
_TEXTS: Final[Mapping[str, _LinkTexts]] = {
    "invitation": _LinkTexts(
        path="/login/invitation",
        subject="Your invitation to {organization}",
        lead="{organization} has invited you to Gatehouse. Choose a password for your account {email}.",
        button="Accept the invitation",
        unexpected="If you did not expect this invitation, ignore this mail.",
    ),
    "password_reset": _LinkTexts(
        path="/login/reset",
        subject="Set a new password for {organization}",
        lead="A new password was requested for your account {email} of {organization}.",
        button="Set a new password",
        unexpected="If you did not expect this mail, ignore it. Your password stays as it is.",
    ),
    "address_confirmation": _LinkTexts(
        path="/login/confirm-address",
        subject="Confirm your e-mail address for {organization}",
        lead="Confirm that {email} is the address of your account of {organization}. You need its password.",
        button="Confirm the address",
        unexpected="If you have no account there, ignore this mail. Without your confirmation nothing happens.",
    ),
}


def link_mail(
    purpose: str, *, public_url: str, token: str, email: str, organization: str, expires_at: datetime
) -> Mail:
    """Return the mail with the link for a one-time token."""
    texts = _TEXTS[purpose]
    # The subject contains the organization's name, which an organization chooses freely.
    names = {"organization": one_line(organization, _MAX_NAME_CHARACTERS), "email": email}
    shown = {
        "heading": texts.subject.format(**names),
        "lead": texts.lead.format(**names),
        "button": texts.button,
        "link": f"{public_url}{texts.path}?{urlencode({'email': email, 'token': token})}",
        "expires": f"{expires_at.astimezone(UTC):%-d %B %Y, %H:%M} UTC",
        "unexpected": texts.unexpected,
    }
    text, html = (_templates().get_template(f"link.{kind}").render(shown) for kind in ("txt", "html"))
    return Mail(email, shown["heading"], text, html, secret=token)


def trial_mail(*, public_url: str, email: str, organization: str) -> Mail:
    """Return the mail with which an administrator tests the delivery."""
    shown = {
        "heading": "Test mail from Gatehouse",
        "lead": f"Mails of {one_line(organization, _MAX_NAME_CHARACTERS)} reach this address.",
        "button": "Open the console",
        "link": f"{public_url}/console",
        "unexpected": "An administrator with this address asked for this mail.",
    }
    text, html = (_templates().get_template(f"trial.{kind}").render(shown) for kind in ("txt", "html"))
    return Mail(email, shown["heading"], text, html, secret="")


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
