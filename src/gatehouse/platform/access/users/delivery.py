"""Decides whether a one-time token is mailed to the user or returned to the caller."""

from typing import Annotated, Literal

from fastapi import Query

from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.access.users.errors import MailNotPossible
from gatehouse.platform.request.ports import Host

Delivery = Annotated[
    Literal["mail", "response"] | None,
    Query(
        description="`mail`: the platform mails a link to the user, and the response has no token. `response`: the"
        " response contains the token. By default `mail` if mail is configured (docs/mail.md), otherwise `response`."
    ),
]


def mail_sealer(host: Host, delivery: str | None = None, *, has_mailbox: bool = True) -> Sealer | None:
    """Return the sealer if the token is mailed; None if the token is returned. Raises `MailNotPossible`."""
    if delivery != "response" and has_mailbox and host.settings.mail is not None:
        return host.sealer
    if delivery == "mail":
        raise MailNotPossible
    return None
